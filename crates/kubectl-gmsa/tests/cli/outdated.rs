//! `outdated`, against the simulated API server: what it lists by owner, and what it restarts.

use serde_json::{Value, json};

use super::{
    assert_printed, assert_text,
    cluster::{healthy, kind, pod, run},
    shown,
    support::{Fault, SimulatedApi, Verb},
    text,
};

/// A pod with the label `app`, and of an owner, that carries what its credential spec had once.
fn old_pod(name: &str, app: &str, owner: Option<Value>) -> Value {
    let mut pod = pod(name, &json!({"gmsaCredentialSpecName": "webapp1", "gmsaCredentialSpec": "{\"CmsPlugins\":[]}"}));
    pod["metadata"]["labels"] = json!({"app": app});
    pod["metadata"]["ownerReferences"] = json!(owner.into_iter().collect::<Vec<_>>());
    pod
}

/// The reference to an owner by its controller; of one that is not in the cluster, the `uid` is made up.
fn owner(api: &SimulatedApi, api_version: &str, kind: &str, name: &str) -> Value {
    let stored = api.object(&format!("{}s", kind.to_ascii_lowercase()), "shop", name);
    let uid = stored.map_or(json!("1"), |stored| stored["metadata"]["uid"].clone());
    json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": true})
}

/// A workload of pods with the label `app` that use GMSA.
fn workload(kind: &str, name: &str, app: &str, spec: &Value) -> Value {
    let mut workload =
        json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "shop"}, "spec": spec});
    workload["spec"]["selector"] = json!({"matchLabels": {"app": app}});
    workload["spec"]["template"] = json!({"metadata": {"labels": {"app": app}}, "spec": {
        "securityContext": {"windowsOptions": {"gmsaCredentialSpecName": "webapp1"}}, "containers": [{"name": "iis"}],
    }});
    workload
}

/// A healthy cluster, and pods of every kind of owner that are behind.
pub async fn behind() -> SimulatedApi {
    let api = healthy().await;
    for (name, plural) in [("ReplicaSet", "replicasets"), ("Deployment", "deployments"), ("DaemonSet", "daemonsets")] {
        api.define(kind("apps/v1", name, plural, true));
    }
    api.apply(workload("Deployment", "web", "web", &json!({})));
    let mut replica_set = workload("ReplicaSet", "web-1", "web", &json!({}));
    replica_set["metadata"]["ownerReferences"] = json!([owner(&api, "apps/v1", "Deployment", "web")]);
    api.apply(replica_set);
    api.apply(workload("ReplicaSet", "lone", "lone", &json!({})));
    api.apply(workload("DaemonSet", "agent", "agent", &json!({"updateStrategy": {"type": "OnDelete"}})));
    let of = |api_version, kind, name| Some(owner(&api, api_version, kind, name));
    for (name, app, owner) in [
        ("web-1-a", "web", of("apps/v1", "ReplicaSet", "web-1")),
        ("web-1-b", "web", of("apps/v1", "ReplicaSet", "web-1")),
        ("agent-x", "agent", of("apps/v1", "DaemonSet", "agent")),
        ("lone-a", "lone", of("apps/v1", "ReplicaSet", "lone")),
        ("sum", "sum", of("batch/v1", "Job", "sum")),
        ("odd", "odd", of("example.com/v1", "Fleet", "odd")),
        ("bare", "bare", None),
    ] {
        api.apply(old_pod(name, app, owner));
    }
    // One of its containers was not reviewed: it is behind all the same.
    let mut half = old_pod("web-1-b", "web", of("apps/v1", "ReplicaSet", "web-1"));
    half["spec"]["containers"][0]["securityContext"] = json!({"windowsOptions": {"gmsaCredentialSpecName": "webapp1"}});
    api.apply(half);
    let mut ended = old_pod("ended", "ended", None);
    ended["status"]["phase"] = json!("Succeeded");
    api.apply(ended);
    // Its credential spec does not exist any more: a restart would only have new pods refused.
    let mut unmatched = old_pod("unmatched", "unmatched", of("apps/v1", "DaemonSet", "other"));
    unmatched["spec"]["securityContext"]["windowsOptions"]["gmsaCredentialSpecName"] = json!("gone");
    api.apply(unmatched);
    let mut leaving = old_pod("leaving", "leaving", None);
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    api.apply(leaving);
    api
}

/// What is printed of that cluster.
const REPORT: &str = include_str!("../printed/outdated");

