//! Nodes that are there by name only, and what a kubelet would report of the pods on them.

use serde_json::{Value, json};

use crate::cluster::Cluster;

/// A build of Windows Server 2022.
pub const BUILD: &str = "10.0.20348";

/// Adds a node of this operating system to the cluster.
pub fn join(cluster: &Cluster, name: &str, os: &str) {
    let mut labels = json!({"kubernetes.io/os": os});
    if os == "windows" {
        labels["node.kubernetes.io/windows-build"] = json!(BUILD);
    }
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
    cluster.apply(&node.to_string());
}

/// Puts the pods of a namespace that have no node on this one, and has them run there, `wanted` of them.
pub fn run_pods(cluster: &Cluster, namespace: &str, node: &str, wanted: usize) {
    cluster.until("the pods are there", || pods(cluster, namespace).len() == wanted);
    run_new_pods(cluster, namespace, node);
}

fn pods(cluster: &Cluster, namespace: &str) -> Vec<Value> {
    let json = cluster.kubectl_prints(["get", "pods", "--namespace", namespace, "-o", "json"]);
    let list: Value = serde_json::from_str(&json).unwrap();
    list["items"].as_array().cloned().unwrap()
}

/// Puts the pods of a namespace that have no node on this one, and has them run there.
pub fn run_new_pods(cluster: &Cluster, namespace: &str, node: &str) {
    for (index, pod) in pods(cluster, namespace).iter().filter(|pod| pod["spec"]["nodeName"].is_null()).enumerate() {
        let name = pod["metadata"]["name"].as_str().unwrap();
        bind(cluster, namespace, name, node);
        // Of a network for documentation (RFC 5737).
        let address = format!("192.0.2.{}", index + 1);
        let status = json!({"status": {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        }});
        report(cluster, namespace, name, &status);
    }
}

/// Puts a pod on a node, as the scheduler does.
pub fn bind(cluster: &Cluster, namespace: &str, pod: &str, node: &str) {
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    let bindings = format!("/api/v1/namespaces/{namespace}/pods/{pod}/binding");
    let bound = cluster.kubectl_with(["create", "--raw", &bindings, "-f", "-"], &binding.to_string());
    assert!(bound.status.success(), "{}", String::from_utf8_lossy(&bound.stderr));
}

/// Changes the status of a pod, as its kubelet does.
pub fn report(cluster: &Cluster, namespace: &str, pod: &str, status: &Value) {
    let patch = ["patch", "pod", pod, "--namespace", namespace, "--subresource=status", "--patch"];
    cluster.kubectl_prints(patch.into_iter().chain([status.to_string().as_str()]));
}
