//! Which nodes the required node affinity of a pod allows, as the scheduler reads it (`component-helpers/scheduling/corev1/nodeaffinity` of
//! Kubernetes): the terms are alternatives, the requirements of a term hold together, and a term without requirements matches no node.
//!
//! Invariant: what is not known of a node, and an operator of a later version, does not rule a node out.

use serde::Deserialize;

use crate::json::null_is_default;

/// What is known of a label or a field of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known<'n> {
    Value(&'n str),
    Absent,
    Unknown,
}

impl<'n> From<Option<&'n str>> for Known<'n> {
    fn from(value: Option<&'n str>) -> Self {
        value.map_or(Self::Absent, Self::Value)
    }
}

/// A node, or what is known of one.
pub trait Node {
    fn label(&self, key: &str) -> Known<'_>;

    /// `metadata.name`, which is the only field that a requirement can name.
    fn name(&self) -> Known<'_> {
        Known::Unknown
    }
}

/// Whether a requirement with this operator and these values holds for what is known; `None` where that is not known.
pub fn holds<V: AsRef<str>>(operator: &str, values: &[V], known: Known<'_>) -> Option<bool> {
    let value = match known {
        Known::Value(value) => Some(value),
        Known::Absent => None,
        Known::Unknown => return None,
    };
    let is_listed = || value.is_some_and(|value| values.iter().any(|listed| listed.as_ref() == value));
    let compared = |is_met: fn(i64, i64) -> bool| {
        let [bound] = values else { return false };
        let number = |text: &str| text.parse::<i64>().ok();
        value.and_then(number).zip(number(bound.as_ref())).is_some_and(|(value, bound)| is_met(value, bound))
    };
    match operator {
        "In" => Some(is_listed()),
        "NotIn" => Some(!is_listed()),
        "Exists" => Some(value.is_some()),
        "DoesNotExist" => Some(value.is_none()),
        "Gt" => Some(compared(|value, bound| value > bound)),
        "Lt" => Some(compared(|value, bound| value < bound)),
        _ => None,
    }
}

/// `spec.affinity.nodeAffinity` of a pod, without what is only preferred.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct NodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    required: Option<NodeSelector>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeSelector {
    #[serde(default, deserialize_with = "null_is_default")]
    node_selector_terms: Vec<Term>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Term {
    #[serde(default, deserialize_with = "null_is_default")]
    match_expressions: Vec<Requirement>,
    #[serde(default, deserialize_with = "null_is_default")]
    match_fields: Vec<Requirement>,
}

#[derive(Clone, Debug, Deserialize)]
struct Requirement {
    key: String,
    operator: String,
    #[serde(default, deserialize_with = "null_is_default")]
    values: Vec<String>,
}

impl NodeAffinity {
    /// Whether the scheduler may put the pod on this node.
    pub fn allows(&self, node: &impl Node) -> bool {
        self.required.as_ref().is_none_or(|required| required.node_selector_terms.iter().any(|term| term.allows(node)))
    }

    /// The nodes that it names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let terms = self.required.iter().flat_map(|required| &required.node_selector_terms);
        let of_name = terms.flat_map(|term| &term.match_fields).filter(|requirement| requirement.operator == "In");
        of_name.flat_map(|requirement| requirement.values.iter().map(String::as_str))
    }

    /// The values that its requirements name for a label.
    pub fn values<'s>(&'s self, label: &'s str) -> impl Iterator<Item = &'s str> {
        let terms = self.required.iter().flat_map(|required| &required.node_selector_terms);
        let of_label =
            terms.flat_map(|term| &term.match_expressions).filter(move |requirement| requirement.key == label);
        of_label.flat_map(|requirement| requirement.values.iter().map(String::as_str))
    }
}

