//! The broker's metrics.
//!
//! Invariant: every label takes its value from a fixed set, so the number of series is bounded; but for the namespaces whose pods may export
//! a credential spec.

use std::time::Duration;

use gmsa_core::word_enum;
use gmsa_edge::metrics::absent;
use prometheus_client::metrics::{counter::Counter, family::Family, histogram::Histogram};

use crate::api::Reason;

/// Seconds: from an answer without a controller to the longest request.
const BUCKETS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 10.0, 25.0];

/// The outcome of a request that was answered with tickets.
const GIVEN: &str = "given";

word_enum! {
    /// The kind of a request to a domain controller.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Exchange {
        /// The password of an account, by LDAP.
        Password = "password",
        /// A ticket-granting ticket.
        InitialTicket = "as",
        /// A ticket for a service.
        ServiceTicket = "tgs",
    }
}

gmsa_edge::labels! {
    NamespaceLabel { pod_namespace: String = ["NAMESPACE".to_owned()] } => absent
    RequestLabel { outcome: &'static str = [vec![GIVEN], Reason::ALL.map(Reason::as_str).to_vec()].concat() }
    StageLabel { outcome: &'static str = [GIVEN, "refused"] }
    ExchangeLabels { kind: &'static str = Exchange::ALL.map(Exchange::as_str), outcome: &'static str = ["done", "failed"] }
}

gmsa_edge::metrics! {
    /// The metrics of tickets and keytabs. Clones record into the same metrics.
    pub struct BrokerMetrics {
        keytabs: Family<NamespaceLabel, Counter> = "keytabs", "Keytabs given, by the namespace of the pod";
        requests: Family<RequestLabel, Counter> =
            "requests", "Requests for tickets or keytabs, by outcome: given, or the rule of the refusal";
        durations: Family<StageLabel, Histogram, fn() -> Histogram> =
            "request_duration_seconds", "Time from the head of a request for tickets or a keytab to its answer",
            Family::new_with_constructor(|| Histogram::new(BUCKETS));
        exchanges: Family<ExchangeLabels, Counter> =
            "exchanges", "Reads of a password, and exchanges with a KDC for a ticket-granting ticket (as) or a service ticket (tgs)";
    }
}

impl BrokerMetrics {
    /// A request was answered: with what it asked for, or with this reason.
    pub fn request(&self, refused: Option<Reason>, duration: Duration) {
        self.requests.get_or_create(&RequestLabel { outcome: refused.map_or(GIVEN, Reason::as_str) }).inc();
        let outcome = if refused.is_some() { "refused" } else { GIVEN };
        self.durations.get_or_create(&StageLabel { outcome }).observe(duration.as_secs_f64());
    }

    /// A pod of this namespace was given a keytab.
    pub fn keytab(&self, namespace: &str) {
        self.keytabs.get_or_create(&NamespaceLabel { pod_namespace: namespace.to_owned() }).inc();
    }

    /// A controller was asked, with this result.
    ///
    /// # Errors
    /// That of the result.
    pub fn exchange<T, E>(&self, kind: Exchange, result: Result<T, E>) -> Result<T, E> {
        let outcome = if result.is_ok() { "done" } else { "failed" };
        self.exchanges.get_or_create(&ExchangeLabels { kind: kind.as_str(), outcome }).inc();
        result
    }
}
