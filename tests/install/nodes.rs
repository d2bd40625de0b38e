//! Nodes that are there by name only, and what a kubelet would report of the pods on them.

use serde_json::{Value, json};

use crate::cluster::{Cluster, printed};

/// Adds a node of this operating system to the cluster, of Windows Server 2022 where it is Windows.
pub fn join(cluster: &Cluster, name: &str, os: &str) {
    let mut labels = json!({"kubernetes.io/os": os});
    if os == "windows" {
        labels["node.kubernetes.io/windows-build"] = json!("10.0.20348");
    }
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
    cluster.apply(&node.to_string());
}

/// The name of an object.
pub fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

/// Puts the pods of a namespace that have no node on this one, and has them run there, `wanted` of them.
pub fn run_pods(cluster: &Cluster, namespace: &str, node: &str, wanted: usize) {
    let pods = format!("pods -n {namespace}");
    cluster.until("the pods are there", || cluster.list(&pods).len() == wanted);
    run_new_pods(cluster, namespace, node);
}

/// Puts the pods of a namespace that have no node on this one, and has them run there.
pub fn run_new_pods(cluster: &Cluster, namespace: &str, node: &str) {
    let pods = cluster.list(&format!("pods -n {namespace}"));
    for (index, pod) in pods.iter().filter(|pod| pod["spec"]["nodeName"].is_null()).enumerate() {
        bind(cluster, namespace, name(pod), node);
        // Of a network for documentation (RFC 5737).
        let address = format!("192.0.2.{}", index + 1);
        let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let status = json!({"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": [ready]});
        report(cluster, namespace, name(pod), &status);
    }
}

/// Puts a pod on a node, as the scheduler does.
pub fn bind(cluster: &Cluster, namespace: &str, pod: &str, node: &str) {
    let target = json!({"apiVersion": "v1", "kind": "Node", "name": node});
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target});
    let create = format!("create --raw /api/v1/namespaces/{namespace}/pods/{pod}/binding -f -");
    printed(cluster.kubectl_with(&create, &binding.to_string()));
}

/// Changes the status of a pod, as its kubelet does.
pub fn report(cluster: &Cluster, namespace: &str, pod: &str, status: &Value) {
    cluster.change(&format!("pod {pod} -n {namespace} --subresource=status"), &json!({"status": status}));
}
