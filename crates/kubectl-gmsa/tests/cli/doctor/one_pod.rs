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
pass  template         names webapp1
pass  permission       shop:web may use webapp1
pass  admission        the pod carries the contents of its credential spec
pass  scheduling       on win1, which is of 10.0.20348
pass  sandbox          was created
pass  init containers  there are none
pass  containers       Running on win1
pass  in the pod       run: kubectl gmsa verify shop/web
"
    );
    assert_eq!(output.status.code(), Some(0));
    api.authorize_by(Table::default());
    let output = run(&api, &["doctor", "--pod", "shop/web"]).await;
    let denied = "\
pass  template         names webapp1
fail  permission       shop:web may not use webapp1 [not-authorized]
                       -> `kubectl gmsa grant --credspec webapp1 --serviceaccount shop:web --apply`.
skip  admission        not reached [not-checked]
";
    assert!(text(&output.stdout).starts_with(denied), "{}", text(&output.stdout));
    api.authorize_by(Table::of(&[("shop", "web", "webapp1"), ("shop", "web", "gone")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_pod_carries_is_compared() {
    let api = healthy().await;
    api.apply(pod("bare", &json!({"gmsaCredentialSpecName": "webapp1"})));
    let mut waiting = pod("old", &json!({"gmsaCredentialSpecName": "webapp1", "gmsaCredentialSpec": "{}"}));
    waiting["status"] = json!({"phase": "Pending", "containerStatuses": [
        {"name": "iis", "state": {"waiting": {"reason": "CreateContainerError", "message": "winapi error #3489792023"}}},
    ]});
    api.apply(waiting);
    api.apply(pod("unmatched", &json!({"gmsaCredentialSpecName": "gone", "gmsaCredentialSpec": "{}"})));
    api.apply(pod("plain", &json!({})));
    for (name, said, code) in [
        (
            "bare",
            "\
fail  admission        the pod names a credential spec and carries no contents: the webhook did not review it [name-without-contents]
                       -> Delete the Pod, which has no identity: its controller creates a new one; a Pod without a controller must be created again. `kubectl gmsa doctor` checks the webhook.
skip  scheduling       not reached [not-checked]
skip  sandbox          not reached [not-checked]
skip  init containers  not reached [not-checked]
skip  containers       not reached [not-checked]
skip  in the pod       not reached [not-checked]
",
            1,
        ),
        (
            "old",
            "\
warn  admission        the pod carries other contents than its credential spec has now [contents-outdated]
                       -> Delete the Pod: its controller creates a new one.
pass  scheduling       on win1, which is of 10.0.20348
pass  sandbox          was created
pass  init containers  there are none
fail  containers       Pending on win1, container \"iis\" waits: CreateContainerError: winapi error #3489792023 [node-credentials]
                       -> The log Microsoft-Windows-Containers-CCG/Admin of the node says which step failed; `kubectl gmsa explain` reads its messages. Without a message there, the credential spec, its plugin or the path to a domain controller is at fault.
skip  in the pod       not reached [not-checked]
",
            1,
        ),
        (
            "unmatched",
            "\
fail  template         cred spec gone does not exist [spec-missing]
                       -> `kubectl gmsa credspec new gone --account NAME --from-ad FILE | kubectl apply -f -`, or use the name of one that exists: `kubectl get gmsacredentialspecs`.
skip  permission       not reached [not-checked]
skip  admission        not reached [not-checked]
skip  scheduling       not reached [not-checked]
skip  sandbox          not reached [not-checked]
skip  init containers  not reached [not-checked]
skip  containers       not reached [not-checked]
skip  in the pod       not reached [not-checked]
",
            1,
        ),
        (
            "plain",
            "\
warn  admission        the pod does not use GMSA [no-credential-spec]
                       -> Set `gmsaCredentialSpecName` in its `windowsOptions`.
pass  scheduling       on win1, which is of 10.0.20348
pass  sandbox          was created
pass  init containers  there are none
pass  containers       Running on win1
",
            1,
        ),
    ] {
        let output = run(&api, &["doctor", "--pod", &format!("shop/{name}")]).await;
        let found = text(&output.stdout);
        assert!(found.ends_with(said), "{name}: {found}");
        assert_eq!(output.status.code(), Some(code), "{name}");
    }
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
    let (_, of_node) = text(&output.stdout).split_once("the contents of its credential spec\n").unwrap();
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
        let said = format!(
            "\
pass  scheduling       on win1
pass  sandbox          was created
pass  init containers  there are none
fail  containers       Failed on win1: {why} [pod-failed]
                       -> {remedy}
skip  in the pod       not reached [not-checked]
"
        );
        assert_eq!(of_node(status, |_| {}).await, (said, Some(1)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_crashes_is_named() {
    let crash = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}});
    let waits = json!({"waiting": {"reason": "PodInitializing"}});
    for (status, step, why, remedy) in [
        (
            json!({
                "phase": "Pending",
                "initContainerStatuses": [
                    {"name": "first", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}},
                    {"name": "join", "state": crash, "lastState": {"terminated": {"exitCode": 3, "reason": "Error"}}},
                ],
                "containerStatuses": [{"name": "iis", "state": waits}],
            }),
            "init containers",
            "Pending on win1, init container \"join\" waits: CrashLoopBackOff: back-off 40s, and ended with exit code 3, Error before",
            "`kubectl logs web --namespace shop --container join --previous`",
        ),
        (
            json!({"phase": "Running", "containerStatuses": [
                {"name": "iis", "state": {"running": {}}},
                {"name": "log", "state": {"terminated": {"exitCode": 2}}},
            ]}),
            "containers",
            "Running on win1, container \"log\" ended with exit code 2",
            "`kubectl logs web --namespace shop --container log`",
        ),
        (
            json!({
                "phase": "Pending",
                "initContainerStatuses": [{"name": "join", "state": {"running": {}}}],
                "containerStatuses": [{"name": "iis", "state": waits}],
            }),
            "init containers",
            "init container \"join\" has not ended yet",
            "`kubectl logs web --namespace shop --container join`",
        ),
    ] {
        let (said, code) = of_node(status, |_| {}).await;
        let line = format!(
            "fail  {step:15}  {why} [not-started]\n                       -> {remedy} says why: correct the container, or what it needs.\n"
        );
        assert!(said.contains(&line) && code == Some(1), "{said}");
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
    let unreached = "\
skip  sandbox          not reached [not-checked]
skip  init containers  not reached [not-checked]
skip  containers       not reached [not-checked]
skip  in the pod       not reached [not-checked]
";
    let said = "\
fail  scheduling       win1 is not ready: Kubelet stopped posting node status. [node-not-ready]
                       -> `kubectl describe node win1` says why: start its kubelet and its container runtime. Pods with a controller are created on other nodes after five minutes.
";
    assert_eq!(of_node(running(), not_ready).await, (format!("{said}{unreached}"), Some(1)));

    let linux = changed(|node| node["metadata"]["labels"] = json!({"kubernetes.io/os": "linux"}));
    let said = "\
fail  scheduling       the pod is on win1, a node with the operating system linux, on which no Windows container runs [linux-node]
                       -> Set {\"nodeSelector\":{\"kubernetes.io/os\":\"windows\"},\"os\":{\"name\":\"windows\"}} in the spec of its Pod template, or in its manifest, and create the Pod again.
";
    assert_eq!(of_node(running(), linux).await, (format!("{said}{unreached}"), Some(1)));

    let gone = |api: &SimulatedApi| api.delete("nodes", "", "win1");
    let said = "\
fail  scheduling       the pod is on win1, which does not exist any more [node-not-ready]
                       -> Its controller creates it on another node after five minutes; a Pod without a controller must be created again.
";
    assert_eq!(of_node(running(), gone).await, (format!("{said}{unreached}"), Some(1)));

    let forbidden = |api: &SimulatedApi| api.fault(Verb::Get, "/api/v1/nodes/win1", usize::MAX, Fault::forbidden());
    let said = "\
skip  scheduling       could not be checked: the API server answered 403: not allowed here [not-checked]
                       -> Run the command as a user who may read it (`--as`, `--context`).
pass  sandbox          was created
pass  init containers  there are none
pass  containers       Running on win1
pass  in the pod       run: kubectl gmsa verify shop/web
";
    assert_eq!(of_node(running(), forbidden).await, (said.to_owned(), Some(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_spec_that_cannot_be_read_is_no_fault_of_the_pod() {
    let api = healthy().await;
    api.fault(Verb::Get, "/gmsacredentialspecs/webapp1", usize::MAX, Fault::forbidden());
    let output = run(&api, &["doctor", "--pod", "shop/web"]).await;
    let unread = "could not be checked: the API server answered 403: not allowed here [not-checked]\n                       \
        -> Run the command as a user who may read it (`--as`, `--context`).\n";
    let said = format!(
        "\
skip  template         could not be checked: the API server answered 403: not allowed here [not-checked]
                       -> Run the command as a user of whom `kubectl auth can-i get gmsacredentialspecs.windows.k8s.io/webapp1` says yes (`--as`, `--context`).
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
