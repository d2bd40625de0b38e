//! What is observed: the reference of metrics, alerts and dashboard; that alerts and dashboard name nothing but what there is; and, by
//! `promtool`, when each alert fires.
//!
//! A new alert is an entry in the chart's `files/alerts.yaml`, its cases in `alerts.yaml` here, its threshold in `values.yaml` if it has one, and its name
//! among the words of the rule in `crates/rules/data` that it shows, for `explain`. `just generate` writes the reference.

use std::{
    fmt::Write as _,
    fs,
    io::{Read as _, Write as _},
    process::{Command, Stdio},
};

use gmsa_edge::metrics::negotiate;
use gmsa_webhook::metrics::Metrics;
use serde_json::Value;

use crate::{
    files::text,
    helm::Helm,
    promql::{self, Fault},
    reference::{HEAD, TICKETS, families, families_asked, families_of_tickets, markdown},
    snapshot::assert_file,
    tickets,
};

/// The rendered groups of rules, with additional values, for a Kubernetes without match conditions: only there every alert is rendered.
fn rendered_rules(values: &str) -> Value {
    rules_for("1.27.0", values)
}

fn rules_for(kubernetes: &str, values: &str) -> Value {
    let rendered = Helm::new().template([
        "--kube-version",
        kubernetes,
        "--namespace",
        "windows",
        "--set",
        "prometheusRule.enabled=true",
        "--set",
        values,
        "--show-only",
        "templates/prometheusrule.yaml",
    ]);
    let rule: Value = serde_saphyr::from_str(&rendered).unwrap();
    rule["spec"].clone()
}

fn alerts(rules: &Value) -> &Vec<Value> {
    rules["groups"][0]["rules"].as_array().unwrap()
}

/// The dashboard of the release `gmsa` in the namespace `windows`.
fn dashboard() -> Value {
    let set = ["--set", "dashboard.enabled=true", "--show-only", "templates/dashboard.yaml"];
    let rendered = Helm::new().template(["--namespace", "windows"].into_iter().chain(set));
    let map: Value = serde_saphyr::from_str(&rendered).unwrap();
    serde_json::from_str(map["data"]["windows-gmsa.json"].as_str().unwrap()).unwrap()
}

#[test]
fn the_reference_lists_what_a_scrape_shows_and_what_is_made_of_it() {
    let metrics = markdown(HEAD, &families());
    let made = [alerts_section(ALERTS, &rendered_rules("")), dashboard_section(&dashboard())].join("\n");
    let of_tickets = markdown(TICKETS, &families_of_tickets());
    let page = format!("{metrics}\n{made}\n{of_tickets}\n{}", alerts_section(TICKETS_ALERTS, &tickets::rules("")));
    assert_file("docs/metrics.md", &page);
}

fn alerts_section(head: &str, rules: &Value) -> String {
    let mut out = head.to_owned();
    for alert in alerts(rules) {
        let said = |value: &Value| value.as_str().unwrap().to_owned();
        let annotation = |name: &str| plain(&said(&alert["annotations"][name]));
        write!(
            out,
            "\n### {}\n\n{}, {} after {}. {}\n\n{}\n\n```promql\n{}\n```\n",
            said(&alert["alert"]),
            annotation("summary"),
            said(&alert["labels"]["severity"]),
            said(&alert["for"]),
            annotation("description"),
            annotation("action"),
            said(&alert["expr"]).replace(SCOPE, "…").replace(&scope_of_tickets(), "…"),
        )
        .unwrap();
    }
    out
}

/// The text of an annotation, with the name of each label for its value.
fn plain(text: &str) -> String {
    let mut parts = text.split("{{ ");
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        let (variable, rest) = part.split_once(" }}").unwrap();
        let name = variable.trim_start_matches('$').trim_start_matches("labels.").split(' ').next().unwrap();
        write!(out, "*{name}*{rest}").unwrap();
    }
    out
}

fn dashboard_section(dashboard: &Value) -> String {
    let mut out = DASHBOARD.to_owned();
    for panel in dashboard["panels"].as_array().unwrap() {
        writeln!(out, "| {} | {} |", panel["title"].as_str().unwrap(), panel["description"].as_str().unwrap()).unwrap();
    }
    out
}

