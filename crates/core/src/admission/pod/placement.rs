//! Where a pod may land, as far as its own spec says: the fields that keep it on Windows nodes.
//!
//! Only what the scheduler must honour counts: a preference does not. Invariants: lists become flags while
//! they are read, so that none of them takes memory.

use serde::{Deserialize, Deserializer};

use crate::json::{Object, Text, fold, null_is_default};

const OS: &str = "kubernetes.io/os";
const BUILD: &str = "node.kubernetes.io/windows-build";

#[derive(Debug, Default, Deserialize)]
pub(super) struct NodeSelector {
    #[serde(rename = "kubernetes.io/os")]
    pub os: Option<Text>,
    /// Set where the pod stays on nodes of one build of Windows.
    #[serde(rename = "node.kubernetes.io/windows-build")]
    pub build: Option<Text>,
}

impl NodeSelector {
    pub fn on_windows(&self) -> bool {
        self.os.as_deref() == Some("windows")
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Affinity {
    #[serde(default, deserialize_with = "null_is_default")]
    node_affinity: Object<NodeAffinity>,
}

impl Affinity {
    pub fn on_windows(&self) -> bool {
        let terms = &self.node_affinity.required.node_selector_terms;
        terms.any && !terms.one_not_on_windows
    }

    /// Whether the pod stays on nodes of certain builds of Windows.
    pub fn on_a_build(&self) -> bool {
        let terms = &self.node_affinity.required.node_selector_terms;
        terms.any && !terms.one_not_on_a_build
    }
}

#[derive(Debug, Default, Deserialize)]
struct NodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution", default, deserialize_with = "null_is_default")]
    required: Object<Required>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Required {
    #[serde(default)]
    node_selector_terms: Terms,
}

/// Alternatives: one of them must hold, so each of them must keep the pod on Windows.
#[derive(Debug, Default)]
struct Terms {
    any: bool,
    one_not_on_windows: bool,
    one_not_on_a_build: bool,
}

impl<'de> Deserialize<'de> for Terms {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        fold(input, Self::default(), |terms: &mut Self, Object(Term { match_expressions: all })| {
            terms.any = true;
            terms.one_not_on_windows |= !all.on_windows;
            terms.one_not_on_a_build |= !all.on_a_build;
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Term {
    #[serde(default)]
    match_expressions: Expressions,
}

/// Conditions that hold together, so one of them is enough.
#[derive(Default)]
struct Expressions {
    on_windows: bool,
    on_a_build: bool,
}

impl<'de> Deserialize<'de> for Expressions {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        fold(input, Self::default(), |all: &mut Self, Object(expression): Object<Expression>| {
            // Only `In` names the values that the label may have.
            if expression.operator.as_deref() == Some("In") && expression.values.any {
                all.on_windows |= expression.key.as_deref() == Some(OS) && !expression.values.another_os;
                all.on_a_build |= expression.key.as_deref() == Some(BUILD);
            }
        })
    }
}

#[derive(Deserialize)]
struct Expression {
    key: Option<Text>,
    operator: Option<Text>,
    #[serde(default)]
    values: Values,
}

#[derive(Default)]
struct Values {
    any: bool,
    another_os: bool,
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        fold(input, Self::default(), |values: &mut Self, value: Text| {
            values.any = true;
            values.another_os |= &*value != "windows";
        })
    }
}
