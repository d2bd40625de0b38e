//! `kubectl gmsa probe` on a real control plane: three Windows nodes, each with another fault but the first. The API server passes `exec` on
//! to their kubelets, which answer from transcripts.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use gmsa_test_support::{
    SimulatedApi,
    exec::{answer_each, transcript},
};
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    desk::{Desk, Line},
    nodes::{name, report},
    pods::{NAMESPACE, SPEC, restrict},
    release::Release,
    windows_node::{WindowsNode, container, event},
};

const RPC: &str = "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to create containerd task: failed to create shim task: \
    hcs::CreateComputeSystem 5bd1: winapi error #3489792023: unknown";

/// The node of a pod of the probe.
const NODE: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0";

/// The pods of the probe.
fn pods(cluster: &Cluster) -> Vec<Value> {
    cluster.list("pods -n apps -l app.kubernetes.io/name=gmsa-probe")
}

/// What the scheduler and the kubelets do, until the probe is over.
fn serve(cluster: &Cluster, nodes: &[WindowsNode<'_>], is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        for pod in pods(cluster).iter().filter(|pod| pod["spec"]["nodeName"].is_null()) {
            let node = nodes.iter().find(|node| pod.pointer(NODE).is_some_and(|on| on == node.name)).unwrap();
            node.take(NAMESPACE, name(pod));
            let (phase, state) = if node.name == "win-2" {
                event(cluster, NAMESPACE, name(pod), None, "FailedCreatePodSandBox", RPC);
                ("Pending", json!({"waiting": {"reason": "ContainerCreating"}}))
            } else {
                ("Running", json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}}))
            };
            let status = json!({"phase": phase, "containerStatuses": [container("probe", &state, None)]});
            report(cluster, NAMESPACE, name(pod), &status);
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Has the kubelet of a node answer `exec` there.
fn answers(cluster: &Cluster, node: &str, kubelet: &SimulatedApi) {
    let status = json!({
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.address.port()}},
        "declaredFeatures": ["ExtendWebSocketsToKubelet"],
    });
    cluster.change(&format!("node {node} --subresource=status"), &json!({"status": status}));
}

#[test]
fn three_nodes_are_probed_and_each_has_its_first_cause() {
    let cluster = Cluster::start();
    let release = Release::install(&cluster, "");
    let _replica = release.start_replica();
    release.route_to_loopback();
    cluster.create_namespace(NAMESPACE);
    // The pods pass where the Pod Security level is the strictest.
    restrict(&cluster, "apps", "enforce");
    // The domain of the transcripts.
    let spec = SPEC.replace("corp.example.com", "contoso.com");
    cluster.apply(&spec.replace(" example.com", " contoso.com").replace("CORP", "CONTOSO"));
    cluster.prints("create serviceaccount web -n apps");
    let desk = Desk::new(&cluster);
    let nodes =
        ["win-1", "win-2", "win-3"].map(|name| WindowsNode::join(&cluster, name, "10.0.20348", ("pool", "main")));
    let (_, runtime) = cluster.control_plane();
    let _kubelets = [("win-1", "network-service"), ("win-3", "no-secure-channel")].map(|(node, case)| {
        let (kubelet, transcript) = (runtime.block_on(SimulatedApi::start_with_tls()), transcript(case));
        answer_each(&kubelet, move |_, command| transcript.get(command).cloned());
        answers(&cluster, node, &kubelet);
        kubelet
    });
    let probe = "probe --credspec webapp1 --serviceaccount apps:web";
    let outcomes = |lines: &[Line]| lines.iter().map(Line::outcome).collect::<Vec<_>>();

    // Without the permission, no pod is made, and the remedy is a command.
    let (lines, code) = desk.lines(probe);
    assert_eq!((outcomes(&lines), code), (vec!["fail admission not-authorized".to_owned()], 1));
    desk.gmsa("grant --credspec webapp1 --serviceaccount apps:web --apply");

    let is_over = AtomicBool::new(false);
    let (lines, code) = thread::scope(|scope| {
        scope.spawn(|| serve(&cluster, &nodes, &is_over));
        let said = desk.lines(&format!("{probe} --all-nodes"));
        is_over.store(true, Ordering::Relaxed);
        said
    });
    let expected = ["pass identity", "fail sandbox node-credentials", "fail secure channel no-secure-channel"];
    assert_eq!((outcomes(&lines), code), (expected.map(str::to_owned).to_vec(), 1));
    for (line, node) in lines.iter().zip(["win-1: ", "win-2: ", "win-3: "]) {
        assert!(line.text.starts_with(node), "{}", line.text);
    }
    let alive = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_null();
    assert_eq!(pods(&cluster).into_iter().filter(alive).count(), 0);
}
