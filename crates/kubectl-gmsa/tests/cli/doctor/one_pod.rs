//! What `doctor --pod` says of one pod.

use serde_json::{Value, json};

use super::super::{
    cluster::{healthy, pod, run},
    support::{Fault, SimulatedApi, Table, Verb},
    text,
};

#[tokio::test(flavor = "multi_thread")]
async fn one_pod_is_explained() {
    let api = healthy().await;
    let output = run(&api, &["doctor", "--pod", "shop/web"]).await;
    assert_eq!(
        text(&output.stdout),
        "\
pass  admission   the pod carries the contents of its credential spec
pass  permission  shop:web may use webapp1
pass  node        Running on win1
pass  in the pod  run: kubectl gmsa verify shop/web
"
    );
    assert_eq!(output.status.code(), Some(0));
    api.authorize_by(Table::default());
    let output = run(&api, &["doctor", "--pod", "shop/web"]).await;
    assert!(text(&output.stdout).contains(
        "fail  permission  shop:web may not use webapp1 [not-authorized]\n                  -> kubectl gmsa grant --credspec webapp1 --serviceaccount shop:web --apply\n"
    ));
    api.apply(pod("bare", &json!({"gmsaCredentialSpecName": "gone"})));
    let mut waiting = pod("old", &json!({"gmsaCredentialSpecName": "webapp1", "gmsaCredentialSpec": "{}"}));
    waiting["status"] = json!({"phase": "Pending", "containerStatuses": [
        {"name": "iis", "state": {"waiting": {"reason": "CreateContainerError", "message": "winapi error #3489792023"}}},
    ]});
    api.apply(waiting);
    api.authorize_by(Table::of(&[("shop", "web", "webapp1"), ("shop", "web", "gone")]));
    let output = run(&api, &["doctor", "--pod", "shop/bare"]).await;
    assert_eq!(
        text(&output.stdout),
        "\
fail  admission        the pod names a credential spec and carries no contents: the webhook did not review it [name-without-contents]
                       -> delete it: its controller creates a new one; then run doctor without --pod
fail  credential spec  gone does not exist [spec-missing]
                       -> kubectl gmsa credspec new gone
pass  permission       shop:web may use gone
pass  node             Running on win1
"
    );
    let output = run(&api, &["doctor", "--pod", "shop/old"]).await;
    assert_eq!(
        text(&output.stdout),
        "\
warn  admission   the pod carries other contents than its credential spec has now [contents-outdated]
                  -> Delete the Pod: its controller creates a new one.
pass  permission  shop:web may use webapp1
fail  node        Pending on win1, container \"iis\" waits: CreateContainerError: winapi error #3489792023 [not-started]
                  -> See docs/troubleshooting.md.
"
    );
    api.apply(pod("unmatched", &json!({"gmsaCredentialSpecName": "gone", "gmsaCredentialSpec": "{}"})));
    let output = run(&api, &["doctor", "--pod", "shop/unmatched"]).await;
    assert_eq!(
        text(&output.stdout).lines().next(),
        Some(
            "warn  admission        the pod carries contents, and there is no credential spec to compare them with [contents-outdated]"
        )
    );
    let output = run(&api, &["doctor", "--pod", "shop/none"]).await;
    assert_eq!((text(&output.stderr), output.status.code()), ("error: there is no pod shop/none\n", Some(2)));
}

