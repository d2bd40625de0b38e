//! The alerts of the chart ask for metrics that the broker has, and for outcomes that it counts.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use gmsa_edge::metrics::register;
use gmsa_test_support::repository;
use gmsa_tickets::{PROGRAM, api::every_reason, metrics::Metrics};
use prometheus_client::encoding::text::encode;

fn alerts() -> String {
    std::fs::read_to_string(repository().join("charts/gmsa-tickets/files/alerts.yaml")).unwrap()
}

#[test]
fn every_metric_of_an_alert_is_one_of_the_broker() {
    let (_, _, registry) = register(&PROGRAM, Metrics::register);
    let mut scrape = String::new();
    encode(&mut scrape, &registry).unwrap();
    let alerts = alerts();
    let names: Vec<&str> = alerts.split(['(', ' ']).filter(|word| word.starts_with("gmsa_tickets_")).collect();
    assert_eq!(names.len(), 5, "{names:?}");
    for name in names {
        let name = name.split('{').next().unwrap();
        let declared = format!("# TYPE {} ", name.trim_end_matches("_total"));
        assert!(scrape.contains(&declared), "{name}\n{scrape}");
    }
}

#[test]
fn every_outcome_of_an_alert_is_a_reason_of_the_broker() {
    let (alerts, reasons) = (alerts(), every_reason());
    let patterns: Vec<&str> = alerts.split("outcome=~\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(patterns.len(), 2);
    for outcome in patterns.iter().flat_map(|pattern| pattern.split('|')) {
        let is_counted = match outcome.strip_suffix(".*") {
            Some(start) => reasons.iter().any(|reason| reason.starts_with(start)),
            None => reasons.contains(&outcome),
        };
        assert!(is_counted, "{outcome}");
    }
}
