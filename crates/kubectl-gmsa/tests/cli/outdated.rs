//! `outdated`, against the simulated API server: what it lists by owner, and what it restarts.

use serde_json::{Value, json};

use super::{
    cluster::{healthy, kind, pod, run},
    support::{Fault, SimulatedApi, Verb},
    text,
};

/// A pod of `owner` (`KIND/NAME`) that carries what its credential spec had once.
fn old_pod(name: &str, owner: Option<(&str, &str, &str)>) -> Value {
    let mut pod = pod(name, &json!({"gmsaCredentialSpecName": "webapp1", "gmsaCredentialSpec": "{\"CmsPlugins\":[]}"}));
    let reference = |(version, kind, name): (&str, &str, &str)| json!({"apiVersion": version, "kind": kind, "name": name, "uid": "1", "controller": true});
    pod["metadata"]["ownerReferences"] = json!(owner.map(reference).into_iter().collect::<Vec<_>>());
    pod
}

fn workload(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "shop"}, "spec": spec})
}

/// A healthy cluster, and pods of every kind of owner that are behind.
pub async fn behind() -> SimulatedApi {
    let api = healthy().await;
    for (name, plural) in [("ReplicaSet", "replicasets"), ("Deployment", "deployments"), ("DaemonSet", "daemonsets")] {
        api.define(kind("apps/v1", name, plural, true));
    }
    let mut replica_set = workload("ReplicaSet", "web-1", &json!({}));
    replica_set["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1", "controller": true}]);
    api.apply(replica_set);
    api.apply(workload("Deployment", "web", &json!({})));
    api.apply(workload("DaemonSet", "agent", &json!({"updateStrategy": {"type": "OnDelete"}})));
    for (name, owner) in [
        ("web-1-a", Some(("apps/v1", "ReplicaSet", "web-1"))),
        ("web-1-b", Some(("apps/v1", "ReplicaSet", "web-1"))),
        ("agent-x", Some(("apps/v1", "DaemonSet", "agent"))),
        ("lone-a", Some(("apps/v1", "ReplicaSet", "lone"))),
        ("sum", Some(("batch/v1", "Job", "sum"))),
        ("odd", Some(("example.com/v1", "Fleet", "odd"))),
        ("bare", None),
    ] {
        api.apply(old_pod(name, owner));
    }
    // One of its containers was not reviewed: it is behind all the same.
    let mut half = old_pod("web-1-b", Some(("apps/v1", "ReplicaSet", "web-1")));
    half["spec"]["containers"][0]["securityContext"] = json!({"windowsOptions": {"gmsaCredentialSpecName": "webapp1"}});
    api.apply(half);
    let mut ended = old_pod("ended", None);
    ended["status"]["phase"] = json!("Succeeded");
    api.apply(ended);
    // Its credential spec does not exist any more: a restart would only have new pods refused.
    let mut unmatched = old_pod("unmatched", Some(("apps/v1", "DaemonSet", "other")));
    unmatched["spec"]["securityContext"]["windowsOptions"]["gmsaCredentialSpecName"] = json!("gone");
    api.apply(unmatched);
    let mut leaving = old_pod("leaving", None);
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    api.apply(leaving);
    api
}

const REPORT: &str = "\
warning[contents-outdated] DaemonSet shop/agent
  1 of its pods carry other contents than their credential spec has now: agent-x
  so: a pod keeps its contents until it is replaced
  fix: kubectl gmsa outdated --restart, or: kubectl rollout restart daemonset/agent --namespace shop

warning[contents-outdated] Deployment shop/web
  2 of its pods carry other contents than their credential spec has now: web-1-a, web-1-b
  so: a pod keeps its contents until it is replaced
  fix: kubectl gmsa outdated --restart, or: kubectl rollout restart deployment/web --namespace shop

warning[contents-outdated] Fleet shop/odd
  1 of its pods carry other contents than their credential spec has now: odd
  so: a pod keeps its contents until it is replaced
  fix: kubectl delete pod --namespace shop odd, if Fleet odd creates new ones

