//! Cluster roles that are put together from others by their labels.
//!
//! In a cluster a controller writes the rules of such a role, over and over, until nothing changes; what stood in its own
//! `rules` is lost. Here the same end is reached by following the selectors.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::Rule;
use crate::manifests::{Field, Problem};

/// A `ClusterRole` as it is written.
#[derive(Debug)]
pub(super) struct ClusterRole {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its own rules.
    pub rules: Vec<Rule>,
    /// Where it is aggregated: the roles whose rules it has instead are those that any selector matches.
    pub selectors: Option<Vec<Selector>>,
}

/// The rules of every `ClusterRole`, by name.
pub(super) fn rules(roles: &BTreeMap<String, ClusterRole>) -> BTreeMap<String, Arc<[Rule]>> {
    roles.iter().map(|(name, role)| (name.clone(), expand(name, role, roles))).collect()
}

/// The rules of all roles without an `aggregationRule` that selectors lead to, directly or through other aggregated roles.
fn expand(name: &str, role: &ClusterRole, roles: &BTreeMap<String, ClusterRole>) -> Arc<[Rule]> {
    let mut collected = Vec::new();
    // Roles may select each other in a circle, or themselves.
    let mut seen = BTreeSet::from([name]);
    let mut open = vec![role];
    while let Some(role) = open.pop() {
        let Some(selectors) = &role.selectors else {
            collected.extend(role.rules.iter().cloned());
            continue;
        };
        for (name, other) in roles {
            if selectors.iter().any(|selector| selector.matches(&other.labels)) && seen.insert(name) {
                open.push(other);
            }
        }
    }
    collected.into()
}

/// A label selector: all its requirements must hold; without any it matches everything.
#[derive(Debug)]
pub(super) struct Selector(Vec<(String, Requirement)>);

/// What must hold of the value of one label.
#[derive(Debug)]
enum Requirement {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
}

impl Selector {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|(key, requirement)| {
            let value = labels.get(key);
            match requirement {
                Requirement::In(values) => value.is_some_and(|value| values.contains(value)),
                Requirement::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
                Requirement::Exists => value.is_some(),
                Requirement::DoesNotExist => value.is_none(),
            }
        })
    }

    /// Reads a `metav1.LabelSelector`.
    ///
    /// # Errors
    /// What the API server would refuse in it.
    pub fn read(field: &Field<'_>) -> Result<Self, Problem> {
        field.expect_only(&["matchExpressions", "matchLabels"])?;
        let mut requirements = Vec::new();
        for (key, value) in field.get("matchLabels").entries()? {
            requirements.push((key.to_owned(), Requirement::In(vec![value.text()?.to_owned()])));
        }
        for expression in field.get("matchExpressions").items()? {
            expression.expect_only(&["key", "operator", "values"])?;
            let values = expression.get("values");
            let listed = values.texts()?;
            let operator = expression.get("operator");
            let (requirement, takes_values) = match operator.required_text()? {
                "In" => (Requirement::In(listed.clone()), true),
                "NotIn" => (Requirement::NotIn(listed.clone()), true),
                "Exists" => (Requirement::Exists, false),
                "DoesNotExist" => (Requirement::DoesNotExist, false),
                other => {
                    let expected = "expected In, NotIn, Exists or DoesNotExist";
                    return Err(operator.problem(&format!("{expected}, found {other:?}")));
                }
            };
            if takes_values == listed.is_empty() {
                let expected = if takes_values { "expected at least one value" } else { "expected no values" };
                return Err(values.problem(&format!("{expected} with this operator")));
            }
            requirements.push((expression.get("key").required_text()?.to_owned(), requirement));
        }
        Ok(Self(requirements))
    }
}
