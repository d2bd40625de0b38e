//! The alerts of the chart ask for metrics that the broker has, and for outcomes that it counts.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::collections::BTreeSet;

use gmsa_edge::metrics::register;
use gmsa_test_support::repository;
use gmsa_tickets::{PROGRAM, api::Reason, metrics::BrokerMetrics};
use prometheus_client::encoding::text::encode;

fn alerts() -> String {
    std::fs::read_to_string(repository().join("charts/gmsa-tickets/files/alerts.yaml")).unwrap()
}

#[test]
fn every_metric_of_an_alert_is_one_of_the_broker() {
    let (_, metrics, registry) = register(&PROGRAM, BrokerMetrics::register);
    metrics.show_all();
    let mut scrape = String::new();
    encode(&mut scrape, &registry).unwrap();
    let alerts = alerts();
    let names: BTreeSet<&str> = alerts
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| word.starts_with("gmsa_tickets_"))
        .collect();
    assert_eq!(names.len(), 5, "{names:?}");
    for name in names {
        let declared = format!("# TYPE {} ", name.trim_end_matches("_total"));
        assert!(scrape.contains(&declared), "{name}\n{scrape}");
    }
}

/// Faults of the client, which no alert covers.
const OF_CLIENTS: [&str; 3] = ["ticket-rate", "ticket-request", "ticket-size"];

/// A new reason belongs into an alert or into [`OF_CLIENTS`].
#[test]
fn every_reason_of_the_broker_is_in_an_alert_or_a_fault_of_the_client() {
    let alerts = alerts();
    let patterns = alerts.split("outcome=~\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    let alerted: BTreeSet<&str> = patterns.flat_map(|pattern| pattern.split('|')).collect();
    assert!(OF_CLIENTS.iter().all(|fault| !alerted.contains(fault)));
    let reasons: BTreeSet<&str> = Reason::ALL.map(Reason::as_str).into();
    assert_eq!(&alerted | &BTreeSet::from(OF_CLIENTS), reasons);
}
