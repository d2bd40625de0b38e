//! Where a pod may land, as far as its own spec says: the fields that keep it on Windows nodes.
//!
//! Only what the scheduler must honour counts: a preference is no placement.

use serde::Deserialize;

use super::super::review::{Text, null_is_default};

const OS: &str = "kubernetes.io/os";
const BUILD: &str = "node.kubernetes.io/windows-build";

/// The parts of a pod's `nodeSelector` that say something about Windows.
#[derive(Debug, Default, Deserialize)]
pub(super) struct NodeSelector<'a> {
    #[serde(borrow, rename = "kubernetes.io/os")]
    os: Option<Text<'a>>,
    #[serde(borrow, rename = "node.kubernetes.io/windows-build")]
    build: Option<Text<'a>>,
}

/// The parts of a pod's `affinity` that the scheduler must honour.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Affinity<'a> {
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    node_affinity: NodeAffinity<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct NodeAffinity<'a> {
    #[serde(
        borrow,
        rename = "requiredDuringSchedulingIgnoredDuringExecution",
        default,
        deserialize_with = "null_is_default"
    )]
    required: Required<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Required<'a> {
    /// Alternatives: one of them must hold.
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    node_selector_terms: Vec<Term<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Term<'a> {
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    match_expressions: Vec<Expression<'a>>,
}

#[derive(Debug, Deserialize)]
struct Expression<'a> {
    #[serde(borrow)]
    key: Option<Text<'a>>,
    #[serde(borrow)]
    operator: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    values: Vec<Text<'a>>,
}

impl NodeSelector<'_> {
    pub(super) fn is_windows(&self) -> bool {
        self.os.as_ref().is_some_and(|os| os.0 == "windows")
    }

    pub(super) fn has_build(&self) -> bool {
        self.build.is_some()
    }
}

impl Affinity<'_> {
    pub(super) fn is_windows(&self) -> bool {
        self.every_term(|expression| expression.selects(OS) && expression.values.iter().all(|os| os.0 == "windows"))
    }

    pub(super) fn has_build(&self) -> bool {
        self.every_term(|expression| expression.selects(BUILD))
    }

    fn every_term(&self, mut holds: impl FnMut(&Expression<'_>) -> bool) -> bool {
        let terms = &self.node_affinity.required.node_selector_terms;
        !terms.is_empty() && terms.iter().all(|term| term.match_expressions.iter().any(&mut holds))
    }
}

impl Expression<'_> {
    /// Whether the expression names the values that the label may have.
    fn selects(&self, label: &str) -> bool {
        self.key.as_ref().is_some_and(|key| key.0 == label)
            && self.operator.as_ref().is_some_and(|operator| operator.0 == "In")
            && !self.values.is_empty()
    }
}