warning[contents-outdated] Job shop/sum
  1 of its pods carry other contents than their credential spec has now: sum
  so: a pod keeps its contents until it is replaced
  fix: wait until it ends, or delete and create it again: kubectl delete job --namespace shop sum

warning[contents-outdated] Pod shop/bare
  carries other contents than its credential spec has now
  so: a pod keeps its contents until it is replaced
  fix: kubectl delete pod --namespace shop bare, then create it again from its manifest: no controller does

warning[contents-outdated] ReplicaSet shop/lone
  1 of its pods carry other contents than their credential spec has now: lone-a
  so: a pod keeps its contents until it is replaced
  fix: kubectl delete pod --namespace shop lone-a: it creates new ones

warning[contents-outdated] Pod shop/unmatched
  carries contents, and there is no credential spec to compare them with
  fix: create the credential spec that gmsaCredentialSpecName names, or set that name where it is missing: otherwise new pods are refused

7 warnings in 9 objects
";

#[tokio::test(flavor = "multi_thread")]
async fn pods_that_are_behind_are_listed_by_owner() {
    let api = behind().await;
    let output = run(&api, &["outdated"]).await;
    assert_eq!((text(&output.stdout), output.status.code()), (REPORT, Some(1)), "{}", text(&output.stderr));
    // Two pods of one ReplicaSet ask for it once.
    assert_eq!(api.count(Verb::Get, "/replicasets/web-1"), 1);
    let output = run(&api, &["outdated", "--namespace", "default"]).await;
    assert_eq!((text(&output.stdout), output.status.code()), ("no problems found in 0 objects\n", Some(0)));
    for (format, sentence) in [("sarif", "\"Deployment shop/web: "), ("github", "::Deployment shop/web: ")] {
        let output = run(&api, &["outdated", "-o", format]).await;
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(text(&output.stdout).matches(sentence).count(), 1, "{}", text(&output.stdout));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_replaces_its_pods_is_restarted() {
    let api = behind().await;
    api.fault(Verb::Patch, "/apis/apps/v1/", usize::MAX, Fault::Object(json!({})));
    let output = run(&api, &["outdated", "--restart"]).await;
    assert_eq!(
        (text(&output.stderr), output.status.code()),
        ("error: there is no terminal to ask for confirmation: use --yes\n", Some(2))
    );
    assert_eq!(api.count(Verb::Patch, ""), 0);

    let said = |output: &std::process::Output| text(&output.stdout).strip_prefix(REPORT).unwrap().to_owned();
    let output = run(&api, &["outdated", "--restart", "--dry-run=server"]).await;
    let on_delete =
        "daemonset/agent replaces a pod only when it is deleted (updateStrategy OnDelete): delete its pods\n";
    assert_eq!(
        said(&output),
        format!(
            "daemonset/agent restarted in shop (server dry run)\n{on_delete}deployment/web restarted in shop (server dry run)\n"
        )
    );
    let patches = api.requests(Verb::Patch, "");
    assert_eq!(patches[1].path, "/apis/apps/v1/namespaces/shop/deployments/web?fieldManager=kubectl-gmsa&dryRun=All");

    api.forget_requests();
    api.apply(workload("Deployment", "web", &json!({"paused": true})));
    let output = run(&api, &["outdated", "--restart", "--yes"]).await;
    let paused = "deployment/web in shop is paused, so it is not restarted: kubectl rollout resume deployment/web --namespace shop\n";
    assert_eq!(said(&output), format!("daemonset/agent restarted in shop\n{on_delete}{paused}"));
    assert_eq!(output.status.code(), Some(1));
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
    let output = run(&api, &["outdated", "--restart", "--yes"]).await;
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    api.delete("pods", "shop", "unmatched");
    let output = run(&api, &["outdated", "--restart", "--yes"]).await;
    assert!(text(&output.stdout).ends_with("\ndeployment/web restarted in shop\n"), "{}", text(&output.stdout));
    assert_eq!(output.status.code(), Some(0));
    api.fault(Verb::Get, "/deployments/web", 1, Fault::forbidden());
    let output = run(&api, &["outdated", "--restart", "--yes"]).await;
    assert_eq!(output.status.code(), Some(2));
}
