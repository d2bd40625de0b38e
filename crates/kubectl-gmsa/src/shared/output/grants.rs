//! Grants of credential specs: a table, or JSON.

use std::collections::BTreeSet;

use gmsa_cluster::authorizer::rbac::{Binding, Holder};
use gmsa_core::diagnostic::{Diagnostic, Diagnostics, rules::SPEC_MISSING};
use serde::Serialize;

use super::{Outcome, Shape, json, print_as, table::table};

/// A grant, without the credential spec or subject of the question.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential_spec: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<Named>,
    pub binding: Named,
    pub role: Named,
    /// The other rights that it gives beside `use`, in words of `kubectl`: `exec`, `export`.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub may: BTreeSet<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Named {
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    pub name: String,
}

impl Grant {
    /// A grant by this binding.
    pub fn by(binding: &Binding) -> Self {
        let kind = if binding.namespace.is_some() { "RoleBinding" } else { "ClusterRoleBinding" };
        let role_namespace = binding.namespace.clone().filter(|_| binding.role_kind.as_str() == "Role");
        Self {
            credential_spec: None,
            subject: None,
            binding: Named { kind, namespace: binding.namespace.clone(), name: binding.name.clone() },
            role: Named { kind: binding.role_kind.as_str(), namespace: role_namespace, name: binding.role.clone() },
            may: BTreeSet::new(),
        }
    }

    pub fn with_subject(mut self, holder: &Holder) -> Self {
        let (kind, namespace, name) = match holder {
            Holder::ServiceAccount { namespace, name } => ("ServiceAccount", Some(namespace.clone()), name),
            Holder::User(name) => ("User", None, name),
            Holder::Group(name) => ("Group", None, name),
        };
        self.subject = Some(Named { kind, namespace, name: name.clone() });
        self
    }

    /// The binding and its role, for people.
    pub fn why(&self) -> String {
        let Self { binding, role, .. } = self;
        format!("{} {} of {} {}", binding.kind, binding.name, role.kind, role.name)
    }

    fn verbs(&self) -> String {
        self.may.iter().copied().collect::<Vec<_>>().join(", ")
    }

    /// The binding, with the verbs that it gives, unless that is `use` alone.
    fn why_and_verbs(&self) -> String {
        if self.may.is_empty() { self.why() } else { format!("{}: {}", self.why(), self.verbs()) }
    }

    /// The namespace that it holds in, `*` for all.
    fn namespace(&self) -> String {
        self.binding.namespace.clone().unwrap_or_else(|| "*".to_owned())
    }

    fn who(&self) -> String {
        match &self.subject {
            Some(Named { kind, namespace: Some(namespace), name }) => format!("{kind} {namespace}:{name}"),
            Some(Named { kind, namespace: None, name }) => format!("{kind} {name}"),
            None => String::new(),
        }
    }
}

/// The grants, failed reads, and a credential spec that does not exist.
#[derive(Serialize)]
pub struct Grants {
    #[serde(rename = "grants")]
    pub found: BTreeSet<Grant>,
    /// The users that may act as the subjects' pods.
    #[serde(rename = "actAsPods", skip_serializing_if = "BTreeSet::is_empty")]
    pub act_as_pods: BTreeSet<Grant>,
    #[serde(rename = "findings", serialize_with = "json::findings")]
    pub problems: Diagnostics,
    /// The output without a grant.
    #[serde(skip)]
    pub none: String,
}

impl Grants {
    /// Prints the problems, then the grants.
    pub fn print(&self, shape: Shape) -> anyhow::Result<Outcome> {
        let of = |problem: &Diagnostic| {
            if *problem.rule == SPEC_MISSING { Outcome::Findings } else { Outcome::Incomplete }
        };
        let outcome = self.problems.as_slice().iter().map(of).max().unwrap_or(Outcome::Clean);
        print_as(shape, outcome, || self.table(), self)
    }

    fn table(&self) -> String {
        let problems = self.problems.as_slice().iter();
        let mut lines: Vec<String> = problems.map(|problem| format!("{}: {problem}\n", problem.rule.id)).collect();
        lines.push(if self.found.is_empty() {
            format!("{}\n", self.none)
        } else if self.found.iter().any(|grant| grant.credential_spec.is_some()) {
            let row = |grant: &Grant| [grant.credential_spec.clone().unwrap_or_default(), grant.why_and_verbs()];
            table(["CREDENTIAL SPEC", "BY"], &self.found.iter().map(row).collect())
        } else {
            let row = |grant: &Grant| [grant.namespace(), grant.who(), grant.why_and_verbs()];
            table(["NAMESPACE", "WHO", "BY"], &self.found.iter().map(row).collect())
        });
        if !self.act_as_pods.is_empty() {
            let row = |grant: &Grant| [grant.namespace(), grant.who(), grant.verbs(), grant.why()];
            let rows = table(["NAMESPACE", "WHO", "MAY", "BY"], &self.act_as_pods.iter().map(row).collect());
            lines.push(format!("\nWho may act as these pods:\n{rows}"));
        }
        lines.concat()
    }
}
