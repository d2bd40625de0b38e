//! What the process counts and measures, as Prometheus reads it.
//!
//! Invariants: metrics are registered into a registry once, by [`Metrics::new`], and every label takes its value
//! from a fixed set, so their number is bounded. This module depends on no other one of the server.
//!
//! A new metric is:
//! - a line in `metrics!`: field, type, name, help;
//! - a method of [`Metrics`] that records it;
//! - its labels in `metrics/labels.rs`, if it has any;
//! - `docs/metrics.md`, which `tests/chart/reference.rs` makes: `just generate`.

use std::{
    collections::HashSet,
    hash::Hash,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use gmsa_core::admission::{Known, SpecFact, UseFact, Webhook, operation::Operation};
use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder, text},
    metrics::{
        MetricType,
        counter::Counter,
        family::{Family, MetricConstructor},
        gauge::{ConstGauge, Gauge},
        histogram::Histogram,
    },
    registry::Registry,
};

mod labels;
mod process;

use labels::{
    AccessLabels, BuildLabels, CodeLabel, FamilyLabels, LookupLabels, PathLabel, ReloadLabel, ReviewLabels, StateLabel,
    StepLabel, UnservedLabel,
};
pub use labels::{CertificateStep, Enforced, ReviewOutcome, Unserved, WatchState};

/// Every metric's name begins with it, but for those of the process.
const PREFIX: &str = "gmsa_webhook";

/// Seconds: from a review answered from memory to the longest that an API server waits.
const BUCKETS: [f64; 16] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

macro_rules! metrics {
    ($($field:ident: $type:ty = $name:literal, $help:literal $(, $metric:expr)?;)+) => {
        /// The handles to record with. Clones record into the same metrics.
        #[derive(Clone, Debug)]
        pub struct Metrics {
            $($field: $type,)+
        }

        impl Metrics {
            fn register(registry: &mut Registry) -> Self {
                $(let $field: $type = first!($($metric,)? Default::default());
                registry.register($name, $help, $field.clone());)+
                Self { $($field,)+ }
            }

            /// Creates the series that are there from the start, or all of them.
            fn show(&self, all: bool) {
                $(self.$field.show(all);)+
            }
        }
    };
}

macro_rules! first {
    ($first:expr $(, $rest:expr)?) => {
        $first
    };
}

metrics! {
    build_info: Family<BuildLabels, Gauge> = "build_info", "The version that is running, and whether it enforces denials";
    reviews: Family<ReviewLabels, Counter> = "reviews", "Reviews answered, by path, operation, outcome and reason";
    durations: Family<PathLabel, Histogram, fn() -> Histogram> =
        "review_duration_seconds", "Time from the head of a review's request to its answer",
        Family::new_with_constructor(|| Histogram::new(BUCKETS));
    in_flight: Gauge = "reviews_in_flight", "Reviews being decided now";
    refused: Family<CodeLabel, Counter> =
        "requests_refused", "Requests that were no review to decide, by HTTP status code";
    connections: Gauge = "connections", "Connections to the webhook's port that are served now";
    connections_waiting: Gauge = "connections_waiting", "Connections to the webhook's port that wait to be served now";
    connections_unserved: Family<UnservedLabel, Counter> =
        "connections_unserved", "Connections to the webhook's port that ended before they were served, by reason";
    handshake_failures: Counter = "tls_handshake_failures", "TLS handshakes that failed or took too long";
    lookups: Family<LookupLabels, Counter> =
        "spec_lookups", "Credential specs looked up, by where the answer came from and what it was";
    access_reviews: Family<AccessLabels, Counter> =
        "access_reviews", "Checks of the verb use, by where the answer came from and what it was";
    specs: Gauge = "specs_known", "Credential specs in memory";
    watch_state: Family<StateLabel, Gauge> =
        "spec_watch_state", "1 for the state that the watch of credential specs is in, 0 for the others";
    certificate_expiry: Gauge =
        "certificate_expiry_timestamp_seconds",
        "When the certificate that is served expires, in seconds since 1970; 0 before there is one";
    certificate_refused: Gauge =
        "certificate_refused",
        "1 while the certificate that was offered last is refused and the one before stays in use, 0 otherwise";
    certificate_reloads: Family<ReloadLabel, Counter> =
        "certificate_reloads", "Attempts to take a changed certificate into service, by outcome";
    certificate_steps: Family<StepLabel, Counter> =
        "certificate_steps", "What this replica did to the certificates that the webhook manages itself";
    watch_event: Age =
        "spec_watch_event_age_seconds",
        "Time since the watch of credential specs brought an event or a bookmark; 0 before the first";
}

