//! Nodes that are there by name only, and what their kubelets, containerd and the scheduler would report of them and of the pods on them.
//!
//! Invariant: nothing here runs on Windows, and nothing runs the pods. The words are those of the components, from public sources:
//! `pkg/kubelet/events/event.go`, `pkg/kubelet/kuberuntime` and `pkg/scheduler` of Kubernetes, `internal/cri` of containerd, and events
//! that users of Windows nodes have reported (kubernetes#112927, kubernetes#116133, node-feature-discovery#1229, hcsshim#2017).

use std::collections::BTreeSet;

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
    // An address for documentation (RFC 5737). A Service has two pods of one address once.
    let is_free = |address: &String| !pods.iter().any(|pod| pod["status"]["podIP"] == *address);
    let addresses = (1..255).map(|number| format!("192.0.2.{number}")).filter(is_free);
    for (pod, address) in pods.iter().filter(|pod| pod["spec"]["nodeName"].is_null()).zip(addresses) {
        bind(cluster, namespace, name(pod), node);
        let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let status = json!({"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": [ready]});
        report(cluster, namespace, name(pod), &status);
    }
}

/// The names of the pods that a Service sends calls to.
pub fn endpoints(cluster: &Cluster, namespace: &str, service: &str) -> BTreeSet<String> {
    let names = "jsonpath={.items[*].endpoints[?(@.conditions.ready==true)].targetRef.name}";
    let slices = format!("get endpointslices -n {namespace} -l kubernetes.io/service-name={service} -o {names}");
    cluster.prints(&slices).split_whitespace().map(str::to_owned).collect()
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

/// Adds a node of a build, which is ready, in this pool.
pub fn join_windows(cluster: &Cluster, name: &str, build: &str, pool: &str) {
    let labels = json!({
        "kubernetes.io/os": "windows",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "node.kubernetes.io/windows-build": build,
        "pool": pool,
    });
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
    cluster.apply(&node.to_string());
    becomes(cluster, name, "True", "KubeletReady", "kubelet is posting ready status");
}

/// Sets the condition `Ready` of a node, and the taint that the node lifecycle controller keeps for it: kube-apiserver gives it to each new node.
pub fn becomes(cluster: &Cluster, name: &str, ready: &str, reason: &str, message: &str) {
    let condition = json!({"type": "Ready", "status": ready, "reason": reason, "message": message});
    let status = json!({"conditions": [condition], "nodeInfo": {"operatingSystem": "windows"}});
    cluster.change(&format!("node {name} --subresource=status"), &json!({"status": status}));
    let end = if ready == "True" { "-" } else { "" };
    cluster.prints(&format!("taint nodes {name} node.kubernetes.io/not-ready:NoSchedule{end}"));
}

/// Runs a pod on the node that it is on: all containers, ready.
pub fn run(cluster: &Cluster, namespace: &str, pod: &str) {
    let conditions = ["Ready", "PodReadyToStartContainers"].map(|kind| json!({"type": kind, "status": "True"}));
    let status = json!({
        "phase": "Running",
        "conditions": conditions,
        "initContainerStatuses": null,
        "containerStatuses": [running("main")],
    });
    report(cluster, namespace, pod, &status);
}

/// The status of a container that runs, as a kubelet reports it.
pub fn running(name: &str) -> Value {
    let state = json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}});
    json!({"name": name, "image": "i", "imageID": "", "ready": true, "restartCount": 0, "state": state})
}

/// Makes a warning about a pod, or about one of its containers.
pub fn event(cluster: &Cluster, namespace: &str, pod: &str, container: Option<&str>, reason: &str, message: &str) {
    let uid = cluster.uid(&format!("pod {pod} -n {namespace}"));
    let path = container.map(|name| format!("spec.containers{{{name}}}"));
    let component = if reason == "FailedScheduling" { "default-scheduler" } else { "kubelet" };
    let event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": format!("{pod}."), "namespace": namespace},
        "involvedObject": {"kind": "Pod", "namespace": namespace, "name": pod, "uid": uid, "fieldPath": path},
        "type": "Warning",
        "reason": reason,
        "message": message,
        "source": {"component": component},
    });
    printed(cluster.kubectl_with("create -f -", &event.to_string()));
}
