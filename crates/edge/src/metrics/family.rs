//! How metrics are declared: [`metrics!`](crate::metrics!) makes a type of them, [`labels!`](crate::labels!) the labels of their
//! families.
//!
//! Invariant: every label takes its value from a fixed set, so the number of series is bounded; but for those that are [`absent`] at the start.

use std::{
    hash::Hash,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder},
    metrics::{
        MetricType,
        counter::Counter,
        family::{Family, MetricConstructor},
        gauge::{ConstGauge, Gauge},
    },
};
use tokio::time::Instant;

/// A type of metrics: `field: Type = "name", "help";`, with a value where the type's default will not do. `{noun}` in a help text is the program's.
#[macro_export]
macro_rules! metrics {
    ($(#[$about:meta])* $visibility:vis struct $metrics:ident {
        $($field:ident: $type:ty = $name:literal, $help:literal $(, $metric:expr)?;)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Debug)]
        $visibility struct $metrics {
            $(#[doc = $help] pub $field: $type,)+
        }

        impl $metrics {
            /// Registers the metrics of a program, with the series that are there from the start.
            pub fn register(registry: &mut ::prometheus_client::registry::Registry, program: &$crate::Program) -> Self {
                $(let $field: $type = $crate::metrics!(@first $($metric,)? Default::default());
                registry.register($name, $help.replace("{noun}", program.noun), $field.clone());
                $crate::metrics::Show::show(&$field, false);)+
                Self { $($field,)+ }
            }

            /// Creates every series that a scrape can show, and combinations of labels that none will: for a reference.
            pub fn show_all(&self) {
                $($crate::metrics::Show::show(&self.$field, true);)+
            }
        }
    };
    (@first $first:expr $(, $rest:expr)?) => {
        $first
    };
}

/// The labels of families: `Name { label: Type = every value }`, and behind `=>` which of their combinations are there from the start,
/// if not all. Where the values are names from outside, one stands for them, and `=> absent`. The program depends on `prometheus-client`.
#[macro_export]
macro_rules! labels {
    ($($name:ident { $($label:ident: $type:ty = $values:expr),+ } $(=> $is_there:path)?)+) => {$(
        #[derive(Clone, Debug, Default, PartialEq, Eq, Hash, ::prometheus_client::encoding::EncodeLabelSet)]
        pub struct $name {
            $(pub $label: $type,)+
        }

        impl $crate::metrics::FamilyLabels for $name {
            fn every_combination() -> Vec<Self> {
                let mut all = vec![Self::default()];
                $({
                    let values: Vec<$type> = $values.to_vec();
                    let with = |value: &$type| {
                        let mut each = all.clone();
                        for labels in &mut each {
                            labels.$label = value.clone();
                        }
                        each
                    };
                    all = values.iter().flat_map(with).collect();
                })+
                all
            }

            fn is_there_from_the_start(&self) -> bool {
                true $(&& $is_there(self))?
            }
        }
    )+};
}

/// The labels of one family.
pub trait FamilyLabels: Sized {
    /// Every combination of the values of its labels.
    fn every_combination() -> Vec<Self>;

    /// Whether the series of these labels is there from the start, with 0: `rate` and `increase` do not see that one begins with 1.
    fn is_there_from_the_start(&self) -> bool;
}

/// No series of these labels is there from the start.
pub fn absent<L>(_: &L) -> bool {
    false
}

/// A metric that can create its series before their first value.
pub trait Show {
    /// Creates those that are there from the start, or all of them.
    fn show(&self, _all: bool) {}
}

impl Show for Age {}
impl Show for Counter {}
impl Show for Gauge {}

impl<L: FamilyLabels + Clone + Eq + Hash, M, C: MetricConstructor<M>> Show for Family<L, M, C> {
    fn show(&self, all: bool) {
        for labels in L::every_combination().into_iter().filter(|labels| all || labels.is_there_from_the_start()) {
            drop(self.get_or_create(&labels));
        }
    }
}

/// When something happened last, which a scrape shows as its age in seconds. Setting the time of day changes nothing.
#[derive(Clone, Debug, Default)]
pub struct Age(Arc<Mutex<Option<Instant>>>);

impl Age {
    /// It happens now.
    pub fn reset(&self) {
        *self.0.lock() = Some(Instant::now());
    }
}

impl EncodeMetric for Age {
    fn encode(&self, encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        let age = self.0.lock().map_or(0, |at| at.elapsed().as_secs());
        ConstGauge::new(i64::try_from(age).unwrap_or(i64::MAX)).encode(encoder)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}

/// Seconds since 1970; 0 before.
pub(super) fn unix(at: SystemTime) -> i64 {
    at.duration_since(UNIX_EPOCH).as_ref().map(Duration::as_secs).ok().and_then(|s| i64::try_from(s).ok()).unwrap_or(0)
}

/// Counts one while it lives.
#[derive(Debug)]
#[must_use]
pub struct Counted(Gauge);

impl Counted {
    /// Adds one to the gauge until it is dropped.
    pub fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::registry::Registry;

    use super::*;
    use crate::metrics::scrape;

    #[tokio::test(start_paused = true)]
    async fn an_age_counts_by_a_clock_that_nobody_sets() {
        let age = Age::default();
        let mut registry = Registry::default();
        registry.register("age_seconds", "Age", age.clone());
        let shown =
            || scrape(&registry).unwrap().lines().find_map(|line| line.strip_prefix("age_seconds ")?.parse().ok());
        assert_eq!(shown(), Some(0));
        age.reset();
        tokio::time::advance(Duration::from_secs(70)).await;
        assert_eq!(shown(), Some(70));
        age.reset();
        assert_eq!(shown(), Some(0));
    }
}
