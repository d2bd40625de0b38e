//! Kubernetes' RBAC over manifests: the [`Authorizer`] that replaces a cluster.
//!
//! Invariants: an answer is the one that the API server's RBAC authorizer gives for the same objects, its reason
//! included, and whatever no rule allows is denied. An access review names exactly the two groups of
//! [`Subject::groups`], so a binding to `system:authenticated`, in which every logged-in user is, counts neither here nor
//! in a cluster.

use std::{collections::BTreeMap, fmt, sync::Arc};

use futures::future::{BoxFuture, FutureExt, ready};
use tokio::time::Instant;

use super::{Authorization, Authorizer};
use gmsa_core::{
    admission::{Source, Subject, UseFact},
    credspec::SpecName,
};

mod aggregate;
mod objects;
mod rule;

pub use rule::Access;
use rule::PolicyRule;

#[derive(Clone, Copy, Debug)]
struct User<'a> {
    /// Such as `system:serviceaccount:default:web`.
    name: &'a str,
    groups: &'a [String],
}

/// A subject of a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    User(String),
    Group(String),
    ServiceAccount { namespace: String, name: String },
}

impl Holder {
    fn is(&self, user: &User<'_>) -> bool {
        match self {
            Self::User(name) => name == user.name,
            Self::Group(name) => user.groups.contains(name),
            Self::ServiceAccount { namespace, name } => {
                let rest = user.name.strip_prefix("system:serviceaccount:");
                rest.and_then(|rest| rest.split_once(':')) == Some((namespace, name))
            }
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(name) => write!(f, "User {name:?}"),
            Self::Group(name) => write!(f, "Group {name:?}"),
            // The API server writes the name first.
            Self::ServiceAccount { namespace, name } => write!(f, "ServiceAccount {:?}", format!("{name}/{namespace}")),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoleKind {
    /// Of the binding's namespace.
    Role,
    ClusterRole,
}

impl RoleKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Role => "Role",
            Self::ClusterRole => "ClusterRole",
        }
    }
}

/// A `RoleBinding` or a `ClusterRoleBinding`.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The namespace of a `RoleBinding`; `None` for a `ClusterRoleBinding`.
    pub namespace: Option<String>,
    pub name: String,
    pub role_kind: RoleKind,
    pub role: String,
    pub holders: Vec<Holder>,
    /// The role's rules; `None` where there is no such role.
    rules: Option<Arc<[Arc<PolicyRule>]>>,
}

impl Binding {
    fn allows(&self, access: &Access<'_>) -> bool {
        self.rules.iter().flat_map(|rules| rules.iter()).any(|rule| rule.allows(access))
    }
}

/// Why a subject has access. Its `Display` is the API server's reason.
#[derive(Clone, Copy, Debug)]
pub struct Grant<'a> {
    pub binding: &'a Binding,
    /// An entry of its holders.
    pub holder: &'a Holder,
}

impl fmt::Display for Grant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Binding { namespace, name, role_kind, role, .. } = self.binding;
        f.write_str("RBAC: allowed by ")?;
        match namespace {
            Some(namespace) => write!(f, "RoleBinding {:?}", format!("{name}/{namespace}"))?,
            None => write!(f, "ClusterRoleBinding {name:?}")?,
        }
        write!(f, " of {} {role:?} to {}", role_kind.as_str(), self.holder)
    }
}

#[derive(Debug, Default)]
pub struct Rbac {
    roles: usize,
    cluster_bindings: Vec<Binding>,
    bindings: BTreeMap<String, Vec<Binding>>,
}

impl Rbac {
    /// Of both kinds.
    pub fn role_count(&self) -> usize {
        self.roles
    }

    /// Of both kinds.
    pub fn binding_count(&self) -> usize {
        self.cluster_bindings.len() + self.bindings.values().map(Vec::len).sum::<usize>()
    }

    /// The namespaces that have bindings of their own, sorted.
    pub fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.bindings.keys().map(String::as_str)
    }

    /// Whether a service account may use a credential spec, and why.
    pub fn grant(&self, subject: &Subject, spec: &SpecName) -> Option<Grant<'_>> {
        let user = User { name: &subject.user(), groups: &subject.groups() };
        self.allows(&user, &Access::to_use(spec, &subject.namespace))
    }

    /// Whether `user` has `access`, and why: the first grant, those for the whole cluster before the namespace's own.
    fn allows(&self, user: &User<'_>, access: &Access<'_>) -> Option<Grant<'_>> {
        self.bindings_in(access.namespace).find_map(|binding| {
            let holder = binding.holders.iter().find(|holder| holder.is(user))?;
            binding.allows(access).then_some(Grant { binding, holder })
        })
    }

    /// Every grant of `access`, to any holder.
    pub fn grants<'a>(&'a self, access: &'a Access<'a>) -> impl Iterator<Item = Grant<'a>> {
        let bindings = self.bindings_in(access.namespace).filter(|binding| binding.allows(access));
        bindings.flat_map(|binding| binding.holders.iter().map(move |holder| Grant { binding, holder }))
    }

    /// The reason of a denial: the roles that bindings of `subject` refer to and that do not exist, as the API server
    /// reports them; `None` where there are none.
    fn missing_roles(&self, subject: &Subject) -> Option<String> {
        let user = User { name: &subject.user(), groups: &subject.groups() };
        let mut missing: Vec<String> = Vec::new();
        for binding in self.bindings_in(Some(&subject.namespace)).filter(|binding| binding.rules.is_none()) {
            if binding.holders.iter().any(|holder| holder.is(&user)) {
                let kind = binding.role_kind.as_str().to_ascii_lowercase();
                let text = format!("{kind}.{} {:?} not found", objects::GROUP, binding.role);
                if !missing.contains(&text) {
                    missing.push(text);
                }
            }
        }
        match missing.as_slice() {
            [] => None,
            [one] => Some(format!("RBAC: {one}")),
            several => Some(format!("RBAC: [{}]", several.join(", "))),
        }
    }

    fn bindings_in(&self, namespace: Option<&str>) -> impl Iterator<Item = &Binding> {
        let bindings = namespace.and_then(|namespace| self.bindings.get(namespace));
        self.cluster_bindings.iter().chain(bindings.into_iter().flatten())
    }
}

impl Authorizer for Rbac {
    fn may_use<'a>(&'a self, subject: &'a Subject, spec: &'a SpecName, _: Instant) -> BoxFuture<'a, Authorization> {
        let fact = match self.grant(subject, spec) {
            Some(_) => UseFact::Allowed,
            None => UseFact::Denied { reason: self.missing_roles(subject) },
        };
        ready(Authorization { fact, source: Source::Files }).boxed()
    }
}

#[cfg(test)]
mod tests;
