//! The nodes that a pod may run on: its node selector, required node affinity and tolerations, read as by the scheduler
//! (`component-helpers/scheduling/corev1` of Kubernetes). The pod is one of a cluster or of a manifest.
//!
//! Invariant: an unknown condition, such as an operator of a later version, does not exclude a node.

use std::collections::BTreeMap;

use gmsa_core::node_affinity::{self, LabelValue, NodeAffinity};
use k8s_openapi::api::core::v1::{Node, PodSpec, Taint, Toleration};
use serde::Deserialize as _;
use serde_json::Value;

/// The labels of a node.
pub fn labels(node: &Node) -> BTreeMap<String, String> {
    node.metadata.labels.clone().unwrap_or_default()
}

/// A node with all its labels.
struct Labelled<'n>(&'n Node);

impl node_affinity::Node for Labelled<'_> {
    fn label(&self, key: &str) -> LabelValue<'_> {
        self.0.metadata.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str).into()
    }

    fn name(&self) -> LabelValue<'_> {
        self.0.metadata.name.as_deref().into()
    }
}

/// The labels and fields that a pod requires of its node.
pub struct NodeRequirements {
    selector: BTreeMap<String, String>,
    pub affinity: NodeAffinity,
}

impl NodeRequirements {
    /// The requirements of a pod in a cluster.
    pub fn of_spec(spec: &PodSpec) -> Self {
        Self::of(&serde_json::to_value(spec).unwrap_or_default())
    }

    /// The requirements in a pod's spec. What the API server would refuse requires nothing.
    pub fn of(spec: &Value) -> Self {
        let labels = spec.get("nodeSelector").and_then(Value::as_object).into_iter().flatten();
        let selector = labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
        let affinity = spec.pointer("/affinity/nodeAffinity").and_then(|it| NodeAffinity::deserialize(it).ok());
        Self { selector, affinity: affinity.unwrap_or_default() }
    }

    /// The keys of the selector that keep the pod from a node; `None` if its affinity does.
    pub fn missing<'n>(&'n self, node: &'n Node) -> Option<impl Iterator<Item = &'n str>> {
        let lacks = |(key, value): &(&String, &String)| {
            node.metadata.labels.as_ref().and_then(|labels| labels.get(*key)) != Some(*value)
        };
        let missing = self.selector.iter().filter(lacks).map(|(key, _)| key.as_str());
        self.affinity.allows(&Labelled(node)).then_some(missing)
    }

    pub fn allow(&self, node: &Node) -> bool {
        self.missing(node).is_some_and(|mut missing| missing.next().is_none())
    }
}

/// The nodes that the pod selects.
pub fn selected<'n>(spec: &PodSpec, nodes: &'n [Node]) -> Vec<&'n Node> {
    let requirements = NodeRequirements::of_spec(spec);
    nodes.iter().filter(|node| requirements.allow(node)).collect()
}

/// The taints that keep the pod from a node.
pub fn untolerated<'n>(spec: &PodSpec, node: &'n Node) -> Vec<&'n Taint> {
    let taints = node.spec.iter().flat_map(|node| node.taints.iter().flatten());
    let keeps_away = |taint: &&Taint| taint.effect != "PreferNoSchedule";
    let is_tolerated = |taint: &Taint| spec.tolerations.iter().flatten().any(|toleration| tolerates(toleration, taint));
    taints.filter(keeps_away).filter(|taint| !is_tolerated(taint)).collect()
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

    fn spec(mut spec: Value) -> PodSpec {
        spec["containers"] = json!([]);
        from_value(spec).unwrap()
    }

    #[test]
    fn a_pod_selects_nodes_by_selector_and_affinity() {
        let nodes: Vec<Node> =
            from_value(json!([{"metadata": {"name": "win-1", "labels": {"os": "windows"}}}])).unwrap();
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
            assert_eq!(selected(&spec(pod.clone()), &nodes).len(), usize::from(is_selected), "{pod}");
            let of_manifest = NodeRequirements::of(&pod);
            assert_eq!(of_manifest.allow(&nodes[0]), is_selected, "{pod}");
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
            let pod = spec(json!({"tolerations": [toleration]}));
            assert_eq!(untolerated(&pod, &node).is_empty(), tolerated, "{toleration}");
        }
    }
}
