//! Aggregated cluster roles: their rules are those of other roles, selected by label.
//!
//! In a cluster a controller copies the rules of all selected roles, repeatedly, until nothing changes. Here the same result is
//! computed in one pass. Two details were observed on Kubernetes 1.36: a role's own `rules` are lost,
//! but stay where its selectors bring none; roles that select each other in a circle never settle. Of those, each has here
//! what the circle selects outside of itself, and none of their own rules.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use gmsa_core::diagnostic::Diagnostic;
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
    let own = |name: &str| roles.get(name).into_iter().flat_map(|role| &role.rules).cloned();
    let sources = sources(roles);
    let all = |name: &str| match sources.get(name) {
        Some(sources) => sources.iter().flat_map(|source| own(source)).collect(),
        None => own(name).collect(),
    };
    roles.keys().map(|name| (name.clone(), all(name))).collect()
}

/// Of every aggregated role, the roles whose own rules make up its rules.
fn sources(roles: &BTreeMap<String, ClusterRole>) -> BTreeMap<&str, BTreeSet<&str>> {
    let selected: BTreeMap<&str, Vec<&str>> =
        roles.iter().filter_map(|(name, role)| selected(name, role, roles)).collect();
    let leads_to: BTreeMap<&str, BTreeSet<&str>> =
        selected.keys().map(|name| (*name, reached(name, &selected))).collect();
    let reaches = |from: &str, to: &str| leads_to.get(from).is_some_and(|others| others.contains(to));
    let has_rules = |name: &str| roles.get(name).is_some_and(|role| !role.rules.is_empty());

    // What a role leads to leads to less than the role itself; a circle comes before what merely leads to it.
    let mut order: Vec<&str> = selected.keys().copied().collect();
    order.sort_by_key(|name| (leads_to.get(name).map_or(0, BTreeSet::len), !reaches(name, name)));
    let mut sources: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for name in order {
        if sources.contains_key(name) {
            continue;
        }
        let circular = reaches(name, name);
        // The members of a circle share what any of them selects.
        let members: Vec<&str> = if circular {
            selected.keys().copied().filter(|other| reaches(name, other) && reaches(other, name)).collect()
        } else {
            vec![name]
        };
        let mut found: BTreeSet<&str> = BTreeSet::new();
        for other in members.iter().filter_map(|member| selected.get(member)).flatten() {
            if let Some(known) = sources.get(other) {
                found.extend(known);
            } else if !selected.contains_key(other) && has_rules(other) {
                found.insert(other);
            }
        }
        if found.is_empty() && !circular && has_rules(name) {
            found.insert(name);
        }
        sources.extend(members.into_iter().map(|member| (member, found.clone())));
    }
    sources
}

/// The other roles that an aggregated role selects; `None` for a role that is not aggregated.
fn selected<'a>(
    name: &'a str,
    role: &ClusterRole,
    roles: &'a BTreeMap<String, ClusterRole>,
) -> Option<(&'a str, Vec<&'a str>)> {
    let selectors = role.selectors.as_ref()?;
    let matches = |other: &ClusterRole| selectors.iter().any(|selector| selector.matches(&other.labels));
    let others = roles.iter().filter(|(other, role)| *other != name && matches(role));
    Some((name, others.map(|(other, _)| other.as_str()).collect()))
}

/// The aggregated roles to which an aggregated role leads; itself among them where it is part of a circle.
fn reached<'a>(name: &'a str, selected: &BTreeMap<&'a str, Vec<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![name];
    while let Some(next) = open.pop() {
        let others = selected.get(next).into_iter().flatten();
        open.extend(others.filter(|other| selected.contains_key(*other) && reached.insert(**other)));
    }
    reached
}

/// Reads a `metav1.LabelSelector`.
///
/// # Errors
/// What the API server would refuse in it.
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
    let takes_values = match name {
        "In" | "NotIn" => true,
        "Exists" | "DoesNotExist" => false,
        other => {
            return Err(operator.problem(&format!("expected In, NotIn, Exists or DoesNotExist, found {other:?}")));
        }
    };
    if takes_values == listed.is_empty() {
        let expected = if takes_values { "expected at least one value" } else { "expected no values" };
        return Err(values.problem(&format!("{expected} with this operator")));
    }
    let key = field.get("key").required_text()?.to_owned();
    let listed = listed.into_iter().collect();
    Ok(match name {
        "In" => Expression::In(key, listed),
        "NotIn" => Expression::NotIn(key, listed),
        "Exists" => Expression::Exists(key),
        _ => Expression::DoesNotExist(key),
    })
}