/// The lines about the node of `shop/web` with this status, and the exit code.
async fn of_node(status: Value, change: impl FnOnce(&SimulatedApi)) -> (String, Option<i32>) {
    let api = healthy().await;
    let mut web = api.object("pods", "shop", "web").unwrap();
    web["status"] = status;
    api.apply(web);
    change(&api);
    let output = run(&api, &["doctor", "--pod", "shop/web"]).await;
    let (_, of_node) = text(&output.stdout).split_once("may use webapp1\n").unwrap();
    (of_node.to_owned(), output.status.code())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_has_failed_is_no_pass() {
    let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."});
    let ended = json!({"phase": "Failed", "containerStatuses": [
        {"name": "iis", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}},
    ]});
    for (status, why) in [
        (evicted, "Evicted: The node was low on resource: memory."),
        (ended, "container \"iis\" ended with exit code 1, Error"),
    ] {
        let remedy = "`kubectl describe pod` and `kubectl logs` say why. Its controller creates a new Pod; a Pod without a controller must be created again.";
        let said = format!("fail  node        Failed on win1: {why} [pod-failed]\n                  -> {remedy}\n");
        assert_eq!(of_node(status, |_| {}).await, (said, Some(1)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_crashes_is_named() {
    let crash = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}});
    let waits = json!({"waiting": {"reason": "PodInitializing"}});
    for (status, why) in [
        (
            json!({
                "phase": "Pending",
                "initContainerStatuses": [
                    {"name": "first", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}},
                    {"name": "join", "state": crash, "lastState": {"terminated": {"exitCode": 3, "reason": "Error"}}},
                ],
                "containerStatuses": [{"name": "iis", "state": waits}],
            }),
            "Pending on win1, init container \"join\" waits: CrashLoopBackOff: back-off 40s, and ended with exit code 3, Error before",
        ),
        (
            json!({"phase": "Running", "containerStatuses": [
                {"name": "iis", "state": {"running": {}}},
                {"name": "log", "state": {"terminated": {"exitCode": 2}}},
            ]}),
            "Running on win1, container \"log\" ended with exit code 2",
        ),
        (
            json!({
                "phase": "Pending",
                "initContainerStatuses": [{"name": "join", "state": {"running": {}}}],
                "containerStatuses": [{"name": "iis", "state": waits}],
            }),
            "Pending on win1, container \"iis\" waits: PodInitializing",
        ),
    ] {
        let remedy = "                  -> See docs/troubleshooting.md.\n";
        let said = format!("fail  node        {why} [not-started]\n{remedy}");
        assert_eq!(of_node(status, |_| {}).await, (said, Some(1)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_cannot_run_the_pod_is_no_pass() {
    let running = || json!({"phase": "Running"});
    let changed = |change: fn(&mut Value)| {
        move |api: &SimulatedApi| {
            let mut node = api.object("nodes", "", "win1").unwrap();
            change(&mut node);
            api.apply(node);
        }
    };
    let not_ready = changed(|node| {
        node["status"]["conditions"][0] =
            json!({"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting node status."});
    });
    let said = "\
fail  node        win1 is not ready: Kubelet stopped posting node status. [node-not-ready]
                  -> `kubectl describe node` says why. Pods with a controller are created on other nodes after five minutes.
pass  node        Running on win1
";
    assert_eq!(of_node(running(), not_ready).await, (said.to_owned(), Some(1)));

    let linux = changed(|node| node["metadata"]["labels"] = json!({"kubernetes.io/os": "linux"}));
    let said = "\
fail  node        win1 is a node with the operating system linux, on which no Windows container runs [linux-node]
                  -> Set `spec.os.name: windows` and the node selector `kubernetes.io/os: windows`.
pass  node        Running on win1
";
    assert_eq!(of_node(running(), linux).await, (said.to_owned(), Some(1)));

    let gone = |api: &SimulatedApi| api.delete("nodes", "", "win1");
    let said = "\
fail  node        win1 does not exist any more [node-not-ready]
                  -> `kubectl describe node` says why. Pods with a controller are created on other nodes after five minutes.
pass  node        Running on win1
";
    assert_eq!(of_node(running(), gone).await, (said.to_owned(), Some(1)));

    let forbidden = |api: &SimulatedApi| api.fault(Verb::Get, "/api/v1/nodes/win1", usize::MAX, Fault::forbidden());
    let said = "\
skip  node        could not be checked: the API server answered 403: not allowed here [not-checked]
                  -> Run the command as a user who may read it (`--as`, `--context`).
pass  node        Running on win1
";
    assert_eq!(of_node(running(), forbidden).await, (said.to_owned(), Some(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_spec_that_cannot_be_read_is_no_fault_of_the_pod() {
    let api = healthy().await;
    api.fault(Verb::Get, "/gmsacredentialspecs/webapp1", usize::MAX, Fault::forbidden());
    let output = run(&api, &["doctor", "--pod", "shop/web"]).await;
    let said = "\
skip  admission   could not be checked: the API server answered 403: not allowed here [not-checked]
                  -> Run the command as a user who may read it (`--as`, `--context`).
pass  permission  shop:web may use webapp1
pass  node        Running on win1
";
    assert_eq!((text(&output.stdout), output.status.code()), (said, Some(2)));
}
