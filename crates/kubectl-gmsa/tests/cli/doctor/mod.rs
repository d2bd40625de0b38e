//! `doctor` on the simulated API server: what it asks, and what it says of what it may not read. What it makes of what a cluster holds is in
//! the folders of `recorded`.

mod bundle;
mod call;
mod directory;
mod not_checked;
mod pre;
mod walk;

use serde_json::{Value, json};

use super::{
    cluster::{healthy, run},
    support::{Fault, SimulatedApi, Verb},
    text,
};

/// The checks that do not pass, once `fault` is in the cluster, each with its rule, and what to do about it. The exit code is that of what is found.
async fn explained(fault: impl FnOnce(&SimulatedApi)) -> Vec<(String, String)> {
    let api = healthy().await;
    fault(&api);
    let output = run(&api, &["doctor", "--json"]).await;
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = printed["checks"].as_array().unwrap();
    let complaint = |check: &Value| {
        let word = |key: &str| check[key].as_str().unwrap().to_owned();
        let [status, about, text, rule] = ["status", "about", "text", "rule"].map(word);
        (format!("{status} {about}: {text} [{rule}]"), word("remedy"))
    };
    let found: Vec<_> = checks.iter().filter(|check| check["status"] != "pass").map(complaint).collect();
    let has = |statuses: &[&str]| {
        checks.iter().any(|check| check["status"].as_str().is_some_and(|status| statuses.contains(&status)))
    };
    let code = if has(&["warn", "fail"]) {
        1
    } else if has(&["skip"]) {
        2
    } else {
        0
    };
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_ends_when_the_install_is_ready() {
    let api = healthy().await;
    let pod = "/namespaces/gmsa/endpointslices";
    api.fault(Verb::List, pod, 1, Fault::Object(json!({"items": []})));
    let output = run(&api, &["doctor", "--wait", "60"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    assert_eq!(text(&output.stderr), "waiting: service: gmsa/webhook has 0 of 0 endpoints ready\n");
    assert_eq!(api.count(Verb::List, pod), 2);
}
