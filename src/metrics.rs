//! What the process counts and measures, as Prometheus reads it.
//!
//! What always holds: metrics are registered into a registry once, by [`Metrics::new`], and every label takes its value
//! from an enum or a static word, so their number is bounded. This module depends on no other one: it knows
//! nothing of reviews, clusters or certificates; they record into it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, text},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram, info::Info},
    registry::{Metric, Registry},
};

mod labels;
mod process;
pub mod reference;

pub use labels::{Access, CertificateStep, Lookup, Operation, Outcome, Path, Reload, Source, WatchState};

/// Every metric's name begins with it, but for those of the process.
const PREFIX: &str = "gmsa_webhook";

/// Seconds: from a review answered from memory to the longest that an API server waits.
const BUCKETS: [f64; 16] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReviewLabels {
    path: Path,
    operation: Operation,
    outcome: Outcome,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PathLabel {
    path: Path,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabel {
    code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LookupLabels {
    source: Source,
    outcome: Lookup,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AccessLabels {
    source: Source,
    outcome: Access,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: WatchState,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReloadLabel {
    outcome: Reload,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepLabel {
    step: CertificateStep,
}

/// The handles to record with. Clones record into the same metrics.
#[derive(Clone, Debug)]
pub struct Metrics {
    reviews: Family<ReviewLabels, Counter>,
    durations: Family<PathLabel, Histogram, fn() -> Histogram>,
    in_flight: Gauge,
    refused: Family<CodeLabel, Counter>,
    connections: Gauge,
    handshake_failures: Counter,
    lookups: Family<LookupLabels, Counter>,
    access_reviews: Family<AccessLabels, Counter>,
    specs: Gauge,
    watch_state: Family<StateLabel, Gauge>,
    watch_event: Gauge,
    watch_stuck: Counter,
    certificate_expiry: Gauge,
    certificate_refused: Gauge,
    certificate_reloads: Family<ReloadLabel, Counter>,
    certificate_steps: Family<StepLabel, Counter>,
}

impl Metrics {
    /// Registers every metric of the process; `version` goes into the build information.
    #[must_use]
    pub fn new(version: &'static str) -> (Self, Registry) {
        let mut whole = Registry::default();
        let registry = whole.sub_registry_with_prefix(PREFIX);
        registry.register("build", "The version that is running", Info::new([("version", version)]));
        let durations = Family::new_with_constructor((|| Histogram::new(BUCKETS)) as fn() -> Histogram);
        let metrics = Self {
            reviews: add(registry, "reviews", "Reviews answered, by path, operation, outcome and reason"),
            durations: add_this(
                registry,
                "review_duration_seconds",
                "Time from the head of a review's request to its answer",
                durations,
            ),
            in_flight: add(registry, "reviews_in_flight", "Reviews being decided now"),
            refused: add(registry, "requests_refused", "Requests that were no review to decide, by HTTP status code"),
            connections: add(registry, "connections", "Open connections to the webhook's port"),
            handshake_failures: add(registry, "tls_handshake_failures", "TLS handshakes that failed or took too long"),
            lookups: add(
                registry,
                "spec_lookups",
                "Credential specs looked up, by where the answer came from and what it was",
            ),
            access_reviews: add(
                registry,
                "access_reviews",
                "Checks of the verb use, by where the answer came from and what it was",
            ),
            specs: add(registry, "specs_known", "Credential specs in memory"),
            watch_state: add(
                registry,
                "spec_watch_state",
                "1 for the state that the watch of credential specs is in, 0 for the others",
            ),
            watch_stuck: add(
                registry,
                "spec_watch_stuck",
                "Times a watch of credential specs was connected but withheld changes: credential specs were listed again",
            ),
            watch_event: {
                let at = Gauge::default();
                registry.register_collector(Box::new(WatchAge(at.clone())));
                at
            },
            certificate_expiry: add(
                registry,
                "certificate_expiry_timestamp_seconds",
                "When the certificate that is served expires, in seconds since 1970; 0 before there is one",
            ),
            certificate_refused: add(
                registry,
                "certificate_refused",
                "1 while the certificate that was offered last is refused and the one before stays in use, 0 otherwise",
            ),
            certificate_reloads: add(
                registry,
                "certificate_reloads",
                "Attempts to take a changed certificate into service, by outcome",
            ),
            certificate_steps: add(
                registry,
                "certificate_steps",
                "What this replica did to the certificates that the webhook manages itself",
            ),
        };
        whole.register_collector(Box::new(process::Process));
        (metrics, whole)
    }

    /// A review was answered after so long, for a static reason.
    pub fn review(&self, path: Path, operation: Operation, outcome: Outcome, reason: &'static str, duration: Duration) {
        self.reviews.get_or_create(&ReviewLabels { path, operation, outcome, reason }).inc();
        self.durations.get_or_create(&PathLabel { path }).observe(duration.as_secs_f64());
    }

    /// A review is being decided until the guard is dropped.
    pub fn review_in_flight(&self) -> Counted {
        Counted::new(&self.in_flight)
    }

    /// A connection is open until the guard is dropped.
    pub fn connection(&self) -> Counted {
        Counted::new(&self.connections)
    }

    /// A request was refused with this HTTP status code.
    pub fn request_refused(&self, code: u16) {
        self.refused.get_or_create(&CodeLabel { code }).inc();
    }

    /// A TLS handshake failed.
    pub fn handshake_failed(&self) {
        self.handshake_failures.inc();
    }

    /// A credential spec was looked up.
    pub fn spec_lookup(&self, source: Source, outcome: Lookup) {
        self.lookups.get_or_create(&LookupLabels { source, outcome }).inc();
    }

    /// The verb `use` was checked.
    pub fn access_review(&self, source: Source, outcome: Access) {
        self.access_reviews.get_or_create(&AccessLabels { source, outcome }).inc();
    }

    /// The number of credential specs in memory.
    pub fn specs_known(&self, number: usize) {
        self.specs.set(i64::try_from(number).unwrap_or(i64::MAX));
    }

    /// The watch is in this state.
    pub fn watch_state(&self, current: WatchState) {
        for state in WatchState::ALL {
            self.watch_state.get_or_create(&StateLabel { state: *state }).set(i64::from(*state == current));
        }
    }

    /// The watch brought an event or a bookmark.
    pub fn watch_event(&self, at: SystemTime) {
        self.watch_event.set(unix(at));
    }

    /// A watch was connected but withheld changes.
    pub fn watch_stuck(&self) {
        self.watch_stuck.inc();
    }

    /// When the served certificate expires, how many certificates were served and refused so far, and whether the one
    /// that was offered last is refused.
    pub fn certificate(&self, expires: Option<SystemTime>, served: u64, refused: u64, refused_now: bool) {
        self.certificate_expiry.set(expires.map_or(0, unix));
        self.certificate_refused.set(i64::from(refused_now));
        for (outcome, total) in [(Reload::Served, served), (Reload::Refused, refused)] {
            raise(&self.certificate_reloads.get_or_create_owned(&ReloadLabel { outcome }), total);
        }
    }

    /// This replica has done this to the certificates, `count` times.
    pub fn certificate_step(&self, step: CertificateStep, count: u64) {
        self.certificate_steps.get_or_create(&StepLabel { step }).inc_by(count);
    }
}

/// Registers a new metric, and returns it.
fn add<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    add_this(registry, name, help, M::default())
}

fn add_this<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

/// Brings a counter up to a total that is counted elsewhere. If two scrapes run at once, the next one
/// corrects the total.
fn raise(counter: &Counter, total: u64) {
    counter.inc_by(total.saturating_sub(counter.get()));
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

/// Says how old the last event is at the moment of the scrape.
#[derive(Debug)]
struct WatchAge(Gauge);

impl Collector for WatchAge {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        use prometheus_client::{encoding::EncodeMetric, metrics::gauge::ConstGauge};
        let at = self.0.get();
        let age = if at == 0 { 0 } else { (unix(SystemTime::now()) - at).max(0) };
        let gauge = ConstGauge::new(age);
        let help = "Time since the watch of credential specs brought an event or a bookmark; 0 before the first";
        gauge.encode(encoder.encode_descriptor("spec_watch_event_age_seconds", help, None, gauge.metric_type())?)
    }
}

/// The content type of [`scrape`]'s text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The text that a scraper reads.
///
/// # Errors
/// Where a metric cannot be printed: a mistake in this program.
pub fn scrape(registry: &Registry) -> Result<String, std::fmt::Error> {
    let mut out = String::new();
    text::encode(&mut out, registry)?;
    Ok(out)
}
