//! `doctor --bundle`: what is in the file, and above all what is not.

use std::{collections::BTreeSet, fs, path::Path, process::Output};

use serde_json::{Value, json};

use super::super::{
    cluster::{healthy, kind, pod},
    program,
    support::{Fault, SimulatedApi, Verb},
    text,
};

/// What stands wherever a secret may.
const PLANTED: &str = "PLANTED";

const METRICS: &str = "gmsa_webhook_ready 1\n";
const LOG: &str = "{\"level\":\"INFO\",\"message\":\"serving\"}\nAuthorization: Bearer PLANTED-token\n{\"contents\":\"{\\\"CmsPlugins\\\":[\\\"PLANTED\\\"]}\"}\n";

/// The healthy cluster with a Deployment, its ReplicaSet, an event, and secrets in every object.
async fn planted() -> SimulatedApi {
    let api = healthy().await;
    for known in [
        kind("v1", "Service", "services", true),
        kind("v1", "Event", "events", true),
        kind("apps/v1", "ReplicaSet", "replicasets", true),
    ] {
        api.define(known);
    }
    let annotations = json!({
        "kubectl.kubernetes.io/last-applied-configuration": PLANTED,
        "token": PLANTED,
    });
    let labels = json!({"app": "webhook"});
    let metadata =
        |name: &str| json!({"name": name, "namespace": "gmsa", "labels": labels, "annotations": annotations});
    let container = json!({
        "name": "webhook",
        "image": "gmsa-webhook:0.1.0",
        "args": [format!("--token={PLANTED}")],
        "command": [PLANTED],
        "env": [{"name": "TOKEN", "value": PLANTED}],
        "ports": [{"name": "admin", "containerPort": 9090}],
    });
    let template =
        json!({"metadata": {"labels": labels, "annotations": annotations}, "spec": {"containers": [container]}});
    let condition = json!({"type": "Ready", "status": "False", "message": "got eyJhbGciOiJSUzI1NiJ9.PLANTED.c2ln"});
    api.apply(
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata("webhook"), "spec": {"selector": labels}}),
    );
    for kind in ["Deployment", "ReplicaSet"] {
        let status = json!({"replicas": 2, "readyReplicas": 1, "conditions": [condition]});
        let spec = json!({"replicas": 2, "template": template});
        api.apply(json!({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata("webhook"), "spec": spec, "status": status}));
    }
    let state = json!({"terminated": {"exitCode": 1, "reason": "Error", "message": format!("password: {PLANTED}")}});
    let statuses = json!([{"name": "webhook", "ready": false, "restartCount": 3, "lastState": state}]);
    let status = json!({"phase": "Running", "conditions": [condition], "containerStatuses": statuses});
    let spec = json!({"serviceAccountName": "webhook", "nodeName": "linux1", "containers": [container], "volumes": [{"name": PLANTED}]});
    api.apply(
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata("webhook-a"), "spec": spec, "status": status}),
    );
    // Of somebody else, in the same namespace.
    let other = json!({"name": "other", "namespace": "gmsa", "labels": {"app": PLANTED}});
    api.apply(
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": other, "spec": {"containers": [{"name": PLANTED}]}}),
    );
    for (name, about) in [("a", "webhook-a"), ("b", "other")] {
        let message = if name == "a" { "Back-off restarting failed container".to_owned() } else { PLANTED.to_owned() };
        api.apply(json!({
            "apiVersion": "v1", "kind": "Event", "metadata": metadata(name), "type": "Warning", "reason": "BackOff",
            "message": message, "count": 3, "lastTimestamp": "2026-11-23T05:00:00Z",
            "involvedObject": {"kind": "Pod", "name": about, "fieldPath": PLANTED},
        }));
    }
    let mut secret = api.object("secrets", "gmsa", "webhook-tls").unwrap();
    secret["data"] = json!({"tls.key": PLANTED});
    api.apply(secret);
    let mut spec = api.object("gmsacredentialspecs", "", "webapp1").unwrap();
    spec["metadata"] = json!({"name": "webapp1", "annotations": annotations});
    spec["credspec"]["DomainJoinConfig"]["Sid"] = json!(PLANTED);
    spec["credspec"][PLANTED] = json!(PLANTED);
    api.apply(spec);
    let inline = json!({"gmsaCredentialSpecName": "webapp1", "gmsaCredentialSpec": format!("{{\"CmsPlugins\": \"{PLANTED}\"}}")});
    api.apply(pod("web", &inline));
    for plural in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        let mut configuration = api.object(plural, "", "gmsa").unwrap();
        configuration["metadata"]["annotations"] = annotations.clone();
        api.apply(configuration);
    }
    api.fault(Verb::Get, "/proxy/metrics", usize::MAX, Fault::Text(200, METRICS));
    api.fault(Verb::Get, "/pods/webhook-a/log", usize::MAX, Fault::Text(200, LOG));
    api
}

