//! Kubernetes' RBAC over manifests: the [`Authorizer`] that replaces a cluster.
//!
//! Invariants: an answer equals the answer of the API server's RBAC authorizer for the same objects, the reason of
//! a denial included, and what no rule allows is denied. An access review names exactly the two groups of
//! [`ServiceAccount::groups`], so a binding to `system:authenticated`, in which every logged-in user is, counts neither here nor
//! in a cluster.

use std::{collections::BTreeMap, sync::Arc};

use futures::future::{FutureExt, ready};
use tokio::time::Instant;

use super::{Answer, Authorization, Authorizer};
use gmsa_core::{
    admission::{ServiceAccount, Source, UseFact},
    credspec::{GROUP, PLURAL, SpecName, Verb},
    word_enum,
};
use k8s_openapi::api::rbac::v1::PolicyRule;

mod aggregate;
mod objects;

/// A subject of a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    User(String),
    Group(String),
    ServiceAccount { namespace: String, name: String },
}

impl Holder {
    fn is(&self, account: &ServiceAccount) -> bool {
        match self {
            Self::User(name) => *name == account.user(),
            Self::Group(name) => account.groups().contains(name),
            Self::ServiceAccount { namespace, name } => **namespace == *account.namespace && **name == *account.name,
        }
    }

    /// Whether some pod of a namespace, or of any namespace, can be this holder: the access review of a pod names the user of its
    /// service account and that user's two groups (Kubernetes, "Managing Service Accounts"), never `system:authenticated`.
    pub fn is_of_pods_in(&self, namespace: Option<&str>) -> bool {
        let is_in = |name: &str| namespace.is_none_or(|namespace| namespace == name);
        match self {
            Self::ServiceAccount { namespace, .. } => is_in(namespace),
            Self::User(name) => {
                let account = name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
                account.is_some_and(|(namespace, _)| is_in(namespace))
            }
            Self::Group(name) => match name.strip_prefix("system:serviceaccounts") {
                Some("") => true,
                Some(rest) => rest.strip_prefix(':').is_some_and(is_in),
                None => false,
            },
        }
    }
}

word_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum RoleKind {
        /// In the binding's namespace.
        Role = "Role",
        ClusterRole = "ClusterRole",
    }
}

/// The rules of a role, which its bindings share, and aggregated roles each of them.
type RoleRules = Arc<[Arc<PolicyRule>]>;

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
    rules: Option<RoleRules>,
}

impl Binding {
    fn allows(&self, action: Action<'_>) -> bool {
        self.rules.iter().flat_map(|rules| rules.iter()).any(|rule| allows(rule, action))
    }
}

/// The verbs that a subject may use on an object.
#[derive(Clone, Copy, Debug)]
pub struct Action<'a> {
    pub verb: &'a str,
    pub group: &'a str,
    /// The plural, with the subresource after a slash: `pods/exec`.
    pub resource: &'a str,
    /// `None` for some object.
    pub name: Option<&'a str>,
}

impl<'a> From<(Verb, &'a SpecName)> for Action<'a> {
    fn from((verb, spec): (Verb, &'a SpecName)) -> Self {
        Self { verb: verb.as_str(), group: GROUP, resource: PLURAL, name: Some(spec.as_str()) }
    }
}

/// Whether a rule of a role allows an action. A rule for `nonResourceURLs` has no group and no resource, so it allows nothing here.
fn allows(rule: &PolicyRule, Action { verb, group, resource, name }: Action<'_>) -> bool {
    let any_or = |list: &[String], wanted: &str| list.iter().any(|entry| entry == "*" || entry == wanted);
    let [groups, resources, names] =
        [&rule.api_groups, &rule.resources, &rule.resource_names].map(|list| list.as_deref().unwrap_or_default());
    let of_any = resource.split_once('/').map(|(_, subresource)| format!("*/{subresource}"));
    any_or(&rule.verbs, verb)
        && any_or(groups, group)
        && (any_or(resources, resource) || of_any.is_some_and(|of_any| resources.contains(&of_any)))
        // Without names, a rule is about all objects.
        && (names.is_empty() || name.is_none_or(|name| names.iter().any(|own| own == name)))
}

/// Why a subject has access.
#[derive(Clone, Copy, Debug)]
pub struct BindingGrant<'a> {
    pub binding: &'a Binding,
    /// The subject of the binding that has the access.
    pub holder: &'a Holder,
}

#[derive(Debug, Default)]
pub struct Rbac {
    roles: usize,
    /// By their namespaces, `None` for the whole cluster; sorted by name.
    bindings: BTreeMap<Option<String>, Vec<Binding>>,
}

impl Rbac {
    /// How many roles and cluster roles there are.
    pub fn role_count(&self) -> usize {
        self.roles
    }

    /// How many role bindings and cluster role bindings there are.
    pub fn binding_count(&self) -> usize {
        self.bindings.values().map(Vec::len).sum()
    }

    /// The namespaces that have bindings of their own, sorted.
    pub fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.bindings.keys().flatten().map(String::as_str)
    }

    /// Whether a service account may use a credential spec, or export it, and why: the first grant, those for the whole cluster before the
    /// namespace's own.
    pub fn grant(&self, account: &ServiceAccount, verb: Verb, spec: &SpecName) -> Option<BindingGrant<'_>> {
        self.grants((verb, spec), &account.namespace).find(|grant| grant.holder.is(account))
    }

    /// Every grant of a credential spec, or of another action, in a namespace, to any holder.
    pub fn grants<'r, 'a>(
        &'r self,
        action: impl Into<Action<'a>>,
        namespace: &str,
    ) -> impl Iterator<Item = BindingGrant<'r>> {
        let action = action.into();
        let bindings = self.bindings_in(namespace).filter(move |binding| binding.allows(action));
        bindings.flat_map(|binding| binding.holders.iter().map(move |holder| BindingGrant { binding, holder }))
    }

    /// The reason of a denial: the roles that bindings of the service account refer to and that do not exist, as the API server
    /// reports them; `None` if all exist.
    fn missing_roles(&self, account: &ServiceAccount) -> Option<String> {
        let mut missing: Vec<String> = Vec::new();
        for binding in self.bindings_in(&account.namespace).filter(|binding| binding.rules.is_none()) {
            if binding.holders.iter().any(|holder| holder.is(account)) {
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

    fn bindings_in(&self, namespace: &str) -> impl Iterator<Item = &Binding> + use<'_> {
        [None, Some(namespace.to_owned())].into_iter().filter_map(|scope| self.bindings.get(&scope)).flatten()
    }
}

impl Authorizer for Rbac {
    fn may<'a>(&'a self, account: &'a ServiceAccount, verb: Verb, spec: &'a SpecName, _: Instant) -> Answer<'a> {
        let fact = match self.grant(account, verb, spec) {
            Some(_) => UseFact::Allowed,
            None => UseFact::Denied { reason: self.missing_roles(account) },
        };
        ready(Authorization { fact, source: Source::Files }).boxed()
    }
}

#[cfg(test)]
mod tests;
