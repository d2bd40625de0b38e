//! `check --all-namespaces`, and `check --namespace` without files, against the simulated API server.

use std::process::Output;

use serde_json::{Value, json};

use super::{
    assert_printed,
    cluster::{configurations, healthy, kind, pod, run},
    shown,
    support::{Fault, SimulatedApi, Table, Verb},
    text,
};

/// The healthy cluster with all kinds of workloads.
///
/// It has two pods of its own: `shop/web`, and one of the webhook.
async fn cluster() -> SimulatedApi {
    let api = healthy().await;
    for (kind_name, plural) in
        [("StatefulSet", "statefulsets"), ("DaemonSet", "daemonsets"), ("ReplicaSet", "replicasets")]
    {
        api.define(kind("apps/v1", kind_name, plural, true));
    }
    api.define(kind("batch/v1", "CronJob", "cronjobs", true));
    api.define(kind("batch/v1", "Job", "jobs", true));
    api.define(kind("v1", "ReplicationController", "replicationcontrollers", true));
    api
}

/// A template of pods that use a credential spec.
fn template(spec: &str) -> Value {
    let pod = pod("a", &json!({"gmsaCredentialSpecName": spec}));
    let mut spec = pod["spec"].clone();
    spec["nodeSelector"] = json!({"kubernetes.io/os": "windows"});
    json!({"metadata": {"labels": {"app": "web"}}, "spec": spec})
}

fn workload(kind: &str, [namespace, name]: [&str; 2], spec: &str) -> Value {
    let version = if kind == "CronJob" { "batch/v1" } else { "apps/v1" };
    let template = template(spec);
    let spec = if kind == "CronJob" {
        json!({"jobTemplate": {"spec": {"template": template}}})
    } else {
        json!({"replicas": 1, "template": template})
    };
    json!({"apiVersion": version, "kind": kind, "metadata": {"namespace": namespace, "name": name}, "spec": spec})
}

fn owned(mut object: Value, version: &str, kind: &str) -> Value {
    object["metadata"]["ownerReferences"] =
        json!([{"apiVersion": version, "kind": kind, "name": "x", "uid": "u", "controller": true}]);
    object
}

