//! `kubectl gmsa probe` on a real control plane: three Windows nodes, each with another fault but the first. The API server passes `exec` on
//! to their kubelets, which answer from transcripts.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use gmsa_test_support::exec::{kubelet, transcript};
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    nodes::report,
    pods::NAMESPACE,
    release::Release,
    tool::Tool,
    windows_node::{WindowsNode, container, event},
};

const RPC: &str = "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to create containerd task: failed to create shim task: \
    hcs::CreateComputeSystem 5bd1: winapi error #3489792023: unknown";

/// The node of a pod of the probe.
const NODE: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0";

/// The pods of the probe.
fn pods(cluster: &Cluster) -> Vec<Value> {
    let get =
        ["get", "pods", "--namespace", NAMESPACE, "--selector", "app.kubernetes.io/name=gmsa-probe", "-o", "json"];
    let list: Value = serde_json::from_str(&cluster.kubectl_prints(get)).unwrap();
    list["items"].as_array().cloned().unwrap()
}

/// What the scheduler and the kubelets do, until the probe is over.
fn serve(cluster: &Cluster, nodes: &[WindowsNode<'_>], is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        for pod in pods(cluster).iter().filter(|pod| pod["spec"]["nodeName"].is_null()) {
            let name = pod["metadata"]["name"].as_str().unwrap();
            let node = nodes.iter().find(|node| pod.pointer(NODE).is_some_and(|on| on == node.name)).unwrap();
            node.take(NAMESPACE, name);
            if node.name == "win-2" {
                let waits = container("probe", &json!({"waiting": {"reason": "ContainerCreating"}}), None);
                event(cluster, NAMESPACE, name, None, "FailedCreatePodSandBox", RPC);
                report(
                    cluster,
                    NAMESPACE,
                    name,
                    &json!({"status": {"phase": "Pending", "containerStatuses": [waits]}}),
                );
            } else {
                let runs = container("probe", &json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}}), None);
                report(cluster, NAMESPACE, name, &json!({"status": {"phase": "Running", "containerStatuses": [runs]}}));
            }
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Has the kubelet of a node answer `exec` on this port.
fn answers(cluster: &Cluster, node: &str, port: u16) {
    let status = json!({"status": {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "declaredFeatures": ["ExtendWebSocketsToKubelet"],
    }});
    let status = status.to_string();
    cluster.kubectl_prints(["patch", "node", node, "--subresource=status", "--patch", &status]);
}

/// Of each line of the report, its status, what it is about, and its rule.
fn causes(report: &str) -> Vec<(&str, &str, &str)> {
    let of = |line| -> Option<(&str, &str, &str)> {
        let (status, rest): (&str, &str) = str::split_once(line, "  ")?;
        let rule = line.rsplit_once(" [").map_or("", |(_, rule)| rule.trim_end_matches(']'));
        Some((status, rest.split("  ").next()?, rule))
    };
    report.lines().filter(|line| !line.contains(" -> ")).filter_map(of).collect()
}

#[test]
fn three_nodes_are_probed_and_each_has_its_first_cause() {
    let cluster = Cluster::start();
    let release = Release::install(&cluster);
    let _replica = release.start_replica();
    release.route_to_loopback();
    cluster.create_namespace(NAMESPACE);
    // The pods pass where the Pod Security level is the strictest.
    cluster.kubectl_prints(["label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted"]);
    // The domain of the transcripts.
    let spec = include_str!("credential-spec.yaml").replace("corp.example.com", "contoso.com");
    cluster.apply(&spec.replace(" example.com", " contoso.com").replace("CORP", "CONTOSO"));
    cluster.kubectl_prints(["create", "serviceaccount", "web", "--namespace", NAMESPACE]);
    let tool = Tool::new(&cluster);
    let nodes =
        ["win-1", "win-2", "win-3"].map(|name| WindowsNode::join(&cluster, name, "10.0.20348", ("pool", "main")));
    let (_, runtime) = cluster.control_plane();
    for (node, case) in [("win-1", "network-service"), ("win-3", "no-secure-channel")] {
        let transcript = transcript(case);
        let _in_runtime = runtime.enter();
        answers(&cluster, node, kubelet(move |_, command| transcript.get(command).cloned()));
    }
    let probe = format!("probe --credspec webapp1 --serviceaccount {NAMESPACE}:web");

    // Without the permission, no pod is made, and the remedy is a command.
    let (said, code) = tool.gmsa(&probe);
    assert_eq!((causes(&said), code), (vec![("fail", "admission", "not-authorized")], 1), "{said}");
    tool.gmsa(&format!("grant --credspec webapp1 --serviceaccount {NAMESPACE}:web --apply"));

    let is_over = AtomicBool::new(false);
    let (said, code) = thread::scope(|scope| {
        scope.spawn(|| serve(&cluster, &nodes, &is_over));
        let said = tool.gmsa(&format!("{probe} --all-nodes"));
        is_over.store(true, Ordering::Relaxed);
        said
    });
    let expected = [
        ("pass", "identity", ""),
        ("fail", "sandbox", "node-credentials"),
        ("fail", "secure channel", "no-secure-channel"),
    ];
    assert_eq!(causes(&said), expected, "{said}");
    for (line, node) in said.lines().filter(|line| !line.contains(" -> ")).zip(["win-1", "win-2", "win-3"]) {
        assert!(line.contains(&format!("  {node}: ")), "{said}");
    }
    assert_eq!(code, 1);
    let alive = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_null();
    assert_eq!(pods(&cluster).into_iter().filter(alive).count(), 0);
}
