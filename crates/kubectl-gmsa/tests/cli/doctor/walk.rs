//! The walk through a workload and a pod: what may not be read, `--watch`, and words that name nothing.

use serde_json::{Value, json};

use super::super::{
    cluster::{healthy, pod, run},
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

/// What the walk through `shop/web` prints, and the exit code.
async fn walked(fault: impl FnOnce(&SimulatedApi)) -> (String, Option<i32>) {
    let api = healthy().await;
    fault(&api);
    let output = run(&api, &["why", "deploy/web", "-n", "shop"]).await;
    assert_eq!(text(&output.stderr), "");
    (text(&output.stdout).to_owned(), output.status.code())
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
    let (said, code) = walked(|api| {
        healthy_deployment(api);
        for path in ["/serviceaccounts/web", "/nodes/win1", "/gmsacredentialspecs/webapp1"] {
            api.fault(Verb::Get, path, usize::MAX, Fault::forbidden());
        }
        api.fault(Verb::List, "/events", usize::MAX, Fault::forbidden());
    })
    .await;
    let unread = |who: &str| {
        format!(
            "could not be checked: the API server answered 403: not allowed here [not-checked]\n                       \
             -> Run the command as a user {who} (`--as`, `--context`).\n"
        )
    };
    let viewer = " With `viewerRole=true` in the chart, all with the role `view` may.\n";
    let spec = unread("who may get gmsacredentialspecs").trim_end().to_owned() + viewer;
    let [account, node] = ["who may get serviceaccounts in namespace shop", "who may get nodes"].map(unread);
    let expected = format!(
        "\
skip  template         {spec}skip  service account  {account}pass  permission       shop:web may use webapp1
pass  admission        1 of 1 pods were created; what follows is of web-1-a
skip  admission        {spec}skip  scheduling       {node}pass  sandbox          was created
pass  init containers  there are none
pass  containers       Running on win1
pass  in the pod       run: kubectl gmsa verify shop/web-1-a
"
    );
    assert_eq!((said, code), (expected, Some(2)));
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
    let (said, code) = walked(fault).await;
    let expected = "\
pass  template         names webapp1
pass  permission       shop:web may use webapp1
skip  events           could not be checked: the API server answered 403: not allowed here [not-checked]
                       -> Run the command as a user who may list events in namespace shop (`--as`, `--context`).
fail  admission        0 of 1 pods: pods \"web-1-\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1 [pod-refused]
                       -> Raise the ResourceQuota that the message names (`kubectl describe resourcequota -n shop`), or request less.
skip  scheduling       not reached [not-checked]
skip  sandbox          not reached [not-checked]
skip  init containers  not reached [not-checked]
skip  containers       not reached [not-checked]
skip  in the pod       not reached [not-checked]
";
    assert_eq!((said.as_str(), code), (expected, Some(1)));
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
    for (arguments, said) in [
        (
            &["--workload", "shop/web/a/b"][..],
            "error: invalid value 'shop/web/a/b' for '--workload <NAMESPACE/KIND/NAME>': expected NAMESPACE/KIND/NAME\n",
        ),
        (
            &["--workload", "shop/po/web"],
            "error: invalid value 'shop/po/web' for '--workload <NAMESPACE/KIND/NAME>': \"po\" is none of deploy, sts, ds, rs, job, cronjob and --pod for a pod\n",
        ),
        (&["--watch"], "error: the following required arguments were not provided:\n"),
        (&["--workload", "deploy/web", "--namespace", "a?b"], "error: \"a?b\" is not the name of a namespace\n"),
        (&["--workload", "shop/deploy/none"], "error: there is no Deployment shop/none\n"),
    ] {
        let output = run(&api, &[&["doctor"], arguments].concat()).await;
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).starts_with(said), "{}", text(&output.stderr));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_spec_that_cannot_be_read_is_no_fault_of_the_pod() {
    let api = healthy().await;
    api.fault(Verb::Get, "/gmsacredentialspecs/webapp1", usize::MAX, Fault::forbidden());
    let output = run(&api, &["why", "pod/web", "-n", "shop"]).await;
    let unread = "could not be checked: the API server answered 403: not allowed here [not-checked]\n                       \
        -> Run the command as a user who may get gmsacredentialspecs (`--as`, `--context`). With `viewerRole=true` in the chart, all with the role `view` may.\n";
    let said = format!(
        "\
skip  template         could not be checked: the API server answered 403: not allowed here [not-checked]
                       -> Run the command as a user who may get gmsacredentialspecs (`--as`, `--context`). With `viewerRole=true` in the chart, all with the role `view` may.
pass  permission       shop:web may use webapp1
skip  admission        {unread}pass  scheduling       on win1, which is of 10.0.20348
pass  sandbox          was created
pass  init containers  there are none
pass  containers       Running on win1
pass  in the pod       run: kubectl gmsa verify shop/web
"
    );
    assert_eq!((text(&output.stdout), output.status.code()), (said.as_str(), Some(2)));
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
