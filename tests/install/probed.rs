//! `kubectl gmsa probe` on a real control plane: two Windows nodes, the second with a fault. The API server passes `exec` on to their kubelets, which
//! answer from transcripts.

use gmsa_test_support::exec::{kubelet, transcript};
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    desk::{Desk, Line, alongside},
    nodes::{bind, join_windows, name, report, running},
    pods::{NAMESPACE, SPEC, restrict},
    release::Release,
};

/// The node of a pod of the probe.
const NODE: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0";

/// The pods of the probe.
fn pods(cluster: &Cluster) -> Vec<Value> {
    cluster.list("pods -n apps -l app.kubernetes.io/name=gmsa-probe")
}

/// What the scheduler and the kubelets do.
fn start_pods(cluster: &Cluster) {
    for pod in pods(cluster).iter().filter(|pod| pod["spec"]["nodeName"].is_null()) {
        bind(cluster, NAMESPACE, name(pod), pod.pointer(NODE).unwrap().as_str().unwrap());
        report(cluster, NAMESPACE, name(pod), &json!({"phase": "Running", "containerStatuses": [running("probe")]}));
    }
}

#[test]
fn nodes_are_probed_and_each_has_its_first_cause() {
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
    let (_, runtime) = cluster.control_plane();
    for (node, case) in [("win-1", "network-service"), ("win-2", "no-secure-channel")] {
        join_windows(&cluster, node, "10.0.20348", "main");
        let transcript = transcript(case);
        let _in_runtime = runtime.enter();
        let port = kubelet(move |_, command| transcript.get(command).cloned());
        let status = json!({
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            "declaredFeatures": ["ExtendWebSocketsToKubelet"],
        });
        cluster.change(&format!("node {node} --subresource=status"), &json!({"status": status}));
    }
    let probe = "probe --credspec webapp1 --serviceaccount apps:web";
    let outcomes = |lines: &[Line]| lines.iter().map(Line::outcome).collect::<Vec<_>>();

    // Without the permission, no pod is made, and the remedy is a command.
    let (lines, code) = desk.lines(probe);
    assert_eq!((outcomes(&lines), code), (vec!["fail admission not-authorized".to_owned()], 1));
    desk.gmsa("grant --credspec webapp1 --serviceaccount apps:web --apply");

    let (lines, code) = alongside(|| start_pods(&cluster), || desk.lines(&format!("{probe} --all-nodes")));
    let expected = ["pass identity", "fail secure channel no-secure-channel"];
    assert_eq!((outcomes(&lines), code), (expected.map(str::to_owned).to_vec(), 1));
    for (line, node) in lines.iter().zip(["win-1: ", "win-2: "]) {
        assert!(line.text.starts_with(node), "{}", line.text);
    }
    let alive = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_null();
    assert_eq!(pods(&cluster).into_iter().filter(alive).count(), 0);
}