impl Metrics {
    /// Registers every metric of the process.
    #[must_use]
    pub fn new() -> (Self, Registry) {
        let mut whole = Registry::default();
        let registry = whole.sub_registry_with_prefix(PREFIX);
        let metrics = Self::register(registry);
        metrics.show(false);
        whole.register_collector(Box::new(process::Process));
        (metrics, whole)
    }

    /// Creates every series that a scrape can show, and combinations of labels that none will: for the reference in `docs`.
    pub fn show_all(&self) {
        self.show(true);
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

    /// A review is being decided until the guard is dropped.
    pub fn review_in_flight(&self) -> Counted {
        Counted::new(&self.in_flight)
    }

    /// A connection is served until the guard is dropped.
    pub fn connection(&self) -> Counted {
        Counted::new(&self.connections)
    }

    /// A connection waits until the guard is dropped.
    pub fn connection_waiting(&self) -> Counted {
        Counted::new(&self.connections_waiting)
    }

    pub fn connection_unserved(&self, reason: Unserved) {
        self.connections_unserved.get_or_create(&UnservedLabel { reason: reason.as_str() }).inc();
    }

    pub fn request_refused(&self, code: u16) {
        self.refused.get_or_create(&CodeLabel { code }).inc();
    }

    pub fn handshake_failed(&self) {
        self.handshake_failures.inc();
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

    pub fn specs_known(&self, number: usize) {
        self.specs.set(i64::try_from(number).unwrap_or(i64::MAX));
    }

    pub fn watch_state(&self, current: WatchState) {
        for state in WatchState::ALL {
            self.watch_state.get_or_create(&StateLabel { state: state.as_str() }).set(i64::from(state == current));
        }
    }

    /// The watch brought an event or a bookmark.
    pub fn watch_event(&self, at: SystemTime) {
        self.watch_event.0.set(unix(at));
    }

    /// A certificate is served from now on.
    pub fn certificate_served(&self, expires: SystemTime) {
        self.certificate_expiry.set(unix(expires));
        self.certificate_reloads.get_or_create(&ReloadLabel { outcome: "served" }).inc();
    }

    /// The certificate that was offered last is refused.
    pub fn certificate_refused(&self) {
        self.certificate_refused.set(1);
        self.certificate_reloads.get_or_create(&ReloadLabel { outcome: "refused" }).inc();
    }

    /// The certificate that was offered last is not refused.
    pub fn certificate_accepted(&self) {
        self.certificate_refused.set(0);
    }

    pub fn certificate_step(&self, step: CertificateStep, count: u64) {
        self.certificate_steps.get_or_create(&StepLabel { step: step.as_str() }).inc_by(count);
    }
}

/// Seconds since 1970; 0 before.
fn unix(at: SystemTime) -> i64 {
    at.duration_since(UNIX_EPOCH).ok().and_then(|since| i64::try_from(since.as_secs()).ok()).unwrap_or(0)
}

/// Counts one while it lives.
#[derive(Debug)]
#[must_use]
pub struct Counted(Gauge);

impl Counted {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// When something happened last, which a scrape shows as its age in seconds.
#[derive(Clone, Debug, Default)]
struct Age(Gauge);

impl EncodeMetric for Age {
    fn encode(&self, encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        let at = self.0.get();
        let age = if at == 0 { 0 } else { (unix(SystemTime::now()) - at).max(0) };
        ConstGauge::new(age).encode(encoder)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}

/// What can create its series without a value.
trait Show {
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

/// What a scraper reads, and its content type: `OpenMetrics` where it accepts that, as Prometheus does, and otherwise the text
/// format, which `promtool check metrics` reads.
///
/// # Errors
/// Where a metric cannot be printed: a mistake in this program.
pub fn negotiate(registry: &Registry, accept: &str) -> Result<(&'static str, String), std::fmt::Error> {
    let open = scrape(registry)?;
    if accept.contains("application/openmetrics-text") {
        return Ok(("application/openmetrics-text; version=1.0.0; charset=utf-8", open));
    }
    Ok(("text/plain; version=0.0.4; charset=utf-8", text_format(&open)))
}

/// `OpenMetrics` as the text format 0.0.4 has it: there, a counter's family has the name of its samples. Scrapers that read only this
/// format take the counters of `OpenMetrics` for samples without a type and without a help text, as `promtool check metrics` shows.
fn text_format(open: &str) -> String {
    let counters: HashSet<&str> =
        open.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter")).collect();
    let line = |line: &str| match *line.splitn(4, ' ').collect::<Vec<_>>() {
        ["#", word @ ("HELP" | "TYPE"), name, rest] => {
            let suffix = if counters.contains(name) { "_total" } else { "" };
            format!("# {word} {name}{suffix} {rest}\n")
        }
        ["#", ..] => String::new(),
        _ => format!("{line}\n"),
    };
    open.lines().map(line).collect()
}

/// All metrics, as `OpenMetrics`.
///
/// # Errors
/// Where a metric cannot be printed: a mistake in this program.
pub fn scrape(registry: &Registry) -> Result<String, std::fmt::Error> {
    let mut out = String::new();
    text::encode(&mut out, registry)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use gmsa_core::{admission::Denial, diagnostic::rules};

    use super::*;

    #[test]
    fn a_scraper_gets_the_format_that_it_accepts() {
        let (metrics, registry) = Metrics::new();
        metrics.running("1.2.3", Enforced::Nowhere);
        metrics.handshake_failed();
        let read = |accept| {
            let (content_type, text) = negotiate(&registry, accept).unwrap();
            let ours = |line: &&str| ["_build", "_tls_handshake", "EOF"].iter().any(|part| line.contains(part));
            (content_type, text.lines().filter(ours).map(str::to_owned).collect::<Vec<_>>())
        };
        let open = (
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            [
                "# HELP gmsa_webhook_build_info The version that is running, and whether it enforces denials.",
                "# TYPE gmsa_webhook_build_info gauge",
                "gmsa_webhook_build_info{version=\"1.2.3\",enforcement=\"warn\"} 1",
                "# HELP gmsa_webhook_tls_handshake_failures TLS handshakes that failed or took too long.",
                "# TYPE gmsa_webhook_tls_handshake_failures counter",
                "gmsa_webhook_tls_handshake_failures_total 1",
                "# EOF",
            ]
            .map(str::to_owned)
            .to_vec(),
        );
        assert_eq!(read("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2"), open);
        let text = (
            "text/plain; version=0.0.4; charset=utf-8",
            [
                "# HELP gmsa_webhook_build_info The version that is running, and whether it enforces denials.",
                "# TYPE gmsa_webhook_build_info gauge",
                "gmsa_webhook_build_info{version=\"1.2.3\",enforcement=\"warn\"} 1",
                "# HELP gmsa_webhook_tls_handshake_failures_total TLS handshakes that failed or took too long.",
                "# TYPE gmsa_webhook_tls_handshake_failures_total counter",
                "gmsa_webhook_tls_handshake_failures_total 1",
            ]
            .map(str::to_owned)
            .to_vec(),
        );
        for accept in ["", "*/*", "text/plain;version=0.0.4"] {
            assert_eq!(read(accept), text, "{accept}");
        }
    }

    /// `rate` and `increase` do not see that a series begins with 1.
    #[test]
    fn what_alerts_count_begins_with_0_for_every_reason_and_code() {
        let (metrics, registry) = Metrics::new();
        let zeros = || -> Vec<String> {
            let shown = scrape(&registry).unwrap();
            let ours = shown.lines().filter(|line| line.starts_with(PREFIX) && line.contains('{'));
            ours.filter_map(|line| line.strip_suffix(" 0")).map(str::to_owned).collect()
        };
        let before = zeros();
        let failures = [&rules::SPEC_UNREADABLE, &rules::AUTHORIZATION_FAILED];
        for webhook in [Webhook::Mutate, Webhook::Validate, Webhook::ValidateCredspec] {
            for rule in Denial::RULES {
                let outcome = if failures.contains(&rule) { ReviewOutcome::Error } else { ReviewOutcome::Denied };
                metrics.review(webhook, Operation::Create, outcome, rule.id, Duration::ZERO);
                metrics.review(webhook, Operation::Update, outcome, rule.id, Duration::ZERO);
            }
        }
        for code in [400, 404, 405, 408, 413, 415, 503] {
            metrics.request_refused(code);
        }
        for reason in Unserved::ALL {
            metrics.connection_unserved(reason);
        }
        for step in CertificateStep::ALL {
            metrics.certificate_step(step, 1);
        }
        metrics.certificate_served(UNIX_EPOCH);
        metrics.certificate_refused();
        let counted =
            before.iter().filter(|series| !zeros().contains(series)).filter(|series| series.contains("_total{"));
        // `strict` counts credential specs, the rest pods.
        let expected = 2 + 4 * (Denial::RULES.len() - 1) + 7 + Unserved::ALL.len() + CertificateStep::ALL.len() + 2;
        assert_eq!(counted.count(), expected);
        // Bounded: what a scrape shows before anything has happened.
        assert!(scrape(&registry).unwrap().lines().count() < 400);
    }
}
