//! How long the API server waited for each webhook, by its own histogram: what every operator can compare with the own cluster.
//!
//! Quantiles are computed as Prometheus computes them: within a bucket, all times are as likely.

use std::collections::BTreeMap;

use super::control_plane::{Client, Scrape};

pub const HISTOGRAM: &str = "apiserver_admission_webhook_admission_duration_seconds";

/// The calls of one kind: how many took at most each number of microseconds.
#[derive(Clone, Debug, Default)]
pub struct Calls(BTreeMap<u64, f64>);

/// The calls for `/mutate` and for `/validate`.
pub type Both = [Calls; 2];

pub async fn so_far(client: &Client) -> Both {
    let scrape = Scrape::of(client.text("/metrics").await.unwrap());
    ["admit", "validating"].map(|kind| {
        let mut calls = Calls::default();
        for (labels, count) in scrape.samples(&format!("{HISTOGRAM}_bucket"), &[&format!("type=\"{kind}\"")]) {
            let (_, rest) = labels.split_once("le=\"").unwrap();
            let bound = rest.split_once('"').unwrap().0.parse::<f64>().unwrap();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounds are seconds")]
            let bound = if bound.is_finite() { (bound * 1e6).round() as u64 } else { u64::MAX };
            *calls.0.entry(bound).or_default() += count;
        }
        calls
    })
}

impl Calls {
    /// Adds `other`, multiplied by `times`: -1 subtracts it.
    pub fn add(&mut self, other: &Self, times: f64) {
        for (bound, count) in &other.0 {
            *self.0.entry(*bound).or_default() += count * times;
        }
    }

    /// Milliseconds.
    pub fn quantile(&self, part: f64) -> Option<f64> {
        let wanted = self.0.last_key_value()?.1 * part;
        let (mut from, mut below) = (0.0, 0.0);
        for (bound, count) in &self.0 {
            if *bound == u64::MAX {
                return (wanted > 0.0).then_some(from);
            }
            #[expect(clippy::cast_precision_loss, reason = "microseconds of seconds")]
            let to = *bound as f64 / 1e3;
            if *count >= wanted && wanted > 0.0 {
                return Some(from + (to - from) * (wanted - below) / (count - below));
            }
            (from, below) = (to, *count);
        }
        None
    }
}
