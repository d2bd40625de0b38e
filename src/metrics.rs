//! The webhook's metrics. The metrics of connections and certificates are in
//! [`gmsa_edge::metrics`](mod@gmsa_edge::metrics).
//!
//! Invariants: metrics are registered into a registry once, by [`Metrics::new`], and every label takes its value
//! from a fixed set, so their number is bounded. This module depends on no other one of the server.
//!
//! A new metric is:
//! - a line in `metrics!`: field, type, name, help;
//! - a method of [`Metrics`] that records it;
//! - its labels in `metrics/labels.rs`, if it has any;
//! - `docs/metrics.md`, which `tests/chart/reference.rs` makes: `just generate`.

use std::time::Duration;

use gmsa_core::admission::{Known, SpecFact, UseFact, Webhook, operation::Operation};
use gmsa_edge::metrics::{Age, EdgeMetrics, register};
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use crate::PROGRAM;

mod labels;

use labels::{AccessLabels, BuildLabels, LookupLabels, PathLabel, ReviewLabels, StateLabel};
pub use labels::{CodeLabel, Enforced, ReviewOutcome, WatchState};

/// Seconds: from a review answered from memory to the longest that an API server waits.
const BUCKETS: [f64; 16] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

gmsa_edge::metrics! {
    /// The metrics of reviews and of what they look up. Clones record into the same metrics.
    pub struct Metrics {
        build_info: Family<BuildLabels, Gauge> = "build_info", "The version that is running, and whether it enforces denials";
        reviews: Family<ReviewLabels, Counter> = "reviews", "Reviews answered, by path, operation, outcome and reason";
        durations: Family<PathLabel, Histogram, fn() -> Histogram> =
            "review_duration_seconds", "Time from the head of a review's request to its answer",
            Family::new_with_constructor(|| Histogram::new(BUCKETS));
        in_flight: Gauge = "reviews_in_flight", "Reviews being decided now";
        refused: Family<CodeLabel, Counter> =
            "requests_refused", "Requests refused before a decision, by HTTP status code";
        lookups: Family<LookupLabels, Counter> =
            "spec_lookups", "Credential specs looked up, by where the answer came from and what it was";
        access_reviews: Family<AccessLabels, Counter> =
            "access_reviews", "Checks of the verb use, by where the answer came from and what it was";
        specs: Gauge = "specs_known", "Credential specs in memory";
        watch_state: Family<StateLabel, Gauge> =
            "spec_watch_state", "1 for the state that the watch of credential specs is in, 0 for the others";
        watch_event: Age =
            "spec_watch_event_age_seconds",
            "Time since the watch of credential specs brought an event or a bookmark; 0 before the first";
    }
}

impl Metrics {
    /// Registers every metric of the process.
    #[must_use]
    pub fn new() -> (EdgeMetrics, Self, Registry) {
        register(&PROGRAM, Self::register)
    }

    /// This version runs, and enforces denials or does not.
    pub fn running(&self, version: &'static str, enforced: Enforced) {
        self.build_info.get_or_create(&BuildLabels { version, enforcement: enforced.as_str() }).set(1);
    }

    /// A review was answered after `duration`.
    pub fn review(
        &self,
        webhook: Webhook,
        operation: Operation,
        outcome: ReviewOutcome,
        reason: &'static str,
        duration: Duration,
    ) {
        let (path, operation, outcome) = (webhook.as_str(), labels::operation(operation), outcome.as_str());
        self.reviews.get_or_create(&ReviewLabels { path, operation, outcome, reason }).inc();
        self.durations.get_or_create(&PathLabel { path }).observe(duration.as_secs_f64());
    }

    pub fn spec_lookup(&self, known: &Known<SpecFact>) {
        let (source, outcome) = (known.source.as_str(), known.fact.outcome());
        self.lookups.get_or_create(&LookupLabels { source, outcome }).inc();
    }

    /// The verb `use` was checked.
    pub fn access_review(&self, known: &Known<UseFact>) {
        let (source, outcome) = (known.source.as_str(), known.fact.outcome());
        self.access_reviews.get_or_create(&AccessLabels { source, outcome }).inc();
    }

    pub fn watch_state(&self, current: WatchState) {
        for state in WatchState::ALL {
            self.watch_state.get_or_create(&StateLabel { state: state.as_str() }).set(i64::from(state == current));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use gmsa_core::{admission::Denial, diagnostic::rules};
    use gmsa_edge::metrics::{CertificateStep, Unserved, UnservedLabel, scrape};

    use super::*;

    /// `rate` and `increase` do not see that a series begins with 1.
    #[test]
    fn what_alerts_count_begins_with_0_for_every_reason_and_code() {
        let (edge, metrics, registry) = Metrics::new();
        let zeros = || -> Vec<String> {
            let shown = scrape(&registry).unwrap();
            let ours = shown.lines().filter(|line| line.starts_with("gmsa_webhook") && line.contains('{'));
            ours.filter_map(|line| line.strip_suffix(" 0")).map(str::to_owned).collect()
        };
        let before = zeros();
        let failures = [
            &rules::SPEC_UNREADABLE,
            &rules::AUTHORIZATION_FAILED,
            &rules::TICKETS_NOT_ENABLED,
            &rules::TICKETS_UNAVAILABLE,
        ];
        for webhook in [Webhook::Mutate, Webhook::Validate, Webhook::ValidateCredspec] {
            for rule in Denial::RULES {
                let outcome = if failures.contains(&rule) { ReviewOutcome::Error } else { ReviewOutcome::Denied };
                metrics.review(webhook, Operation::Create, outcome, rule.id, Duration::ZERO);
                metrics.review(webhook, Operation::Update, outcome, rule.id, Duration::ZERO);
            }
        }
        for code in [400, 404, 405, 408, 413, 415, 500, 503, 504] {
            metrics.refused.get_or_create(&CodeLabel { code }).inc();
        }
        for reason in Unserved::ALL {
            edge.connections_unserved.get_or_create(&UnservedLabel { reason: reason.as_str() }).inc();
        }
        for step in CertificateStep::ALL {
            edge.certificate_step(step, 1);
        }
        edge.certificate_served(UNIX_EPOCH, &[]);
        edge.certificate_refused();
        let counted =
            before.iter().filter(|series| !zeros().contains(series)).filter(|series| series.contains("_total{"));
        // `strict` counts credential specs, the rest pods.
        let expected = 2 + 4 * (Denial::RULES.len() - 1) + 9 + Unserved::ALL.len() + CertificateStep::ALL.len() + 2;
        assert_eq!(counted.count(), expected);
        // Bounded: what a scrape shows before anything has happened.
        assert!(scrape(&registry).unwrap().lines().count() < 400);
    }
}
