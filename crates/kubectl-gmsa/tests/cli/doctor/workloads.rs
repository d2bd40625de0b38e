//! What `doctor` says of workloads: the first cause of each that does not run, in the list and in a walk through one.

mod broken;
mod kinds;
mod walk;

use serde_json::{Value, json};

use super::{
    super::{
        cluster::{healthy, pod, run},
        support::{Fault, SimulatedApi, Table, Verb},
        text,
    },
    explained,
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

/// A warning about an object, as its component makes it.
fn event(api: &SimulatedApi, plural: &str, object: &str, reason: &str, message: &str) {
    let uid = api.object(plural, "shop", object).unwrap()["metadata"]["uid"].clone();
    // One event of a reason for each message.
    let name = format!("{object}.{reason}.{}", message.len()).to_lowercase();
    let path = (reason == "Failed").then_some("spec.containers{iis}");
    api.apply(json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": "shop"},
        "involvedObject": {"uid": uid, "name": object, "namespace": "shop", "fieldPath": path},
        "type": "Warning", "reason": reason, "message": message, "lastTimestamp": "2026-11-01T10:00:00Z",
    }));
}

/// What the default run says of workloads: each complaint, and what to do.
async fn listed(fault: impl FnOnce(&SimulatedApi)) -> Vec<(String, String)> {
    let found = explained(fault).await;
    found.into_iter().filter(|(complaint, _)| complaint.contains(" workloads: ")).collect()
}

/// What the walk through `shop/web` prints, and the exit code.
async fn walked(fault: impl FnOnce(&SimulatedApi)) -> (String, Option<i32>) {
    let api = healthy().await;
    fault(&api);
    let output = run(&api, &["doctor", "--workload", "shop/deploy/web"]).await;
    assert_eq!(text(&output.stderr), "");
    (text(&output.stdout).to_owned(), output.status.code())
}
