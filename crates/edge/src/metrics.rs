//! Metrics of connections and certificates, and a program's page for Prometheus.
//!
//! Invariants: metrics are registered into a registry once, by [`register`]; each name but those of the process begins with the name of
//! the program.

use std::{collections::HashSet, time::SystemTime};

use gmsa_core::word_enum;
use prometheus_client::{
    encoding::text,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use crate::Program;

mod family;
mod process;

pub use family::{Age, Counted, FamilyLabels, Show, absent};

word_enum! {
    /// Why a connection was not served.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Unserved {
        /// The client closed it before it sent anything, as a health check of a load balancer does.
        Gone = "closed-by-client",
        /// It sent nothing in time, or nothing yet when too many waited.
        Silent = "silent",
        /// It sent something, and no place was free for it in time, or too many waited.
        NoPlace = "no-place",
    }
}

word_enum! {
    /// A replica's steps on the certificates that the program manages itself.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CertificateStep {
        /// Filled the empty Secret.
        Filled = "filled",
        /// Rebuilt a Secret that was damaged or edited, or whose authority had expired.
        Rebuilt = "rebuilt",
        /// Renewed the serving certificate.
        Renewed = "renewed",
        /// Had a new authority sign.
        Rotated = "rotated",
        /// Wrote a webhook configuration.
        BundleWritten = "bundle-written",
        /// Found a webhook configuration without the authorities that it had before: another writer removed them.
        BundleLost = "bundle-lost",
        /// Left a certificate of another replica as it is for a while, though it would replace it: both replaced the other's before.
        HeldBack = "held-back",
        Failed = "failed",
    }
}

crate::labels! {
    // An authority, by its key identifier.
    AuthorityLabel { key_id: String = ["KEY".to_owned()] } => absent
    UnservedLabel { reason: &'static str = Unserved::ALL.map(Unserved::as_str) }
    ReloadLabel { outcome: &'static str = ["served", "refused"] }
    StepLabel { step: &'static str = CertificateStep::ALL.map(CertificateStep::as_str) }
}

crate::metrics! {
    /// The metrics of connections and certificates. Clones record into the same metrics.
    pub struct EdgeMetrics {
        connections: Gauge = "connections", "Connections to the {noun}'s port that are served now";
        connections_waiting: Gauge = "connections_waiting", "Connections to the {noun}'s port that wait to be served now";
        connections_unserved: Family<UnservedLabel, Counter> =
            "connections_unserved", "Connections to the {noun}'s port that ended before they were served, by reason";
        handshake_failures: Counter = "tls_handshake_failures", "TLS handshakes that failed or took too long";
        certificate_expiry: Gauge =
            "certificate_expiry_timestamp_seconds",
            "When the certificate that is served expires, in seconds since 1970; 0 before there is one";
        certificate_authorities: Family<AuthorityLabel, Gauge> =
            "certificate_authority",
            "1 for each authority of the chain that is served, by its key identifier in hexadecimal digits";
        certificate_next_authority: Family<AuthorityLabel, Gauge> =
            "certificate_next_authority",
            "1 for the authority that will sign next, by its key identifier in hexadecimal digits: clients must trust it by then";
        certificate_refused: Gauge =
            "certificate_refused",
            "1 while the certificate that was offered last is refused and the one before stays in use, 0 otherwise";
        certificate_reloads: Family<ReloadLabel, Counter> =
            "certificate_reloads", "Attempts to take a changed certificate into service, by outcome";
        certificate_steps: Family<StepLabel, Counter> =
            "certificate_steps", "What this replica did to the certificates that the {noun} manages itself";
    }
}

/// Makes the registry of a program: the metrics here, the program's `own`, and the metrics of the process.
pub fn register<M>(program: &Program, own: impl FnOnce(&mut Registry, &Program) -> M) -> (EdgeMetrics, M, Registry) {
    let mut whole = Registry::default();
    let registry = whole.sub_registry_with_prefix(program.name.replace('-', "_"));
    let own = own(registry, program);
    let metrics = EdgeMetrics::register(registry, program);
    whole.register_collector(Box::new(process::Process { started: family::unix(SystemTime::now()) }));
    (metrics, own, whole)
}

impl EdgeMetrics {
    /// A certificate of these authorities is served from now on.
    pub fn certificate_served(&self, expires: SystemTime, authorities: &[String]) {
        self.certificate_expiry.set(family::unix(expires));
        mark(&self.certificate_authorities, authorities.iter().cloned());
        self.certificate_reloads.get_or_create(&ReloadLabel { outcome: "served" }).inc();
    }

    /// The certificate that was offered last is refused.
    pub fn certificate_refused(&self) {
        self.certificate_refused.set(1);
        self.certificate_reloads.get_or_create(&ReloadLabel { outcome: "refused" }).inc();
    }

    /// This replica did so many steps to the certificates that the program manages itself.
    pub fn certificate_step(&self, step: CertificateStep, count: u64) {
        self.certificate_steps.get_or_create(&StepLabel { step: step.as_str() }).inc_by(count);
    }
}

/// Shows these authorities, and no others.
pub(crate) fn mark(family: &Family<AuthorityLabel, Gauge>, key_ids: impl IntoIterator<Item = String>) {
    family.clear();
    key_ids.into_iter().for_each(|key_id| _ = family.get_or_create(&AuthorityLabel { key_id }).set(1));
}

/// The metrics for a scraper, and their content type: `OpenMetrics` where it accepts that, as Prometheus does, and otherwise the text
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
    use super::*;
    use crate::program::TESTED;

    #[test]
    fn a_scraper_gets_the_format_that_it_accepts() {
        let (metrics, (), registry) = register(&TESTED, |_, _| ());
        metrics.handshake_failures.inc();
        let read = |accept| {
            let (content_type, text) = negotiate(&registry, accept).unwrap();
            let ours = |line: &&str| ["_connections ", "_tls_handshake", "EOF"].iter().any(|part| line.contains(part));
            (content_type, text.lines().filter(ours).map(str::to_owned).collect::<Vec<_>>())
        };
        let open = (
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            [
                "# HELP gmsa_webhook_connections Connections to the webhook's port that are served now.",
                "# TYPE gmsa_webhook_connections gauge",
                "gmsa_webhook_connections 0",
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
                "# HELP gmsa_webhook_connections Connections to the webhook's port that are served now.",
                "# TYPE gmsa_webhook_connections gauge",
                "gmsa_webhook_connections 0",
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
}