/// The matchers of the pods of the release `gmsa` in the namespace `windows`.
const SCOPE: &str = r#"namespace="windows",pod=~"gmsa-[a-z0-9]+(-[a-z0-9]+)?""#;

/// The matchers of the pods of the release `tickets` in the namespace `tickets`.
fn scope_of_tickets() -> String {
    SCOPE.replace("windows", "tickets").replace("gmsa-", "tickets-")
}

/// How the sections begin.
const ALERTS: &str = include_str!("metrics/alerts.md");
const TICKETS_ALERTS: &str = include_str!("metrics/alerts-of-tickets.md");
const DASHBOARD: &str = include_str!("metrics/dashboard.md");

#[test]
fn every_alert_asks_for_metrics_that_exist() {
    let rules = rendered_rules("");
    let queries = strings(&rules, "expr");
    assert_eq!(queries.len(), 18, "{queries:?}");
    assert_eq!(faults(&queries), []);
    let families = families_asked();
    let texts = [strings(&rules, "summary"), strings(&rules, "description"), strings(&rules, "action")].concat();
    let named = texts.iter().flat_map(|text| text.split("$labels.").skip(1));
    for label in named.map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap()) {
        assert!(promql::is_label(label, &families), "an alert's text names the label {label}");
    }
}

#[test]
fn every_alert_leads_to_its_section_and_is_about_its_own_release() {
    let page = text("docs/metrics.md");
    let values = "prometheusRule.runbookUrl=https://git.example.com/metrics.md";
    let (of_webhook, of_tickets) = (rendered_rules(values), tickets::rules(values));
    let scope_of_tickets = scope_of_tickets();
    let of_both = [(&of_webhook, "gmsa_webhook_", SCOPE), (&of_tickets, "gmsa_tickets_", &scope_of_tickets)];
    for (alert, own, scope) in
        of_both.iter().flat_map(|(rules, own, scope)| alerts(rules).iter().map(move |alert| (alert, own, scope)))
    {
        let name = alert["alert"].as_str().unwrap();
        let anchor = name.to_lowercase();
        assert_eq!(alert["annotations"]["runbook_url"], format!("https://git.example.com/metrics.md#{anchor}"));
        assert!(page.lines().any(|line| line == format!("### {name}")), "docs/metrics.md has no section {name}");
        let expr = alert["expr"].as_str().unwrap();
        // The API server's metrics have the names of webhooks, which are those of every release.
        assert!(expr.contains(scope) || expr.contains("apiserver_"), "{expr}");
        assert_eq!(expr.matches(own).count(), expr.matches(scope).count(), "{expr}");
    }
}

#[test]
fn only_what_a_version_of_kubernetes_lacks_has_its_alert_there() {
    let names = |kubernetes: &str| -> Vec<String> {
        let rules = rules_for(kubernetes, "");
        alerts(&rules).iter().map(|alert| alert["alert"].as_str().unwrap().to_owned()).collect()
    };
    let before = names("1.27.16");
    for kubernetes in ["1.28.0-rc.1", "1.28.15", "1.30.0", "1.36.2"] {
        let after = names(kubernetes);
        assert_eq!(after.len(), before.len() - 1);
        let gone: Vec<_> = before.iter().filter(|name| !after.contains(name)).collect();
        assert_eq!(gone, ["GmsaWebhookFailOpen"], "{kubernetes}");
    }
}

#[test]
fn the_fewest_replicas_are_those_of_the_values_or_of_the_autoscaler() {
    for (values, fewest) in [
        ("replicaCount=3", "< 3"),
        ("replicaCount=3,autoscaling.enabled=true,autoscaling.minReplicas=4,autoscaling.maxReplicas=8", "< 4"),
    ] {
        let rules = rendered_rules(values);
        let missing = alerts(&rules).iter().find(|alert| alert["alert"] == "GmsaWebhookReplicaMissing").unwrap();
        assert!(missing["expr"].as_str().unwrap().ends_with(fewest), "{missing}");
    }
}

