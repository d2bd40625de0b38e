//! The walk through a workload and a pod: what may not be read, `--watch`, and words that name nothing.

use serde_json::{Value, json};

use super::super::{
    assert_printed,
    cluster::{healthy, pod, run},
    shown,
    support::{Fault, SimulatedApi, Table, Verb},
    text,
};

/// A reference to the controller of an object.
fn controller(api: &SimulatedApi, kind: &str, name: &str) -> Value {
    let stored = api.object(&format!("{}s", kind.to_ascii_lowercase()), "shop", name).unwrap();
    json!([{"apiVersion": stored["apiVersion"], "kind": kind, "name": name, "uid": stored["metadata"]["uid"], "controller": true}])
}

/// An object with a pod template that uses GMSA.
fn workload(api_version: &str, kind: &str, name: &str, spec: &Value) -> Value {
    let mut workload = json!({"apiVersion": api_version, "kind": kind, "spec": spec});
    workload["metadata"] = json!({"name": name, "namespace": "shop"});
    workload["spec"]["template"] = json!({"metadata": {"labels": {"app": name}}, "spec": {
        "serviceAccountName": "web",
        "nodeSelector": {"kubernetes.io/os": "windows"},
        "securityContext": {"windowsOptions": {"gmsaCredentialSpecName": "webapp1"}},
        "containers": [{"name": "iis", "image": "registry/shop:4.2-ltsc2022"}],
    }});
    workload
}

/// The Deployment `shop/web`, which wants one pod, and its ReplicaSet.
fn deployment(api: &SimulatedApi) {
    api.apply(workload("apps/v1", "Deployment", "web", &json!({"replicas": 1})));
    let mut replica_set = workload("apps/v1", "ReplicaSet", "web-1", &json!({"replicas": 1}));
    replica_set["metadata"]["ownerReferences"] = controller(api, "Deployment", "web");
    api.apply(replica_set);
}

/// Its pod, with this status, on a node where one is named.
fn pod_of_it(api: &SimulatedApi, name: &str, node: Option<&str>, status: &Value) -> Value {
    let mut web = pod(name, &json!({"gmsaCredentialSpecName": "webapp1"}));
    let contents = api.object("pods", "shop", "web").unwrap();
    web["spec"]["securityContext"] = contents["spec"]["securityContext"].clone();
    web["spec"]["containers"][0]["image"] = json!("registry/shop:4.2-ltsc2022");
    web["spec"]["nodeName"] = json!(node);
    web["metadata"]["ownerReferences"] = controller(api, "ReplicaSet", "web-1");
    web["status"] = status.clone();
    web
}

/// What the walk through `shop/web` prints, with the exit code.
async fn walked(fault: impl FnOnce(&SimulatedApi)) -> String {
    let api = healthy().await;
    fault(&api);
    shown(&run(&api, &["why", "deploy/web", "-n", "shop"]).await)
}

/// What runs on `win1`.
fn running() -> Value {
    json!({"phase": "Running", "containerStatuses": [{"name": "iis", "ready": true, "state": {"running": {}}}]})
}

fn healthy_deployment(api: &SimulatedApi) {
    deployment(api);
    api.apply(pod_of_it(api, "web-1-a", Some("win1"), &running()));
}

#[tokio::test(flavor = "multi_thread")]
async fn json_has_the_same_steps() {
    let api = healthy().await;
    deployment(&api);
    api.authorize_by(Table::default());
    let output = run(&api, &["why", "deployments/web", "-n", "shop", "-o", "json"]).await;
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        printed["totals"],
        json!({"passed": 1, "noted": 0, "warned": 0, "failed": 1, "notChecked": 6, "ignored": 0})
    );
    let last = json!({"status": "skip", "about": "in the pod", "text": "not reached", "rule": "not-checked"});
    assert_eq!(printed["checks"][7], last);
    assert_eq!(output.status.code(), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_read_is_skipped_and_the_walk_goes_on() {
    let said = walked(|api| {
        healthy_deployment(api);
        for path in ["/serviceaccounts/web", "/nodes/win1", "/gmsacredentialspecs/webapp1"] {
            api.fault(Verb::Get, path, usize::MAX, Fault::forbidden());
        }
        api.fault(Verb::List, "/events", usize::MAX, Fault::forbidden());
    })
    .await;
    assert_printed("why-forbidden", &[("why deploy/web", said)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_events_the_condition_of_the_workload_says_why() {
    let fault = |api: &SimulatedApi| {
        deployment(api);
        let mut replica_set = api.object("replicasets", "shop", "web-1").unwrap();
        let message =
            "pods \"web-1-\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1";
        replica_set["status"]["conditions"] =
            json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}]);
        api.apply(replica_set);
        api.fault(Verb::List, "/events", usize::MAX, Fault::forbidden());
    };
    assert_printed("why-without-events", &[("why deploy/web", walked(fault).await)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn watching_ends_when_the_workload_runs_or_the_time_is_over() {
    let api = healthy().await;
    deployment(&api);
    let mut one = pod_of_it(&api, "web-1-a", Some("win1"), &json!({"phase": "Pending"}));
    api.apply(one.clone());
    let over = run(&api, &["doctor", "--workload", "shop/deploy/web", "--watch", "--timeout", "1ms"]).await;
    assert_eq!(over.status.code(), Some(1), "{}", text(&over.stderr));

    one["status"] = running();
    let list = json!({"items": [api.object("pods", "shop", "web-1-a").unwrap()]});
    api.apply(one);
    // The first look is at the pod that is not started yet.
    api.fault(Verb::List, "/namespaces/shop/pods", 1, Fault::Object(list));
    let watched = run(&api, &["doctor", "--workload", "shop/deploy/web", "--watch", "--timeout", "1m"]).await;
    let waiting = "waiting: sandbox: Pending on win1: its kubelet has created no sandbox yet\n";
    assert_eq!((text(&watched.stderr), watched.status.code()), (waiting, Some(0)), "{}", text(&watched.stdout));
    assert!(text(&watched.stdout).ends_with("pass  in the pod       run: kubectl gmsa verify shop/web-1-a\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_words_are_refused() {
    let api = healthy().await;
    let mut runs = Vec::new();
    for words in [
        "--workload shop/web/a/b",
        "--workload shop/po/web",
        "--watch",
        "--workload deploy/web --namespace a?b",
        "--workload shop/deploy/none",
    ] {
        let arguments: Vec<&str> = ["doctor"].into_iter().chain(words.split(' ')).collect();
        runs.push((words, shown(&run(&api, &arguments).await)));
    }
    assert_printed("why-wrong-words", &runs);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_spec_that_cannot_be_read_is_no_fault_of_the_pod() {
    let api = healthy().await;
    api.fault(Verb::Get, "/gmsacredentialspecs/webapp1", usize::MAX, Fault::forbidden());
    let output = run(&api, &["why", "pod/web", "-n", "shop"]).await;
    assert_printed("why-spec-forbidden", &[("why pod/web", shown(&output))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_read_in_pages() {
    let api = healthy().await;
    for index in 0..501 {
        let mut set = workload("apps/v1", "StatefulSet", &format!("s{index}"), &json!({"replicas": 0}));
        set["spec"]["template"]["spec"]["securityContext"] = json!({});
        api.apply(set);
    }
    let output = run(&api, &["doctor"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    let pages: Vec<String> =
        api.requests(Verb::List, "/statefulsets").into_iter().map(|request| request.path).collect();
    assert_eq!(pages.len(), 2, "{pages:?}");
    assert!(pages[0].ends_with("?limit=500") && pages[1].contains("&continue="), "{pages:?}");
}
