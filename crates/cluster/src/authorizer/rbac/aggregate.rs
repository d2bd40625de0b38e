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
use k8s_openapi::{
    api::rbac::v1::{AggregationRule, PolicyRule},
    apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement},
};
use kube::core::{Selector, SelectorExt as _};

use super::RoleRules;
use crate::manifests::Document;

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
pub(super) fn rules(roles: &BTreeMap<String, ClusterRole>) -> BTreeMap<String, RoleRules> {
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

/// The selectors of an aggregated role.
///
/// # Errors
/// The reason for which the API server would refuse them.
pub(super) fn selectors(document: &Document, rule: AggregationRule) -> Result<Vec<Selector>, Diagnostic> {
    const AT: &str = "/aggregationRule/clusterRoleSelectors";
    let written = rule.cluster_role_selectors.unwrap_or_default();
    if written.is_empty() {
        return Err(document.problem(AT, "expected at least one selector"));
    }
    let selector = |(index, written): (usize, LabelSelector)| {
        for (number, requirement) in written.match_expressions.iter().flatten().enumerate() {
            let at = format!("{AT}/{index}/matchExpressions/{number}");
            expect_requirement(requirement)
                .map_err(|(field, message)| document.problem(&format!("{at}/{field}"), &message))?;
        }
        Selector::try_from(written).map_err(|error| document.problem(&format!("{AT}/{index}"), &error.to_string()))
    };
    written.into_iter().enumerate().map(selector).collect()
}

/// Refuses a requirement with the name of its field and the reason.
fn expect_requirement(requirement: &LabelSelectorRequirement) -> Result<(), (&'static str, String)> {
    let LabelSelectorRequirement { key, operator, values } = requirement;
    let takes_values = match operator.as_str() {
        "In" | "NotIn" => true,
        "Exists" | "DoesNotExist" => false,
        other => return Err(("operator", format!("expected In, NotIn, Exists or DoesNotExist, found {other:?}"))),
    };
    if key.is_empty() {
        return Err(("key", "expected a string that is not empty".to_owned()));
    }
    if takes_values == values.as_ref().is_none_or(Vec::is_empty) {
        let expected = if takes_values { "expected at least one value" } else { "expected no values" };
        return Err(("values", format!("{expected} with this operator")));
    }
    Ok(())
}
