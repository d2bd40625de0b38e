//! The alerts of the chart ask for metrics that the broker has, and for outcomes that it counts.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::collections::BTreeSet;

use gmsa_edge::metrics::register;
use gmsa_test_support::repository;
use gmsa_tickets::{PROGRAM, api::every_reason, metrics::BrokerMetrics};
use prometheus_client::encoding::text::encode;

fn alerts() -> String {
    std::fs::read_to_string(repository().join("charts/gmsa-tickets/files/alerts.yaml")).unwrap()
}

#[test]
fn every_metric_of_an_alert_is_one_of_the_broker() {
    let (_, _, registry) = register(&PROGRAM, BrokerMetrics::register);
    let mut scrape = String::new();
    encode(&mut scrape, &registry).unwrap();
    let alerts = alerts();
    let names: BTreeSet<&str> = alerts
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| word.starts_with("gmsa_tickets_"))
        .collect();
    assert_eq!(names.len(), 4, "{names:?}");
    for name in names {
        let declared = format!("# TYPE {} ", name.trim_end_matches("_total"));
        assert!(scrape.contains(&declared), "{name}\n{scrape}");
    }
}

#[test]
fn every_outcome_of_an_alert_is_a_reason_of_the_broker() {
    let (alerts, reasons) = (alerts(), every_reason());
    let patterns: Vec<&str> = alerts.split("outcome=~\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(patterns.len(), 4);
    for outcome in patterns.iter().flat_map(|pattern| pattern.split('|')) {
        assert!(reasons.contains(&outcome), "{outcome}");
    }
}
