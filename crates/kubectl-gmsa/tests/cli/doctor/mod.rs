//! `doctor` on the simulated API server: green where all is well, and what it says of each fault.

mod bundle;
mod call;
mod certificates;
mod directory;
mod dns;
mod install;
mod not_checked;
mod one_pod;
mod pre;
mod protection;
mod service;
mod usage;
mod workloads;

use serde_json::{Value, json};

use super::{
    cluster::{healthy, run},
    support::{Fault, SimulatedApi, Verb},
    text,
};

/// The webhook in the configurations of the healthy cluster.
const NAME: &str = "gmsa/admission-webhook.windows-gmsa.sigs.k8s.io";

/// The checks that do not pass, once `fault` is in the cluster, each with its rule.
async fn complaints(fault: impl FnOnce(&SimulatedApi)) -> Vec<String> {
    explained(fault).await.into_iter().map(|(complaint, _)| complaint).collect()
}

/// The same, each with what to do about it. The exit code is that of what is found.
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
async fn a_healthy_install_is_all_pass() {
    let api = healthy().await;
    let output = run(&api, &["doctor"]).await;
    let expected = "\
pass  API server         answers, v1.36.0
pass  custom resource    serves v1, v1alpha1
pass  configuration      gmsa/admission-webhook.windows-gmsa.sigs.k8s.io is complete
pass  certificate        the caBundle of gmsa/admission-webhook.windows-gmsa.sigs.k8s.io is valid for N days
pass  configuration      gmsa/admission-webhook.windows-gmsa.sigs.k8s.io is complete
pass  certificate        the caBundle of gmsa/admission-webhook.windows-gmsa.sigs.k8s.io is valid for N days
pass  call of /mutate    the API server reaches it and trusts its certificate (dry run in default)
pass  call of /validate  the API server reaches it and trusts its certificate (dry run in default)
pass  protection         static policies, from files of the control plane, protect the configurations of gmsa
pass  service            gmsa/webhook has 2 of 2 endpoints ready
pass  service            runs gmsa-webhook:0.1.0
pass  permissions        gmsa:webhook has the permissions that it needs
pass  namespaces         pods are reviewed in 2 of 4
pass  credential specs   no problems found in 1 credential spec
pass  pods               1 uses GMSA, with up-to-date contents
pass  workloads          no pod template uses GMSA yet
pass  DNS                contoso.com: the zone contoso.com goes to 10.0.0.4, 10.0.0.5 (ConfigMap kube-system/coredns)
pass  Windows nodes      1 of 10.0.20348
";
    let days = |line: &str| match line.split_once(" is valid for ") {
        Some((head, _)) => format!("{head} is valid for N days\n"),
        None => format!("{line}\n"),
    };
    let found: String = text(&output.stdout).lines().map(days).collect::<Vec<_>>().concat();
    assert_eq!(found, expected, "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_complaint_has_its_rule_and_what_to_do() {
    let api = healthy().await;
    api.undefine("customresourcedefinitions");
    let output = run(&api, &["doctor"]).await;
    let complaint = "
fail  custom resource    gmsacredentialspecs.windows.k8s.io is not installed [crd-missing]
                         -> `helm show crds CHART | kubectl apply --server-side -f -`, then apply the credential specs again: they were deleted with it.
pass  configuration      gmsa/admission-webhook.windows-gmsa.sigs.k8s.io is complete
";
    assert!(text(&output.stdout).contains(complaint), "{}", text(&output.stdout));
    assert_eq!(output.status.code(), Some(1));
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
