//! The chart of the broker for Linux pods: what it renders, which rights that has, its alerts, and what it says after an install; `refused/tickets` has what it refuses.

use serde_json::{Value, json};

use crate::{
    files::objects,
    helm::Helm,
    observed::{assert_alerts_fire, faults, strings},
    rendered::assert_difference,
    snapshot::assert_file,
};

/// The chart, from the root of the package, where tests run.
pub const TICKETS: &str = "charts/gmsa-tickets";
pub const VALUES: &str = "tests/chart/values-of-tickets.yaml";

/// Sets of values besides, by their names.
const SETS: [(&str, &str); 3] = [
    (
        "tickets-of-parent",
        "global.imageRegistry=mirror.example.com/proxy/,global.imagePullSecrets={pull},global.unrelated=a,prometheusRule.thresholds.denials=50,prometheusRule.alerts.GmsaTicketsAbsent.severity=page",
    ),
    ("tickets-own-certificate", "certificates.secretName=tickets-cert,replicaCount=1"),
    (
        "tickets-labelled",
        "commonLabels.team=identity,podLabels.app\\.kubernetes\\.io/name=x,podLabels.app=x,commonAnnotations.a=b,fullnameOverride=broker",
    ),
];

/// What the chart renders with each set of values.
pub fn every_rendering() -> Vec<String> {
    std::iter::once(render(&[])).chain(SETS.map(|(_, set)| render(&["--set", set]))).collect()
}

fn render(more: &[&str]) -> String {
    let template = ["template", "tickets", TICKETS, "--namespace", "tickets", "--values", VALUES];
    Helm::new().prints(template.iter().chain(more).copied())
}

/// The groups of rules that the chart renders with these values besides.
pub fn rules(values: &str) -> Value {
    let rendered = objects(&render(&["--set", values]));
    rendered.into_iter().find(|object| object["kind"] == "PrometheusRule").unwrap()["spec"].take()
}

#[test]
fn the_broker_renders_as_recorded() {
    let rendered = render(&[]);
    assert_file("tests/chart/rendered/tickets.yaml", &rendered);
    for (name, set) in SETS {
        assert_difference(name, "tickets", &rendered, &render(&["--set", set]));
    }
    let report = Helm::new().prints(["lint", "--strict", TICKETS, "--values", VALUES]);
    assert!(report.contains("1 chart(s) linted, 0 chart(s) failed"), "{report}");
}

/// Least rights: what docs and README say, and nothing else. No rule lists or watches what others own, and none reads a password.
#[test]
fn the_broker_has_the_rights_that_its_readme_lists() {
    let mut rules = Vec::new();
    for object in objects(&render(&[])) {
        for rule in object["rules"].as_array().into_iter().flatten() {
            for resource in rule["resources"].as_array().unwrap() {
                rules.push((resource.clone(), rule["verbs"].clone(), rule["resourceNames"].clone()));
            }
        }
    }
    let expected = [
        ("tokenreviews", json!(["create"]), Value::Null),
        ("pods", json!(["get"]), Value::Null),
        ("gmsacredentialspecs", json!(["get"]), Value::Null),
        ("localsubjectaccessreviews", json!(["create"]), Value::Null),
        ("secrets", json!(["get", "watch", "update"]), json!(["tickets-tls"])),
    ];
    assert_eq!(rules, expected.map(|(resource, verbs, names)| (json!(resource), verbs, names)));
}

/// The password reaches the pod by a volume alone, and no container but the broker's; the test's pod has no token and no key.
#[test]
fn no_password_and_no_key_is_where_it_is_not_needed() {
    let objects = objects(&render(&[]));
    let mounting: Vec<_> =
        objects.iter().filter(|object| object.to_string().contains("corp-user")).map(|it| &it["kind"]).collect();
    assert_eq!(mounting, ["Deployment"]);
    let test = objects.iter().find(|object| object["kind"] == "Pod").unwrap();
    assert_eq!(test["spec"]["automountServiceAccountToken"], false);
    assert_eq!(test["spec"]["volumes"], Value::Null);
    let ca = json!({"name": "CA", "valueFrom": {"secretKeyRef": {"name": "tickets-tls", "key": "ca.crt"}}});
    assert_eq!(test["spec"]["containers"][0]["env"], json!([ca]));
}

#[test]
fn each_alert_of_the_broker_fires_when_it_must_and_only_then() {
    let rules = rules("");
    let queries = strings(&rules, "expr");
    assert_eq!(queries.len(), 9, "{queries:?}");
    assert_eq!(faults(&queries), []);
    assert_alerts_fire(rules, "tests/chart/alerts-of-tickets.yaml");
}

#[test]
fn the_notes_of_the_broker_say_what_comes_next() {
    let install = ["install", "tickets", TICKETS, "--namespace", "tickets", "--dry-run=client", "--values", VALUES];
    let said = Helm::new().prints(install.into_iter().chain(["--set", "replicaCount=1"]));
    assert_file("tests/chart/notes/tickets.txt", said.split_once("NOTES:\n").unwrap().1);
}
