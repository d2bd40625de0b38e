//! Roles and bindings from manifests, with the checks of the API server.
//!
//! Invariants: an object that could not exist in a cluster is an error and grants nothing. That includes unknown
//! fields, because a mistyped `resourceNames` would open every credential spec.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use gmsa_core::{
    credspec::is_dns_subdomain,
    diagnostic::{Diagnostic, Location},
};
use k8s_openapi::{
    api::rbac::v1::{self, PolicyRule, RoleRef, Subject},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use super::{
    Binding, Holder, Rbac, RoleKind, RoleRules,
    aggregate::{self, ClusterRole},
};
use crate::manifests::Document;

pub(super) const GROUP: &str = "rbac.authorization.k8s.io";
const API_VERSION: &str = "rbac.authorization.k8s.io/v1";
/// Where `kubectl` puts an object that names no namespace, by default.
const DEFAULT_NAMESPACE: &str = "default";

impl Rbac {
    /// Takes the roles and bindings among `documents`; other kinds are skipped. A `Role` or `RoleBinding` without a
    /// namespace is in `default`. `cluster-admin` is built in; other default roles grant nothing on credential specs.
    /// Objects that the API server would refuse are left out, as in a cluster, and reported.
    pub fn from_documents(documents: &[Document]) -> (Self, Vec<Diagnostic>) {
        let mut objects = RbacObjects::default();
        let ours = documents.iter().filter(|document| document.group() == GROUP);
        let problems = ours.filter_map(|document| objects.add(document).err()).collect();
        (objects.link(), problems)
    }
}

/// The objects as they are written.
#[derive(Default)]
struct RbacObjects {
    seen: BTreeMap<(String, Option<String>, String), Location>,
    roles: BTreeMap<(Option<String>, String), RoleRules>,
    cluster_roles: BTreeMap<String, ClusterRole>,
    aggregated: usize,
    bindings: Vec<Binding>,
}

impl RbacObjects {
    fn add(&mut self, document: &Document) -> Result<(), Diagnostic> {
        let kind = document.kind.as_str();
        if !["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"].contains(&kind) {
            return Ok(());
        }
        if document.api_version != API_VERSION {
            return Err(document.problem("/apiVersion", &format!("expected {API_VERSION}")));
        }
        match kind {
            "Role" => {
                let v1::Role { metadata, rules } = document.read()?;
                let key = self.key(document, metadata)?;
                self.roles.insert(key, checked(document, rules, true)?.into());
            }
            "ClusterRole" => {
                let v1::ClusterRole { aggregation_rule, mut metadata, rules } = document.read()?;
                let labels = metadata.labels.take().unwrap_or_default();
                let (_, name) = self.key(document, metadata)?;
                let selectors = aggregation_rule.map(|rule| aggregate::selectors(document, rule)).transpose()?;
                let rules = checked(document, rules, false)?;
                self.aggregated += usize::from(selectors.is_some());
                if self.aggregated > aggregate::MAX_AGGREGATED {
                    let expected = format!("expected at most {} aggregated roles", aggregate::MAX_AGGREGATED);
                    return Err(document.problem("/aggregationRule", &expected));
                }
                self.cluster_roles.insert(name, ClusterRole { labels, rules, selectors });
            }
            "RoleBinding" => {
                let v1::RoleBinding { metadata, role_ref, subjects } = document.read()?;
                let key = self.key(document, metadata)?;
                self.bindings.push(binding(document, key, role_ref, subjects)?);
            }
            _ => {
                let v1::ClusterRoleBinding { metadata, role_ref, subjects } = document.read()?;
                let key = self.key(document, metadata)?;
                self.bindings.push(binding(document, key, role_ref, subjects)?);
            }
        }
        Ok(())
    }

    /// The namespace of an object, if its kind has one, and its name, which no other object of the kind may have there.
    fn key(&mut self, document: &Document, metadata: ObjectMeta) -> Result<(Option<String>, String), Diagnostic> {
        const NAME: &str = "/metadata/name";
        let (kind, name) = (&document.kind, metadata.name.unwrap_or_default());
        expect_name(document, NAME, &name)?;
        let written = metadata.namespace.filter(|namespace| !namespace.is_empty());
        let namespace = (!kind.starts_with("Cluster")).then(|| written.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned()));
        match self.seen.entry((kind.clone(), namespace.clone(), name.clone())) {
            Entry::Vacant(free) => {
                free.insert(document.location.clone());
                Ok((namespace, name))
            }
            Entry::Occupied(first) => {
                let place = namespace.map(|namespace| format!(" in namespace {namespace:?}")).unwrap_or_default();
                let problem = format!("{kind} {name:?}{place} is defined twice, first in {}", first.get());
                Err(document.problem(NAME, &problem))
            }
        }
    }

    /// Gives every binding the rules of its role.
    fn link(mut self) -> Rbac {
        let mut rbac = Rbac { roles: self.roles.len() + self.cluster_roles.len(), ..Rbac::default() };
        self.cluster_roles.entry("cluster-admin".to_owned()).or_insert_with(cluster_admin);
        let cluster_roles = aggregate::rules(&self.cluster_roles);
        self.bindings.sort_by(|one, other| one.name.cmp(&other.name));
        for mut binding in self.bindings {
            binding.rules = match binding.role_kind {
                RoleKind::Role => self.roles.get(&(binding.namespace.clone(), binding.role.clone())).cloned(),
                RoleKind::ClusterRole => cluster_roles.get(&binding.role).cloned(),
            };
            rbac.bindings.entry(binding.namespace.clone()).or_default().push(binding);
        }
        rbac
    }
}

