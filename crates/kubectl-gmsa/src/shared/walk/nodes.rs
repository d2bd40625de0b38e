//! The nodes that the steps of pods read, each once, and what a pod requires of its node: its node selector, required node affinity and
//! tolerations, read as by the scheduler (`component-helpers/scheduling/corev1` of Kubernetes). The pod is one of a cluster or of a manifest.
//!
//! Invariant: an unknown condition, such as an operator of a later version, does not exclude a node.

use std::collections::{BTreeMap, BTreeSet};

use gmsa_core::{
    credspec::is_dns_subdomain,
    node_affinity::{self, LabelValue, NodeAffinity},
};
use k8s_openapi::api::core::v1::{Node, Taint, Toleration};
use serde::Deserialize;
use serde_json::Value;

use crate::shared::{
    pods::ClusterPod,
    unread::Read,
    windows_build::{Build, LABEL, hyper_v},
    world::World,
};

/// The nodes that were read.
#[derive(Default)]
pub struct Nodes {
    /// `None` if they were not requested, or could not be read.
    pub windows: Option<Vec<Node>>,
    /// The nodes with pods: `None` for a node that does not exist.
    pub of_pods: BTreeMap<String, Read<Option<Node>>>,
    /// The runtime classes that isolate containers by Hyper-V, as far as they were read.
    pub hyper_v: BTreeSet<String>,
}

impl Nodes {
    /// The nodes of these pods, and all Windows nodes if a pod does not run, or there may be none because of the nodes.
    pub async fn read(world: &World, pods: &[&ClusterPod], is_by_node: bool) -> Self {
        let mut nodes = Self::default();
        if is_by_node && pods.is_empty() || pods.iter().any(|pod| pod.node_name().is_none() || pod.phase() != "Running")
        {
            // Without them, the message of the scheduler says why a pod has no node.
            nodes.windows = world.windows_nodes().await.ok();
        }
        for class in pods.iter().filter_map(|pod| pod.object.spec.as_ref()?.runtime_class_name.as_deref()) {
            let read = world.runtime_class(Some(class)).await;
            if read.is_ok_and(|found| found.flatten().as_ref().and_then(hyper_v).is_some()) {
                nodes.hyper_v.insert(class.to_owned());
            }
        }
        nodes.add(world, pods.iter().copied()).await;
        nodes
    }

    /// Adds the nodes of these pods, and reads those that are not among the Windows nodes.
    pub async fn add(&mut self, world: &World, pods: impl Iterator<Item = &ClusterPod>) {
        let names: BTreeSet<&str> =
            pods.filter_map(ClusterPod::node_name).filter(|name| is_dns_subdomain(name)).collect();
        for name in names {
            let known = self.windows.iter().flatten().find(|node| node.metadata.name.as_deref() == Some(name)).cloned();
            let read = match known {
                Some(known) => Ok(Some(known)),
                None => world.find(&format!("/api/v1/nodes/{name}")).await,
            };
            self.of_pods.insert(name.to_owned(), read);
        }
    }
}

/// The label of a node.
pub fn label<'n>(node: &'n Node, key: &str) -> Option<&'n str> {
    node.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

/// The Windows build of a node, which its kubelet sets as a label.
pub fn build(node: &Node) -> Option<Build> {
    Build::of_label(label(node, LABEL)?)
}

/// A node with all its labels.
pub struct Labelled<'n>(pub &'n Node);

impl node_affinity::Node for Labelled<'_> {
    fn label(&self, key: &str) -> LabelValue<'_> {
        label(self.0, key).into()
    }

    fn name(&self) -> LabelValue<'_> {
        self.0.metadata.name.as_deref().into()
    }
}

/// A pod's requirements on its node.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeRequirements {
    node_selector: Option<BTreeMap<String, String>>,
    affinity: Option<AffinityField>,
    tolerations: Option<Vec<Toleration>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AffinityField {
    node_affinity: Option<NodeAffinity>,
}

impl NodeRequirements {
    /// The requirements in a pod's spec. A spec that the API server would refuse requires nothing.
    pub fn of(spec: &Value) -> Self {
        Self::deserialize(spec).unwrap_or_default()
    }

    /// The requirements of a pod in a cluster.
    pub fn of_pod(pod: &ClusterPod) -> Self {
        Self::of(&serde_json::to_value(&pod.object.spec).unwrap_or_default())
    }

    /// Adds the node selector of the pod's runtime class, as the API server does.
    #[must_use]
    pub fn with_class(mut self, class: &Value) -> Self {
        let labels = class.pointer("/scheduling/nodeSelector").and_then(|it| BTreeMap::deserialize(it).ok());
        self.node_selector.get_or_insert_default().extend(labels.unwrap_or_default());
        self
    }

