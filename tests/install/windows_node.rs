//! A Windows node as the control plane sees it: what its kubelet and containerd, and the scheduler, report of it and of the pods on it.
//!
//! Invariant: nothing here runs on Windows, and nothing runs the pods. The words are those of the components, from public sources:
//! `pkg/kubelet/events/event.go`, `pkg/kubelet/kuberuntime` and `pkg/scheduler` of Kubernetes, `internal/cri` of containerd, and events
//! that users of Windows nodes have reported (kubernetes#112927, kubernetes#116133, node-feature-discovery#1229, hcsshim#2017).

use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, printed},
    nodes::{bind, report},
};

/// A node that is in the cluster.
pub struct WindowsNode<'c> {
    cluster: &'c Cluster,
    pub name: &'c str,
}

impl<'c> WindowsNode<'c> {
    /// Adds a node of a build, which is ready, with this label besides.
    pub fn join(cluster: &'c Cluster, name: &'c str, build: &str, label: (&str, &str)) -> Self {
        let labels = json!({
            "kubernetes.io/os": "windows",
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": name,
            "node.kubernetes.io/windows-build": build,
            (label.0): label.1,
        });
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
        cluster.apply(&node.to_string());
        let node = Self { cluster, name };
        node.becomes("True", "KubeletReady", "kubelet is posting ready status");
        node
    }

    /// Sets its condition `Ready`, and the taint that the node lifecycle controller keeps for it: kube-apiserver gives it to each new node.
    pub fn becomes(&self, ready: &str, reason: &str, message: &str) {
        let condition = json!({"type": "Ready", "status": ready, "reason": reason, "message": message});
        let status = json!({"conditions": [condition], "nodeInfo": {"operatingSystem": "windows"}});
        self.cluster.change(&format!("node {} --subresource=status", self.name), &json!({"status": status}));
        let end = if ready == "True" { "-" } else { "" };
        self.cluster.prints(&format!("taint nodes {} node.kubernetes.io/not-ready:NoSchedule{end}", self.name));
    }

    /// Takes a pod.
    pub fn take(&self, namespace: &str, pod: &str) {
        bind(self.cluster, namespace, pod, self.name);
    }

    /// Runs a pod that it has: all containers, ready.
    pub fn run(&self, namespace: &str, pod: &str) {
        let conditions = ["Ready", "PodReadyToStartContainers"].map(|kind| json!({"type": kind, "status": "True"}));
        let runs = container("main", &json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}}), None);
        let status = json!({
            "phase": "Running",
            "conditions": conditions,
            "initContainerStatuses": null,
            "containerStatuses": [runs],
        });
        report(self.cluster, namespace, pod, &status);
    }
}

/// The status of a container as a kubelet reports it: its state, and the exit code with which it ended before.
pub fn container(name: &str, state: &Value, ended: Option<i32>) -> Value {
    let last = ended.map(|code| json!({"terminated": {"exitCode": code, "reason": "Error"}}));
    json!({
        "name": name, "image": "i", "imageID": "", "ready": state.get("running").is_some(), "restartCount": 0,
        "state": state, "lastState": last.unwrap_or_else(|| json!({})),
    })
}

/// Makes a warning about a pod, or about one of its containers.
pub fn event(cluster: &Cluster, namespace: &str, pod: &str, container: Option<&str>, reason: &str, message: &str) {
    let uid = cluster.uid(&format!("pod {pod} -n {namespace}"));
    let path = container.map(|name| format!("spec.containers{{{name}}}"));
    let component = if reason == "FailedScheduling" { "default-scheduler" } else { "kubelet" };
    let about =
        json!({"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": pod, "uid": uid, "fieldPath": path});
    let event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": format!("{pod}."), "namespace": namespace},
        "involvedObject": about,
        "type": "Warning",
        "reason": reason,
        "message": message,
        "source": {"component": component},
    });
    printed(cluster.kubectl_with("create -f -", &event.to_string()));
}
