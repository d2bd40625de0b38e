//! Aggregated cluster roles: they have the rules of other roles, selected by label.
//!
//! In a cluster a controller copies the rules of all selected roles, repeatedly, until nothing changes. Here the same result is
//! computed in one pass. Two details were observed on Kubernetes 1.36: a role's own `rules` are lost,
//! but stay where its selectors bring none; roles that select each other in a circle never settle. Here each of
//! those has what the circle selects outside of itself, without its own rules.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use gmsa_core::diagnostic::Diagnostic;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;
use kube::core::{Expression, Selector, SelectorExt as _};

use super::PolicyRule;
use crate::manifests::Field;

/// The most aggregated roles, since the work grows with their square.
pub(super) const MAX_AGGREGATED: usize = 128;

/// A `ClusterRole` as it is written.
#[derive(Debug)]
pub(super) struct ClusterRole {
    pub labels: BTreeMap<String, String>,
    pub rules: Vec<Arc<PolicyRule>>,
    /// Set where it is aggregated: it has the rules of the roles that any selector matches.
    pub selectors: Option<Vec<Selector>>,
}

/// The rules of every `ClusterRole`, by name.
pub(super) fn rules(roles: &BTreeMap<String, ClusterRole>) -> BTreeMap<String, Arc<[Arc<PolicyRule>]>> {
    let selected: BTreeMap<&str, Vec<&str>> =
        roles.iter().map(|(name, role)| (&**name, selected(role, roles))).collect();
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        selected.keys().map(|name| (*name, reached(name, &selected))).collect();
    let own = |name: &str| roles.get(name).map(|role| &role.rules[..]).unwrap_or_default();
    let leads_to = |name: &str| reached.get(name).into_iter().flatten();
    // A role that is part of a circle loses its own rules, and so does a role that aggregates roles with rules.
    let has_rules = |name: &str| !own(name).is_empty() && !leads_to(name).any(|other| *other == name);
    let keeps_rules = |name: &&str| has_rules(name) && !leads_to(name).any(|other| has_rules(other));
    let keeping: BTreeSet<&str> = reached.keys().copied().filter(keeps_rules).collect();
    let all = |name: &str| {
        let sources = leads_to(name).filter(|source| keeping.contains(*source)).chain(keeping.get(name));
        sources.flat_map(|source| own(source)).cloned().collect()
    };
    roles.keys().map(|name| (name.clone(), all(name))).collect()
}

/// The roles that an aggregated role selects; none for a role that is not aggregated.
fn selected<'a>(role: &ClusterRole, roles: &'a BTreeMap<String, ClusterRole>) -> Vec<&'a str> {
    let selectors = role.selectors.iter().flatten();
    let matches = |other: &ClusterRole| selectors.clone().any(|selector| selector.matches(&other.labels));
    roles.iter().filter(|(_, other)| matches(other)).map(|(name, _)| &**name).collect()
}

/// The roles that a role selects, directly or through others. They include the role itself if it is part of a circle.
fn reached<'a>(name: &'a str, selected: &BTreeMap<&'a str, Vec<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![name];
    while let Some(next) = open.pop() {
        let others = selected.get(next).into_iter().flatten().filter(|other| **other != next);
        open.extend(others.filter(|other| reached.insert(**other)));
    }
    reached
}

/// Reads a `metav1.LabelSelector`.
///
/// # Errors
/// The reason for which the API server would refuse it.
pub(super) fn read_selector(field: &Field<'_>) -> Result<Selector, Diagnostic> {
    field.expect_only(&["matchExpressions", "matchLabels"])?;
    let mut selector = Selector::default();
    for (key, value) in field.get("matchLabels").entries()? {
        selector.extend(Expression::Equal(key.to_owned(), value.text()?.to_owned()));
    }
    for expression in field.get("matchExpressions").items()? {
        selector.extend(read_expression(&expression)?);
    }
    Ok(selector)
}

fn read_expression(field: &Field<'_>) -> Result<Expression, Diagnostic> {
    field.expect_only(&["key", "operator", "values"])?;
    let (operator, values) = (field.get("operator"), field.get("values"));
    let (name, listed) = (operator.required_text()?, values.texts()?);
    let (key, values_of) = (field.get("key").required_text()?.to_owned(), Some(listed.clone()));
    let requirement = LabelSelectorRequirement { key, operator: name.to_owned(), values: values_of };
    let unknown = |_| operator.problem(&format!("expected In, NotIn, Exists or DoesNotExist, found {name:?}"));
    let expression = Expression::try_from(requirement).map_err(unknown)?;
    let takes_values = matches!(expression, Expression::In(..) | Expression::NotIn(..));
    if takes_values == listed.is_empty() {
        let expected = if takes_values { "expected at least one value" } else { "expected no values" };
        return Err(values.problem(&format!("{expected} with this operator")));
    }
    Ok(expression)
}
