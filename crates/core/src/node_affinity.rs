//! Required node affinity of a pod: the nodes that it allows, as the scheduler reads it (`component-helpers/scheduling/corev1/nodeaffinity` of
//! Kubernetes): the terms are alternatives, the requirements of a term hold together, and a term without requirements matches no node.
//!
//! Invariant: an unknown label, and an operator of a later version, does not rule a node out.

use serde::Deserialize;

use crate::json::{Object, Text, null_is_default};

/// The value of a label or a field of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelValue<'n> {
    Value(&'n str),
    Absent,
    Unknown,
}

impl<'n> From<Option<&'n str>> for LabelValue<'n> {
    fn from(value: Option<&'n str>) -> Self {
        value.map_or(Self::Absent, Self::Value)
    }
}

/// A node, as far as it is known.
pub trait Node {
    fn label(&self, key: &str) -> LabelValue<'_>;

    /// `metadata.name`, which is the only field that a requirement can name.
    fn name(&self) -> LabelValue<'_> {
        LabelValue::Unknown
    }
}

/// Whether a requirement with this operator and these values holds for a value; `None` where the value, or the operator, is unknown.
pub fn holds<V: AsRef<str>>(operator: &str, values: &[V], value: LabelValue<'_>) -> Option<bool> {
    let value = match value {
        LabelValue::Value(value) => Some(value),
        LabelValue::Absent => None,
        LabelValue::Unknown => return None,
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

/// `spec.affinity.nodeAffinity` of a pod: what is required, without what is only preferred.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct NodeAffinity(AffinityFields<Vec<Term<Vec<Requirement>, Vec<Requirement>>>>);

/// `nodeAffinity` as it is written. `Terms` holds the terms, or the facts about them that a bounded reader keeps.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(bound(deserialize = "Terms: Default + Deserialize<'de>"))]
pub(crate) struct AffinityFields<Terms> {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    required: Option<Object<NodeSelector<Terms>>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "Terms: Default + Deserialize<'de>"))]
struct NodeSelector<Terms> {
    #[serde(default, deserialize_with = "null_is_default")]
    node_selector_terms: Terms,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(
    rename_all = "camelCase",
    bound(deserialize = "Expressions: Default + Deserialize<'de>, Fields: Default + Deserialize<'de>")
)]
pub(crate) struct Term<Expressions, Fields> {
    #[serde(default, deserialize_with = "null_is_default")]
    pub match_expressions: Expressions,
    #[serde(default, deserialize_with = "null_is_default")]
    pub match_fields: Fields,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(bound(deserialize = "Values: Default + Deserialize<'de>"))]
pub(crate) struct Requirement<Values = Vec<Text>> {
    #[serde(default, deserialize_with = "null_is_default")]
    pub key: Text,
    #[serde(default, deserialize_with = "null_is_default")]
    pub operator: Text,
    #[serde(default, deserialize_with = "null_is_default")]
    pub values: Values,
}

impl<Terms> AffinityFields<Terms> {
    /// The required terms; `None` where nothing is required.
    pub fn terms(&self) -> Option<&Terms> {
        self.required.as_ref().map(|required| &required.node_selector_terms)
    }
}

impl NodeAffinity {
    /// Whether the scheduler may put the pod on this node.
    pub fn allows(&self, node: &impl Node) -> bool {
        self.0.terms().is_none_or(|terms| terms.iter().any(|term| term.allows(node)))
    }

    /// The nodes that it names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let requirements = self.0.terms().into_iter().flatten().flat_map(|term| &term.match_fields);
        let by_name = requirements.filter(|requirement| &*requirement.operator == "In");
        by_name.flat_map(|requirement| requirement.values.iter().map(|name| &**name))
    }

    /// The values that its requirements name for a label.
    pub fn values<'s>(&'s self, label: &'s str) -> impl Iterator<Item = &'s str> {
        let requirements = self.0.terms().into_iter().flatten().flat_map(|term| &term.match_expressions);
        let about_label = requirements.filter(move |requirement| &*requirement.key == label);
        about_label.flat_map(|requirement| requirement.values.iter().map(|value| &**value))
    }
}

impl Term<Vec<Requirement>, Vec<Requirement>> {
    fn allows(&self, node: &impl Node) -> bool {
        let holds =
            |requirement: &Requirement, value| holds(&requirement.operator, &requirement.values, value) != Some(false);
        let is_empty = self.match_expressions.is_empty() && self.match_fields.is_empty();
        !is_empty
            && self.match_expressions.iter().all(|requirement| holds(requirement, node.label(&requirement.key)))
            && self.match_fields.iter().all(|requirement| match &*requirement.key {
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
        fn label(&self, key: &str) -> LabelValue<'_> {
            match key {
                "os" => LabelValue::Value("windows"),
                "cores" => LabelValue::Value("8"),
                "hidden" => LabelValue::Unknown,
                _ => LabelValue::Absent,
            }
        }

        fn name(&self) -> LabelValue<'_> {
            LabelValue::Value("win-1")
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
