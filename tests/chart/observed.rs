//! What is observed: the reference of the metrics, and that the dashboard and the alerts name nothing but what there is.

use std::fs;

use gmsa_core::admission::{AllowReason, Denial};
use gmsa_webhook::metrics::reference::{self, Family};
use serde_json::Value;

use crate::{
    helm::CHART,
    promql::{self, Fault},
    snapshot::assert_file,
};

fn families() -> Vec<Family> {
    reference::families(AllowReason::REASONS.iter().chain(Denial::REASONS).copied()).unwrap()
}

#[test]
fn the_reference_lists_what_a_scrape_shows() {
    assert_file("docs/metrics.md", &reference::markdown(&families()).unwrap());
}

#[test]
fn every_alert_asks_for_metrics_that_exist() {
    let alerts: Value =
        serde_saphyr::from_str(&fs::read_to_string(format!("{CHART}/files/alerts.yaml")).unwrap()).unwrap();
    let queries = strings(&alerts, "expr");
    assert!(queries.len() >= 7, "{queries:?}");
    assert_eq!(faults(&queries), []);
    let families = families();
    let texts = [strings(&alerts, "summary"), strings(&alerts, "description")].concat();
    let named = texts.iter().flat_map(|text| text.split("$labels.").skip(1));
    for label in named.map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap()) {
        assert!(promql::is_label(label, &families), "an alert's text names the label {label}");
    }
}

#[test]
fn every_panel_asks_for_metrics_that_exist() {
    let dashboard: Value =
        serde_json::from_str(&fs::read_to_string(format!("{CHART}/files/dashboard.json")).unwrap()).unwrap();
    let queries = [strings(&dashboard, "expr"), strings(&dashboard, "definition")].concat();
    assert!(queries.len() >= 10, "{queries:?}");
    assert_eq!(faults(&queries), []);
    let families = families();
    let legends = strings(&dashboard, "legendFormat");
    for label in
        legends.iter().flat_map(|legend| legend.split("{{").skip(1)).map(|rest| rest.split("}}").next().unwrap())
    {
        assert!(promql::is_label(label.trim(), &families), "a legend names the label {label}");
    }
}

#[test]
fn a_query_for_what_does_not_exist_is_found() {
    let fault = |name: &str, what: &'static str| vec![Fault { name: name.to_owned(), what }];
    for (query, found) in [
        ("gmsa_webhook_reviews", fault("gmsa_webhook_reviews", "is no metric")),
        ("rate(gmsa_webhook_review_total[5m])", fault("gmsa_webhook_review_total", "is no metric")),
        ("gmsa_webhook_reviews_total{result=\"x\"}", fault("result", "is no label of that metric")),
        ("gmsa_webhook_reviews_total{outcome=\"errors\"}", fault("errors", "is no value of that label")),
        ("gmsa_webhook_reviews_total{outcome=~\"error|errors\"}", fault("errors", "is no value of that label")),
        (
            "sum by (state) (rate(gmsa_webhook_reviews_total{namespace=~\"$namespace\"}[5m]))",
            fault("state", "is no label of the metrics of that query"),
        ),
        ("sum(gmsa_webhook_specs_known) without (le)", fault("le", "is no label of the metrics of that query")),
        ("label_values(gmsa_webhook_build_info, node)", fault("node", "is no label of the metrics of that query")),
        ("up == 0", fault("up", "is no metric")),
    ] {
        assert_eq!(promql::faults(query, &families()), found, "{query}");
    }
    for query in [
        "histogram_quantile(0.99, sum by (le, path, pod) (rate(gmsa_webhook_review_duration_seconds_bucket[5m])))",
        "gmsa_webhook_spec_watch_state{state=~\"stale|live\"} == 1 unless on (pod) process_open_fds offset 1h > 5e3",
        "label_values(gmsa_webhook_build_info, namespace)",
    ] {
        assert_eq!(promql::faults(query, &families()), [], "{query}");
    }
}

fn faults(queries: &[String]) -> Vec<(String, Fault)> {
    let families = families();
    let of =
        |query: &String| promql::faults(query, &families).into_iter().map(|fault| (query.clone(), fault)).collect();
    queries.iter().flat_map(|query| -> Vec<_> { of(query) }).collect()
}

/// Every text that stands under this key, however deep.
fn strings(value: &Value, key: &str) -> Vec<String> {
    match value {
        Value::Object(map) => map
            .iter()
            .flat_map(|(found, value)| match value {
                Value::String(text) if found == key => vec![text.clone()],
                value => strings(value, key),
            })
            .collect(),
        Value::Array(list) => list.iter().flat_map(|value| strings(value, key)).collect(),
        _ => Vec::new(),
    }
}