/// The name of a role or binding can be anything that can be one segment of a URL's path.
fn expect_name(document: &Document, at: &str, name: &str) -> Result<(), Diagnostic> {
    expect_text(document, at, name)?;
    if name == "." || name == ".." || name.contains(['/', '%']) {
        return Err(document.problem(at, &format!("expected a name without `/` and `%`, found {name:?}")));
    }
    Ok(())
}

fn expect_text(document: &Document, at: &str, text: &str) -> Result<(), Diagnostic> {
    if text.is_empty() { Err(document.problem(at, "expected a string that is not empty")) } else { Ok(()) }
}

fn expect_group(document: &Document, at: &str, found: &str, allowed: &[&str]) -> Result<(), Diagnostic> {
    if allowed.contains(&found) {
        return Ok(());
    }
    let expected: Vec<_> = allowed.iter().map(|group| format!("{group:?}")).collect();
    Err(document.problem(at, &format!("expected {}, found {found:?}", expected.join(" or "))))
}

/// The role with all permissions, with the label that the API server gives to its own roles.
fn cluster_admin() -> ClusterRole {
    let all = || vec!["*".to_owned()];
    let rule = PolicyRule { verbs: all(), api_groups: Some(all()), resources: Some(all()), ..PolicyRule::default() };
    ClusterRole {
        labels: BTreeMap::from([("kubernetes.io/bootstrapping".to_owned(), "rbac-defaults".to_owned())]),
        rules: vec![Arc::new(rule)],
        selectors: None,
    }
}

/// The rules of a role.
fn checked(
    document: &Document,
    rules: Option<Vec<PolicyRule>>,
    namespaced: bool,
) -> Result<Vec<Arc<PolicyRule>>, Diagnostic> {
    const ENTRY: &str = "expected at least one entry";
    let check = |(index, rule): (usize, PolicyRule)| {
        let is_empty = |list: &Option<Vec<String>>| list.as_ref().is_none_or(Vec::is_empty);
        let [groups, resources, names, urls] =
            [&rule.api_groups, &rule.resources, &rule.resource_names, &rule.non_resource_urls].map(is_empty);
        let (of_urls, of_objects) = (!urls, !(groups && resources && names));
        let fault = match () {
            () if rule.verbs.is_empty() => Some(("verbs", ENTRY)),
            () if of_urls && namespaced => {
                Some(("nonResourceURLs", "expected none in a Role: it is about objects in a namespace"))
            }
            () if of_urls && of_objects => {
                let expected = "expected either these or apiGroups and resources in one rule, found both";
                Some(("nonResourceURLs", expected))
            }
            () if !of_urls && groups => Some(("apiGroups", ENTRY)),
            () if !of_urls && resources => Some(("resources", ENTRY)),
            () => None,
        };
        match fault {
            Some((field, message)) => Err(document.problem(&format!("/rules/{index}/{field}"), message)),
            None => Ok(Arc::new(rule)),
        }
    };
    rules.unwrap_or_default().into_iter().enumerate().map(check).collect()
}

fn binding(
    document: &Document,
    (namespace, name): (Option<String>, String),
    RoleRef { api_group, kind, name: role }: RoleRef,
    subjects: Option<Vec<Subject>>,
) -> Result<Binding, Diagnostic> {
    expect_group(document, "/roleRef/apiGroup", &api_group, &["", GROUP])?;
    let role_kind = match kind.as_str() {
        "ClusterRole" => RoleKind::ClusterRole,
        "Role" if namespace.is_some() => RoleKind::Role,
        other => {
            let expected = if namespace.is_some() { "Role or ClusterRole" } else { "ClusterRole" };
            return Err(document.problem("/roleRef/kind", &format!("expected {expected}, found {other:?}")));
        }
    };
    expect_name(document, "/roleRef/name", &role)?;
    let subjects = subjects.unwrap_or_default().into_iter().enumerate();
    let holders = subjects.map(|(index, subject)| {
        let at = format!("/subjects/{index}");
        holder(document, &at, subject, namespace.as_deref())
    });
    let holders = holders.collect::<Result<_, _>>()?;
    Ok(Binding { namespace, name, role_kind, role, holders, rules: None })
}

/// Reads a subject; a service account without a namespace is in the binding's.
fn holder(document: &Document, at: &str, subject: Subject, of_binding: Option<&str>) -> Result<Holder, Diagnostic> {
    let Subject { api_group, kind, name, namespace } = subject;
    let group = api_group.unwrap_or_default();
    let expect_group = |allowed: &[&str]| expect_group(document, &format!("{at}/apiGroup"), &group, allowed);
    expect_text(document, &format!("{at}/name"), &name)?;
    match kind.as_str() {
        "User" => expect_group(&["", GROUP]).map(|()| Holder::User(name)),
        "Group" => expect_group(&["", GROUP]).map(|()| Holder::Group(name)),
        "ServiceAccount" => {
            expect_group(&[""])?;
            if !is_dns_subdomain(&name) {
                let problem = format!("expected a lower-case DNS subdomain, found {name:?}");
                return Err(document.problem(&format!("{at}/name"), &problem));
            }
            let written = namespace.filter(|namespace| !namespace.is_empty());
            let namespace = written.or_else(|| of_binding.map(str::to_owned)).unwrap_or_default();
            expect_text(document, &format!("{at}/namespace"), &namespace)?;
            Ok(Holder::ServiceAccount { namespace, name })
        }
        other => {
            let problem = format!("expected ServiceAccount, User or Group, found {other:?}");
            Err(document.problem(&format!("{at}/kind"), &problem))
        }
    }
}