impl Term {
    fn allows(&self, node: &impl Node) -> bool {
        let holds =
            |requirement: &Requirement, known| holds(&requirement.operator, &requirement.values, known) != Some(false);
        let is_empty = self.match_expressions.is_empty() && self.match_fields.is_empty();
        !is_empty
            && self.match_expressions.iter().all(|requirement| holds(requirement, node.label(&requirement.key)))
            && self.match_fields.iter().all(|requirement| match requirement.key.as_str() {
                "metadata.name" => holds(requirement, node.name()),
                _ => true,
            })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    struct Win1;

    impl Node for Win1 {
        fn label(&self, key: &str) -> Known<'_> {
            match key {
                "os" => Known::Value("windows"),
                "cores" => Known::Value("8"),
                "hidden" => Known::Unknown,
                _ => Known::Absent,
            }
        }

        fn name(&self) -> Known<'_> {
            Known::Value("win-1")
        }
    }

    fn allows(terms: &Value) -> bool {
        let affinity = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
        serde_json::from_value::<NodeAffinity>(affinity).unwrap().allows(&Win1)
    }

    #[test]
    fn each_operator_is_that_of_the_scheduler() {
        for (key, operator, values, allowed) in [
            ("os", "In", json!(["linux", "windows"]), true),
            ("os", "In", json!(["linux"]), false),
            ("os", "In", json!([]), false),
            ("zone", "In", json!(["a"]), false),
            ("os", "NotIn", json!(["linux"]), true),
            ("os", "NotIn", json!(["windows"]), false),
            ("zone", "NotIn", json!(["a"]), true),
            ("os", "Exists", json!(null), true),
            ("zone", "Exists", json!(null), false),
            ("os", "DoesNotExist", json!(null), false),
            ("zone", "DoesNotExist", json!(null), true),
            ("cores", "Gt", json!(["7"]), true),
            ("cores", "Gt", json!(["8"]), false),
            ("cores", "Lt", json!(["9"]), true),
            ("cores", "Lt", json!(["8"]), false),
            ("cores", "Lt", json!(["9", "10"]), false),
            ("cores", "Gt", json!(["many"]), false),
            ("os", "Gt", json!(["7"]), false),
            ("zone", "Gt", json!(["7"]), false),
            ("os", "Later", json!(["linux"]), true),
            ("hidden", "In", json!(["linux"]), true),
            ("hidden", "DoesNotExist", json!(null), true),
        ] {
            let requirement = json!({"key": key, "operator": operator, "values": values});
            assert_eq!(allows(&json!([{"matchExpressions": [requirement]}])), allowed, "{requirement}");
        }
    }

    #[test]
    fn terms_are_alternatives_and_requirements_hold_together() {
        let windows = json!({"key": "os", "operator": "In", "values": ["windows"]});
        let linux = json!({"key": "os", "operator": "In", "values": ["linux"]});
        let on = |node: &str| json!({"key": "metadata.name", "operator": "In", "values": [node]});
        for (terms, allowed) in [
            (json!([]), false),
            (json!(null), false),
            (json!([{}]), false),
            (json!([{"matchExpressions": [], "matchFields": null}]), false),
            (json!([{}, {"matchExpressions": [windows]}]), true),
            (json!([{"matchExpressions": [linux]}, {"matchExpressions": [windows]}]), true),
            (json!([{"matchExpressions": [windows, linux]}]), false),
            (json!([{"matchFields": [on("win-1")]}]), true),
            (json!([{"matchFields": [on("win-2")]}]), false),
            (json!([{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["win-1"]}]}]), false),
            (json!([{"matchExpressions": [windows], "matchFields": [on("win-2")]}]), false),
            (json!([{"matchExpressions": [linux]}, {"matchFields": [on("win-1")]}]), true),
            (json!([{"matchFields": [{"key": "spec.later", "operator": "In", "values": ["x"]}]}]), true),
        ] {
            assert_eq!(allows(&terms), allowed, "{terms}");
        }
        for without in [json!({}), json!({"preferredDuringSchedulingIgnoredDuringExecution": []})] {
            assert!(serde_json::from_value::<NodeAffinity>(without).unwrap().allows(&Win1));
        }
    }
}
