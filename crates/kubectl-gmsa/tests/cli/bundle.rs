//! `doctor --bundle`: what is in the file, and above all what is not.

use std::{fs, path::Path, process::Output};

use serde_json::{Value, json};

use super::{
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

#[tokio::test(flavor = "multi_thread")]
async fn nothing_secret_is_in_it_and_nothing_else_than_these_fields() {
    let api = planted().await;
    let folder = tempfile::tempdir().unwrap();
    let output = bundle(&api, folder.path()).await;
    assert_eq!(text(&output.stderr), "gmsa.json written: read it before you send it to anybody\n");
    assert_eq!(output.status.code(), Some(1), "the credential spec is wrong");
    let file = folder.path().join("gmsa.json");
    let written = fs::read_to_string(&file).unwrap();
    // The authorities that the API server trusts are public.
    let without_authorities: String = written.lines().filter(|line| !line.contains("\"caBundle\": ")).collect();
    for secret in [PLANTED, "244818ae", "CmsPlugins", "LS0tLS1CRUdJTiB"] {
        let at = without_authorities.find(secret);
        assert!(at.is_none(), "{secret}: {}", &without_authorities[at.unwrap().saturating_sub(200)..]);
    }
    let written: Value = serde_json::from_str(&written).unwrap();
    let pods = &written["lists"]["/api/v1/pods"];
    assert_eq!(names(pods), ["gmsa/webhook-a", "shop/web"]);
    assert_eq!(pods["gmsa/webhook-a"]["status"]["conditions"][0]["message"], "got <left out>");
    assert_eq!(pods["gmsa/webhook-a"]["spec"]["containers"][0]["args"], json!([]));
    assert_eq!(pods["gmsa/webhook-a"]["spec"]["containers"][0]["env"], json!([]));
    let options =
        json!({"gmsaCredentialSpecName": "webapp1", "gmsaCredentialSpec": "{\"leftOut\":\"other contents\"}"});
    assert_eq!(pods["shop/web"]["spec"]["securityContext"]["windowsOptions"], options);
    assert_eq!(names(&written["lists"]["/api/v1/events?fieldSelector=type%3DWarning"]), ["gmsa/a"]);
    let spec = &written["lists"]["/apis/windows.k8s.io/v1/gmsacredentialspecs"]["webapp1"];
    assert_eq!(
        (&spec["credspec"], spec["findings"][1]["rule"].as_str()),
        (&json!({"leftOut": "webapp1"}), Some("sid"))
    );
    let texts = &written["texts"];
    assert_eq!(texts["/api/v1/namespaces/gmsa/pods/webhook-a:9090/proxy/metrics"], METRICS);
    let log = "{\"level\":\"INFO\",\"message\":\"serving\"}\nAuthorization: Bearer <left out>\n<left out>\n";
    assert_eq!(
        texts["/api/v1/namespaces/gmsa/pods/webhook-a/log?container=webhook&tailLines=200&limitBytes=65536"],
        log
    );
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

fn names(objects: &Value) -> Vec<&str> {
    objects.as_object().unwrap().keys().map(String::as_str).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_is_judged_as_the_cluster_was() {
    let api = planted().await;
    api.fault(Verb::List, "/api/v1/nodes", usize::MAX, Fault::forbidden());
    let folder = tempfile::tempdir().unwrap();
    let live = bundle(&api, folder.path()).await;
    let recorded = program(folder.path()).args(["doctor", "--from", "gmsa.json"]).output().unwrap();
    // What is wrong with the contents is said, and nothing of them; the domains in them are what the DNS is asked for.
    let comparable = |output: &Output| {
        let lines = text(&output.stdout).lines();
        lines
            .filter(|line| ["webapp1: ", "  DNS  ", "-> "].iter().all(|of| !line.contains(of)))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert!(comparable(&live).iter().any(|line| line.starts_with("skip  Windows nodes")), "{live:?}");
    let (lines, found) = (comparable(&live), comparable(&recorded));
    let differ: Vec<_> = lines.iter().filter(|line| !found.contains(line)).collect();
    assert!(differ.is_empty(), "{differ:#?}\n{found:#?}");
    assert_eq!(recorded.status.code(), live.status.code());
    for command in [&["why", "pod/web", "-n", "shop"][..], &["outdated", "-A"], &["check", "-A"]] {
        let output = program(folder.path()).args(command).args(["--from", "gmsa.json"]).output().unwrap();
        assert_ne!(text(&output.stdout), "", "{command:?}: {}", text(&output.stderr));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_bundle_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("old.json"), "{\"version\": 1}").unwrap();
    let output = program(folder.path()).args(["doctor", "--from", "old.json"]).output().unwrap();
    assert!(text(&output.stderr).starts_with("error: old.json is no bundle of this version: "), "{output:?}");
    assert_eq!(output.status.code(), Some(2));
}