    /// The value of the label in the node selector.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.node_selector.as_ref()?.get(key).map(String::as_str)
    }

    fn affinity(&self) -> Option<&NodeAffinity> {
        self.affinity.as_ref()?.node_affinity.as_ref()
    }

    /// The values for a label that its node selector and its affinity name.
    pub fn values<'s>(&'s self, key: &'s str) -> impl Iterator<Item = &'s str> {
        let of_affinity = self.affinity().into_iter().flat_map(move |affinity| affinity.values(key));
        self.label(key).into_iter().chain(of_affinity)
    }

    /// The keys of the selector that keep the pod from a node; `None` if its affinity does.
    pub fn missing(&self, node: &impl node_affinity::Node) -> Option<Vec<&str>> {
        let lacks = |(key, value): &(&String, &String)| {
            let has = node.label(key);
            has != LabelValue::Unknown && has != LabelValue::Value(value)
        };
        let missing = self.node_selector.iter().flatten().filter(lacks).map(|(key, _)| key.as_str());
        self.affinity().is_none_or(|affinity| affinity.allows(node)).then(|| missing.collect())
    }

    pub fn allow(&self, node: &impl node_affinity::Node) -> bool {
        self.missing(node).is_some_and(|missing| missing.is_empty())
    }

    /// The taints that keep the pod from a node.
    pub fn untolerated<'n>(&self, node: &'n Node) -> Vec<&'n Taint> {
        let taints = node.spec.iter().flat_map(|node| node.taints.iter().flatten());
        let keeps_away = |taint: &&Taint| taint.effect != "PreferNoSchedule";
        let is_tolerated = |taint: &Taint| self.tolerations.iter().flatten().any(|it| tolerates(it, taint));
        taints.filter(keeps_away).filter(|taint| !is_tolerated(taint)).collect()
    }
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let (key, effect, value) = (text(&toleration.key), text(&toleration.effect), text(&toleration.value));
    let is_of_key = key.is_empty() || key == taint.key;
    let is_of_effect = effect.is_empty() || effect == taint.effect;
    let is_of_value = match text(&toleration.operator).as_str() {
        "" | "Equal" => !key.is_empty() && value == taint.value.as_deref().unwrap_or_default(),
        _ => true,
    };
    is_of_key && is_of_effect && is_of_value
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn a_pod_selects_nodes_by_selector_and_affinity() {
        let node: Node = from_value(json!({"metadata": {"name": "win-1", "labels": {"os": "windows"}}})).unwrap();
        let affinity = |term: Value| {
            let terms = json!([{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}, term]);
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}})
        };
        let windows = json!([{"key": "os", "operator": "In", "values": ["windows"]}]);
        let on = |name: &str| json!([{"key": "metadata.name", "operator": "In", "values": [name]}]);
        for (pod, is_selected) in [
            (json!({}), true),
            (json!({"nodeSelector": {"os": "windows"}}), true),
            (json!({"nodeSelector": {"os": "linux"}}), false),
            (json!({"nodeSelector": {"os": "windows", "zone": "a"}}), false),
            (affinity(json!({"matchExpressions": windows})), true),
            (affinity(json!({"matchFields": on("win-1")})), true),
            (affinity(json!({"matchFields": on("win-2")})), false),
            (affinity(json!({})), false),
        ] {
            assert_eq!(NodeRequirements::of(&pod).allow(&Labelled(&node)), is_selected, "{pod}");
        }
    }

    #[test]
    fn a_taint_is_tolerated_as_the_scheduler_reads_it() {
        for (toleration, tolerated) in [
            (json!({"key": "os", "value": "windows"}), true),
            (json!({"key": "os", "operator": "Equal", "value": "windows", "effect": "NoSchedule"}), true),
            (json!({"key": "os", "operator": "Exists"}), true),
            (json!({"operator": "Exists"}), true),
            (json!({"key": "os", "operator": "Equal", "value": "linux"}), false),
            (json!({"key": "os", "operator": "Exists", "effect": "NoExecute"}), false),
            (json!({"key": "gpu", "operator": "Exists"}), false),
        ] {
            let node = json!({"metadata": {}, "spec": {"taints": [
                {"key": "os", "value": "windows", "effect": "NoSchedule"}, {"key": "soft", "effect": "PreferNoSchedule"},
            ]}});
            let node: Node = from_value(node).unwrap();
            let pod = NodeRequirements::of(&json!({"tolerations": [toleration]}));
            assert_eq!(pod.untolerated(&node).is_empty(), tolerated, "{toleration}");
        }
    }
}