#[tokio::test(flavor = "multi_thread")]
async fn pods_that_are_behind_are_listed_by_owner() {
    let api = behind().await;
    let output = run(&api, &["outdated", "-A"]).await;
    assert_text("outdated", text(&output.stdout));
    assert_eq!((text(&output.stderr), output.status.code()), ("", Some(1)));
    // Two pods of one ReplicaSet ask for it once.
    assert_eq!(api.count(Verb::Get, "/replicasets/web-1"), 1);
    let output = run(&api, &["outdated", "--namespace", "default"]).await;
    assert_eq!((text(&output.stdout), output.status.code()), ("no problems found in 0 objects\n", Some(0)));
    for (format, sentence) in [("sarif", "\"Deployment shop/web: "), ("github", "::Deployment shop/web: ")] {
        let output = run(&api, &["outdated", "-A", "-o", format]).await;
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(text(&output.stdout).matches(sentence).count(), 1, "{}", text(&output.stdout));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_replaces_its_pods_is_restarted() {
    let api = behind().await;
    let said = |output: &std::process::Output| shown(output).replace(REPORT, "(REPORT)\n");
    api.fault(Verb::Patch, "/apis/apps/v1/", usize::MAX, Fault::Object(json!({})));
    let output = run(&api, &["outdated", "-A", "--restart"]).await;
    let mut runs = vec![("--restart", said(&output))];
    assert_eq!(api.count(Verb::Patch, ""), 0);

    let output = run(&api, &["outdated", "-A", "--restart", "--dry-run=server"]).await;
    runs.push(("--restart --dry-run=server", said(&output)));
    let patches = api.requests(Verb::Patch, "");
    assert_eq!(patches[1].path, "/apis/apps/v1/namespaces/shop/deployments/web?fieldManager=kubectl-gmsa&dryRun=All");

    api.forget_requests();
    api.apply(workload("Deployment", "web", "web", &json!({"paused": true})));
    let output = run(&api, &["outdated", "-A", "--restart", "--yes"]).await;
    runs.push(("--restart --yes, with a paused Deployment", said(&output)));
    assert_printed("outdated-restart", &runs);
    let patches = api.requests(Verb::Patch, "");
    assert_eq!(patches.len(), 1);
    let annotations = patches[0].body.pointer("/spec/template/metadata/annotations").unwrap().as_object().unwrap();
    let stamp = annotations["kubectl.kubernetes.io/restartedAt"].as_str().unwrap();
    assert_eq!((annotations.len(), stamp.len(), &stamp[10..11]), (1, 20, "T"));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_restarted_is_a_clean_end() {
    let api = behind().await;
    api.fault(Verb::Patch, "/apis/apps/v1/", usize::MAX, Fault::Object(json!({})));
    for pod in ["agent-x", "lone-a", "sum", "odd", "bare"] {
        api.delete("pods", "shop", pod);
    }
    let output = run(&api, &["outdated", "-A", "--restart", "--yes"]).await;
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    api.delete("pods", "shop", "unmatched");
    let output = run(&api, &["outdated", "-A", "--restart", "--yes"]).await;
    assert!(text(&output.stdout).ends_with("\ndeployment/web restarted in shop\n"), "{}", text(&output.stdout));
    assert_eq!(output.status.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scope_is_the_namespace_of_the_context() {
    let api = behind().await;
    let output = run(&api, &["outdated"]).await;
    assert_eq!((text(&output.stdout), output.status.code()), ("no problems found in 0 objects\n", Some(0)));
    assert_eq!(api.count(Verb::List, "/api/v1/namespaces/default/pods"), 1);
    assert_eq!(api.count(Verb::List, "/api/v1/pods"), 0);
    let output = run(&api, &["outdated", "--namespace", "shop"]).await;
    assert_eq!((text(&output.stdout), output.status.code()), (REPORT, Some(1)));
    assert_eq!(api.count(Verb::List, "/api/v1/pods"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_pod_is_believed_who_owns_it() {
    let api = behind().await;
    for pod in ["web-1-a", "web-1-b", "agent-x", "lone-a", "sum", "odd", "bare", "unmatched"] {
        api.delete("pods", "shop", pod);
    }
    let mut plain = workload("Deployment", "plain", "plain", &json!({}));
    plain["spec"]["template"]["spec"]["securityContext"] = json!({});
    api.apply(plain);
    let reference = |kind, name, uid: Option<&str>| {
        let mut owner = owner(&api, "apps/v1", kind, name);
        owner["uid"] = uid.map_or(owner["uid"].clone(), |uid| json!(uid));
        Some(owner)
    };
    for (pod, app, owner) in [
        ("a", "web", reference("Deployment", "web", Some("made-up"))),
        ("b", "other", reference("Deployment", "web", None)),
        ("c", "plain", reference("Deployment", "plain", None)),
        ("d", "web", reference("Deployment", "gone", None)),
        ("e", "web", reference("Deployment", "web/../../../kube-system/deployments/coredns", None)),
        ("f", "web", reference("ReplicaSet", "web-1?x=", None)),
        ("g", "other", reference("ReplicaSet", "web-1", None)),
        ("h", "agent", reference("DaemonSet", "agent", None)),
    ] {
        api.apply(old_pod(pod, app, owner));
    }
    api.fault(Verb::Get, "/daemonsets/agent", 1, Fault::forbidden());
    api.forget_requests();
    let output = run(&api, &["outdated", "-A", "--restart", "--yes"]).await;
    assert_printed("outdated-strangers", &[("--restart --yes", shown(&output))]);
    assert_eq!(api.count(Verb::Patch, ""), 0);
    assert!(api.requests(Verb::Get, "").iter().all(|request| !request.path.contains("coredns")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_that_is_under_way_is_not_started_again() {
    let api = behind().await;
    for pod in ["lone-a", "sum", "odd", "bare", "unmatched"] {
        api.delete("pods", "shop", pod);
    }
    let restart = ["outdated", "-n", "shop", "--restart", "--yes"];
    let first = run(&api, &restart).await;
    assert_eq!(text(&first.stderr), "");
    assert_eq!(api.count(Verb::Patch, ""), 2);
    // The old pods are still there.
    let second = run(&api, &restart).await;
    assert_printed("outdated-again", &[("--restart --yes", shown(&second))]);
    assert_eq!(api.count(Verb::Patch, ""), 2);
    // A pod of the new template that is behind too, because the credential spec changed once more.
    let stamp =
        api.object("deployments", "shop", "web").unwrap()["spec"]["template"]["metadata"]["annotations"].clone();
    let mut new = old_pod("web-2-a", "web", Some(owner(&api, "apps/v1", "Deployment", "web")));
    new["metadata"]["annotations"] = stamp;
    api.apply(new);
    let third = run(&api, &restart).await;
    assert!(text(&third.stdout).ends_with("\ndeployment/web restarted in shop\n"), "{}", text(&third.stdout));
    assert_eq!(api.count(Verb::Patch, "/deployments/web"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_for_one_workload_does_not_end_the_others() {
    let api = behind().await;
    api.fault(Verb::Patch, "/daemonsets/agent", usize::MAX, Fault::forbidden());
    let output = run(&api, &["outdated", "-A", "--restart", "--yes"]).await;
    assert_printed("outdated-failed", &[("--restart --yes", shown(&output))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_cannot_be_parsed_is_reported_and_the_rest_is_listed() {
    let api = behind().await;
    let mut odd = pod("unknown", &json!({}));
    odd["spec"]["containers"] = json!("none");
    api.apply(odd);
    let output = run(&api, &["outdated", "-A"]).await;
    let mut runs = vec![("-A", shown(&output))];
    let output = run(&api, &["outdated", "-A", "--restart", "--yes"]).await;
    runs.push(("--restart --yes", shown(&output)));
    assert_printed("outdated-unreadable", &runs);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_pods_are_read_in_smaller_pages() {
    let api = behind().await;
    let mut large = pod("large", &json!({}));
    large["metadata"]["annotations"] = json!({"large": "x".repeat(100_000)});
    for number in 0..400 {
        large["metadata"]["name"] = json!(format!("large-{number}"));
        api.apply(large.clone());
    }
    let output = run(&api, &["outdated", "-A", "--request-timeout", "2m"]).await;
    assert_eq!((text(&output.stdout), text(&output.stderr)), (REPORT, ""));
    let limits = |limit: &str| api.count(Verb::List, &format!("/api/v1/pods?limit={limit}"));
    assert_eq!((limits("500"), limits("125")), (1, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_whose_token_expired_starts_again() {
    let api = behind().await;
    let small = pod("small", &json!({}));
    for number in 0..500 {
        let mut small = small.clone();
        small["metadata"]["name"] = json!(format!("small-{number}"));
        api.apply(small);
    }
    api.fault(Verb::List, "&continue=", 1, Fault::gone());
    let output = run(&api, &["outdated", "-A"]).await;
    assert_eq!((text(&output.stdout), text(&output.stderr)), (REPORT, ""));
    assert_eq!(api.count(Verb::List, "/api/v1/pods"), 4);
    // Not for ever.
    api.fault(Verb::List, "&continue=", usize::MAX, Fault::gone());
    let output = run(&api, &["outdated", "-A"]).await;
    let said = "error: the API server answered 410: too old resource version: 1 (2)\n";
    assert_eq!((text(&output.stderr), output.status.code()), (said, Some(2)));
}