async fn bundle(api: &SimulatedApi, folder: &Path) -> Output {
    fs::write(folder.join("config"), api.kubeconfig()).unwrap();
    let mut command = program(folder);
    command.args(["--kubeconfig", "config", "doctor", "--bundle", "gmsa.json"]);
    tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap()
}

/// The paths of all fields; the items of a list have one in common.
fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                paths(value, &format!("{path}/{field}"), found);
            }
        }
        Value::Array(items) if items.iter().any(|item| !item.is_string()) => {
            for item in items {
                paths(item, path, found);
            }
        }
        _ => drop(found.insert(path.to_owned())),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_secret_is_in_it_and_nothing_else_than_these_fields() {
    let api = planted().await;
    let folder = tempfile::tempdir().unwrap();
    let output = bundle(&api, folder.path()).await;
    assert_eq!(text(&output.stderr), "gmsa.json written: read it before you send it to anybody\n");
    assert_eq!(output.status.code(), Some(1), "the credential spec is wrong");
    let file = folder.path().join("gmsa.json");
    let written = fs::read_to_string(&file).unwrap();
    for secret in [PLANTED, "244818ae", "CmsPlugins", "LS0tLS1CRUdJTiB"] {
        let at = written.find(secret);
        assert!(at.is_none(), "{secret}: {}", &written[at.unwrap().saturating_sub(200)..]);
    }
    let mut found = BTreeSet::new();
    let written: Value = serde_json::from_str(&written).unwrap();
    paths(&written, "", &mut found);
    let found: Vec<&str> = found.iter().map(String::as_str).collect();
    assert_eq!(
        found,
        include_str!("../../fixtures/bundle-fields.txt").lines().collect::<Vec<_>>(),
        "{}",
        found.join("\n")
    );
    let replicas = &written["replicas"][0];
    assert_eq!(replicas["pods"].as_array().unwrap().len(), 1);
    assert_eq!(replicas["pods"][0]["conditions"][0]["message"], "got <left out>");
    assert_eq!(replicas["pods"][0]["containers"][0]["env"], json!(["TOKEN"]));
    assert_eq!(replicas["events"].as_array().unwrap().len(), 1);
    assert_eq!(replicas["metrics"], json!({"webhook-a": METRICS}));
    let log = ["{\"level\":\"INFO\",\"message\":\"serving\"}", "Authorization: Bearer <left out>", "<left out>"];
    assert_eq!(replicas["logs"], json!({"webhook-a": log}));
    let user =
        json!({"namespace": "shop", "name": "web", "owner": null, "phase": "Running", "credentialSpecs": ["webapp1"]});
    assert_eq!(written["pods"], json!([user]));
    assert_eq!(written["notRead"], json!([]));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_file_is_overwritten_and_nothing_is_asked_before_that_is_known() {
    let api = healthy().await;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("gmsa.json"), "mine").unwrap();
    let output = bundle(&api, folder.path()).await;
    let exists = "error: gmsa.json exists: --bundle overwrites no file\n";
    assert_eq!((text(&output.stdout), text(&output.stderr), output.status.code()), ("", exists, Some(2)));
    assert_eq!(fs::read_to_string(folder.path().join("gmsa.json")).unwrap(), "mine");
    assert_eq!(api.count(Verb::Get, "/version"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_read_is_listed() {
    let api = planted().await;
    api.fault(Verb::List, "/namespaces/gmsa/events", usize::MAX, Fault::forbidden());
    let folder = tempfile::tempdir().unwrap();
    bundle(&api, folder.path()).await;
    let written: Value = serde_json::from_str(&fs::read_to_string(folder.path().join("gmsa.json")).unwrap()).unwrap();
    assert_eq!(
        written["notRead"],
        json!(["/api/v1/namespaces/gmsa/events: the API server answered 403: not allowed here"])
    );
    assert_eq!(written["replicas"][0]["events"], json!([]));
}
