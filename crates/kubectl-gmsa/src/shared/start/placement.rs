//! Which nodes a pod may be on: its node selector and required node affinity, and its tolerations, as the scheduler reads them
//! (`component-helpers/scheduling/corev1` of Kubernetes).
//!
//! Invariant: what is not understood here, such as an operator of a later version, does not rule a node out.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Node, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration},
    apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement},
};
use kube::core::{Selector, SelectorExt as _};

/// The labels of a node.
pub fn labels(node: &Node) -> BTreeMap<String, String> {
    node.metadata.labels.clone().unwrap_or_default()
}

/// Whether the pod selects the node by its labels.
pub fn selects(spec: &PodSpec, labels: &BTreeMap<String, String>) -> bool {
    let mut by_selector = spec.node_selector.iter().flatten();
    let of_nodes = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = of_nodes.and_then(|of_nodes| of_nodes.required_during_scheduling_ignored_during_execution.as_ref());
    let holds = |term: &NodeSelectorTerm| term.match_expressions.iter().flatten().all(|one| requires(one, labels));
    by_selector.all(|(key, value)| labels.get(key) == Some(value))
        && required.is_none_or(|required| required.node_selector_terms.iter().any(holds))
}

fn requires(requirement: &NodeSelectorRequirement, labels: &BTreeMap<String, String>) -> bool {
    let NodeSelectorRequirement { key, operator, values } = requirement.clone();
    let requirement = LabelSelectorRequirement { key, operator, values };
    let selector = LabelSelector { match_expressions: Some(vec![requirement]), ..LabelSelector::default() };
    Selector::try_from(selector).map_or(true, |selector| selector.matches(labels))
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
    use serde_json::{Value, from_value, json};

    use super::*;

    fn spec(mut spec: Value) -> PodSpec {
        spec["containers"] = json!([]);
        from_value(spec).unwrap()
    }

    #[test]
    fn a_pod_selects_nodes_as_the_scheduler_reads_it() {
        let labels = BTreeMap::from([("os".to_owned(), "windows".to_owned())]);
        let affinity = |expressions: Value| {
            let terms = json!([{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}, {"matchExpressions": expressions}]);
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}})
        };
        let expression = |operator: &str| json!([{"key": "os", "operator": operator, "values": ["windows"]}]);
        for (pod, selected) in [
            (json!({}), true),
            (json!({"nodeSelector": {"os": "windows"}}), true),
            (json!({"nodeSelector": {"os": "linux"}}), false),
            (json!({"nodeSelector": {"os": "windows", "zone": "a"}}), false),
            (affinity(expression("In")), true),
            (affinity(expression("NotIn")), false),
            (affinity(expression("Exists")), true),
            (affinity(expression("DoesNotExist")), false),
            (affinity(expression("Later")), true),
        ] {
            assert_eq!(selects(&spec(pod.clone()), &labels), selected, "{pod}");
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