fn exit(output: &Output) -> i32 {
    output.status.code().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_workloads_of_all_namespaces_are_checked_and_nothing_is_created() {
    let api = cluster().await;
    api.authorize_by(Table::of(&[("shop", "web", "webapp1")]));
    api.apply(workload("Deployment", ["shop", "fine"], "webapp1"));
    api.apply(workload("CronJob", ["shop", "gone"], "gone"));
    let mut alike = workload("StatefulSet", ["shop", "very-long-name-web"], "webapp1");
    alike["spec"]["replicas"] = json!(2);
    api.apply(alike);
    let mut default = workload("DaemonSet", ["default", "agent"], "webapp1");
    default["spec"]["template"]["spec"]["serviceAccountName"] = json!("default");
    api.apply(default);
    // These are checked where they come from, or are done.
    api.apply(owned(workload("ReplicaSet", ["shop", "fine-1"], "gone"), "apps/v1", "Deployment"));
    api.apply(owned(pod("fine-1-a", &json!({"gmsaCredentialSpecName": "gone"})), "apps/v1", "ReplicaSet"));
    let mut done = pod("done", &json!({"gmsaCredentialSpecName": "gone"}));
    done["status"] = json!({"phase": "Succeeded"});
    api.apply(done);
    // Nothing else checks that of a kind that is not listed.
    api.apply(owned(workload("ReplicaSet", ["shop", "rollout-1"], "webapp1"), "argoproj.io/v1alpha1", "Rollout"));
    let output = run(&api, &["check", "-A"]).await;
    assert_printed("check-all", &[("check -A", shown(&output))]);
    let created: Vec<String> = api
        .requests(Verb::Create, "")
        .into_iter()
        .map(|request| request.path)
        .filter(|path| !path.contains("accessreview"))
        .collect();
    assert_eq!(created, [""; 0]);
    for changing in [Verb::Update, Verb::Patch, Verb::Delete] {
        assert_eq!(api.count(changing, ""), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_is_checked_alone() {
    let api = cluster().await;
    api.apply(workload("Deployment", ["shop", "fine"], "webapp1"));
    api.apply(workload("Deployment", ["default", "other"], "gone"));
    let mut runs = vec![("check --namespace default", shown(&run(&api, &["check", "--namespace", "default"]).await))];
    let lists = [
        "apps/v1/namespaces/default/deployments",
        "batch/v1/namespaces/default/cronjobs",
        "api/v1/namespaces/default/pods",
    ];
    for list in lists {
        assert_eq!(api.count(Verb::List, list), 1, "{list}");
    }
    // Of all namespaces where both are said, as with kubectl.
    let all = run(&api, &["check", "-A", "-n", "default", "-o", "json"]).await;
    let all: Value = serde_json::from_slice(&all.stdout).unwrap();
    assert_eq!(all["totals"]["objects"], 4);
    // A list of nothing does not say whether there is such a namespace.
    for words in ["check -n shopp", "check -n kube-system", "check -n a/b"] {
        let arguments: Vec<&str> = words.split(' ').collect();
        runs.push((words, shown(&run(&api, &arguments).await)));
    }
    assert_printed("check-namespace", &runs);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_once_it_is_reviewed_is_said_before() {
    let api = cluster().await;
    api.delete("pods", "shop", "web");
    api.apply(workload("Deployment", ["shop", "fine"], "webapp1"));
    api.apply(workload("Deployment", ["shop", "gone"], "gone"));
    configurations(&api, |webhook| {
        webhook["namespaceSelector"] = json!({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["shop"]}]});
    });
    let output = run(&api, &["check", "-n", "shop"]).await;
    assert_printed("check-not-reviewed-yet", &[("check -n shop", shown(&output))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_listed_could_not_be_checked() {
    let api = cluster().await;
    api.delete("pods", "shop", "web");
    api.apply(workload("Deployment", ["shop", "fine"], "webapp1"));
    for plural in ["statefulsets", "cronjobs"] {
        api.fault(Verb::List, plural, usize::MAX, Fault::forbidden());
    }
    let mut runs = Vec::new();
    for words in ["check -A", "check -n shop"] {
        let arguments: Vec<&str> = words.split(' ').collect();
        runs.push((words, shown(&run(&api, &arguments).await)));
    }
    assert_printed("check-unlisted", &runs);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_is_down_is_no_clean_report() {
    let mut api = cluster().await;
    api.stop().await;
    let output = run(&api, &["check", "-A", "-o", "json"]).await;
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let totals = &report["totals"];
    assert_eq!((&totals["objects"], &totals["unreadable"], exit(&output)), (&json!(0), &json!(1), 2));
    let finding = &report["findings"][0];
    assert_eq!(finding["object"], "deployments, statefulsets, daemonsets, replicasets, cronjobs and 3 more");
    assert_eq!(finding.get("fix"), None, "another user would not help");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_read_in_pages() {
    let api = cluster().await;
    let mut controlled = owned(pod("p", &json!({})), "apps/v1", "ReplicaSet");
    for number in 0..501 {
        controlled["metadata"]["name"] = json!(format!("p{number}"));
        api.apply(controlled.clone());
    }
    let output = run(&api, &["check", "-A"]).await;
    assert_eq!((text(&output.stdout).lines().last().unwrap(), exit(&output)), ("no problems found in 2 objects", 0));
    assert_eq!(api.count(Verb::List, "/api/v1/pods?limit=500"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn sarif_names_the_object_as_its_place() {
    let api = cluster().await;
    api.delete("pods", "shop", "web");
    api.apply(workload("Deployment", ["shop", "gone"], "gone"));
    let output = run(&api, &["check", "-A", "-o", "sarif"]).await;
    let sarif: Value = serde_json::from_slice(&output.stdout).unwrap();
    let location = &sarif["runs"][0]["results"][0]["locations"][0];
    assert_eq!(location["physicalLocation"]["artifactLocation"]["uri"], "shop/Deployment/gone");
    assert_eq!(location["logicalLocations"][0]["fullyQualifiedName"], "Deployment shop/gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_gives_host_names_leaves_no_note_about_them() {
    let api = cluster().await;
    api.delete("pods", "shop", "web");
    let mut web = workload("Deployment", ["shop", "web"], "webapp1");
    web["spec"]["replicas"] = json!(3);
    api.apply(web);
    let noted = shown(&run(&api, &["check", "-n", "shop"]).await);
    assert_eq!(exit(&run(&api, &["check", "-n", "shop", "--fail-on", "note"]).await), 1);
    for container in [
        json!({"name": "webhook", "env": [{"name": "RANDOM_HOSTNAME", "value": "true"}]}),
        json!({"name": "webhook", "args": ["serve", "--random-hostname"]}),
    ] {
        let mut replica = api.object("pods", "gmsa", "webhook-a").unwrap();
        replica["spec"]["containers"] = json!([container]);
        api.apply(replica);
        let output = run(&api, &["check", "-n", "shop"]).await;
        assert_eq!(text(&output.stdout).lines().last(), Some("no problems found in 1 object"), "{container}");
    }
    let mut off = api.object("pods", "gmsa", "webhook-a").unwrap();
    off["spec"]["containers"] = json!([{"name": "webhook", "args": ["--random-hostname=false"], "env": [{"name": "RANDOM_HOSTNAME", "value": "false"}]}]);
    api.apply(off);
    let off = shown(&run(&api, &["check", "-n", "shop"]).await);
    assert_printed("check-host-names", &[("without host names of the webhook", noted), ("where they are off", off)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_files_it_must_be_said_what_is_checked() {
    let api = cluster().await;
    let mut runs = Vec::new();
    for words in ["check", "check --live", "check -n shop --state x", "check -n shop --patched"] {
        let arguments: Vec<&str> = words.split(' ').collect();
        runs.push((words, shown(&run(&api, &arguments).await)));
    }
    assert_printed("check-without-files", &runs);
    for others in [["-f", "x"], ["--state", "x"]] {
        let output = run(&api, &[&["check", "-A"][..], &others].concat()).await;
        assert!(
            text(&output.stderr).starts_with("error: the argument '--all-namespaces' cannot be used with "),
            "{}",
            text(&output.stderr)
        );
        assert_eq!(exit(&output), 2);
    }
    assert_eq!(api.count(Verb::List, ""), 0);
}