#[test]
fn each_alert_fires_when_it_must_and_only_then() {
    assert_alerts_fire(rendered_rules(""), "tests/chart/alerts.yaml");
}

/// The cases of the file hold for these rules, and each rule has one in which it fires, and one in which it does not.
pub fn assert_alerts_fire(mut rules: Value, cases: &str) {
    let folder = tempfile::tempdir().unwrap();
    let promtool = |args: &[&str]| {
        let output = Command::new("promtool").args(args).current_dir(folder.path()).output();
        let output = output.expect("`promtool` must be on the PATH for these tests; .ci/run installs it");
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&said));
        String::from_utf8(said).unwrap()
    };
    fs::write(folder.path().join("rules.yaml"), rules.to_string()).unwrap();
    let count = format!("SUCCESS: {} rules found", alerts(&rules).len());
    assert!(promtool(&["check", "rules", "rules.yaml"]).contains(&count));
    // A test of rules must repeat every annotation: the texts are not what is tested here.
    for alert in rules["groups"][0]["rules"].as_array_mut().unwrap() {
        alert.as_object_mut().unwrap().remove("annotations");
    }
    fs::write(folder.path().join("rules.yaml"), rules.to_string()).unwrap();
    fs::copy(cases, folder.path().join("tests.yaml")).unwrap();
    assert!(promtool(&["test", "rules", "tests.yaml"]).contains("SUCCESS"));
    let tested = text(cases);
    for alert in alerts(&rules) {
        let name = format!("alertname: {}, exp_alerts: ", alert["alert"].as_str().unwrap());
        assert!(
            tested.contains(&format!("{name}[{{")) && tested.contains(&format!("{name}[]")),
            "{name} is not tested"
        );
    }
}

#[test]
fn every_panel_asks_for_metrics_that_exist() {
    let dashboard = dashboard();
    let queries = strings(&dashboard, "expr");
    assert!(queries.len() >= 10, "{queries:?}");
    assert_eq!(faults(&queries), []);
    // Every metric that a query names is one of the release's own pods.
    for query in &queries {
        let metrics = query.matches("gmsa_webhook_").count() + query.matches("process_").count();
        assert_eq!(query.matches(SCOPE).count(), metrics, "{query}");
    }
    let families = families_asked();
    let legends = strings(&dashboard, "legendFormat");
    for label in
        legends.iter().flat_map(|legend| legend.split("{{").skip(1)).map(|rest| rest.split("}}").next().unwrap())
    {
        assert!(promql::is_label(label.trim(), &families), "a legend names the label {label}");
    }
}

/// `queries` has a query on a line, and below it, indented, what it names that does not exist.
#[test]
fn a_query_for_what_does_not_exist_is_found() {
    let file = "tests/chart/metrics/queries";
    let mut found = String::new();
    for query in text(file).lines().filter(|line| !line.starts_with(' ')) {
        found.extend([query, "\n"]);
        for Fault { name, what } in promql::faults(query, &families()) {
            found.extend(["    ", &name, " ", what, "\n"]);
        }
    }
    assert_file(file, &found);
}

pub fn faults(queries: &[String]) -> Vec<(String, Fault)> {
    let families = families_asked();
    let of =
        |query: &String| promql::faults(query, &families).into_iter().map(|fault| (query.clone(), fault)).collect();
    queries.iter().flat_map(|query| -> Vec<_> { of(query) }).collect()
}

/// Every text under this key, however deep.
pub fn strings(value: &Value, key: &str) -> Vec<String> {
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

#[test]
fn promtool_can_read_the_text_format() {
    let (edge, metrics, registry) = Metrics::new();
    edge.show_all();
    metrics.show_all();
    let (_, text) = negotiate(&registry, "").unwrap();
    let mut promtool = Command::new("promtool");
    let promtool = promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut promtool = promtool.expect("`promtool` must be on the PATH for these tests; .ci/run installs it");
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let mut found = String::new();
    promtool.stderr.take().unwrap().read_to_string(&mut found).unwrap();
    assert_eq!((promtool.wait().unwrap().code(), found.as_str()), (Some(0), ""));
}
