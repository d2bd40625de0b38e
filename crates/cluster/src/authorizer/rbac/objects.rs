//! Roles and bindings from manifests, with the checks of the API server.
//!
//! Invariants: an object that could not exist in a cluster is an error and grants nothing. That includes unknown
//! fields, because a mistyped `resourceNames` would open every credential spec.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Binding, Holder, PolicyRule, Rbac, RoleKind,
    aggregate::{self, ClusterRole},
};
use crate::manifests::{Document, Field};
use gmsa_core::{
    credspec::is_dns_subdomain,
    diagnostic::{Diagnostic, Location},
};

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
    roles: BTreeMap<(String, String), Vec<Arc<PolicyRule>>>,
    cluster_roles: BTreeMap<String, ClusterRole>,
    aggregated: usize,
    bindings: Vec<Binding>,
}

impl RbacObjects {
    fn add(&mut self, document: &Document) -> Result<(), Diagnostic> {
        let value = document.value();
        let root = Field::root(document, &value);
        let namespaced = match document.kind.as_str() {
            "Role" | "RoleBinding" => true,
            "ClusterRole" | "ClusterRoleBinding" => false,
            _ => return Ok(()),
        };
        if document.api_version != API_VERSION {
            return Err(root.get("apiVersion").problem(&format!("expected {API_VERSION}")));
        }
        let metadata = root.get("metadata");
        let name = object_name(&metadata.get("name"))?;
        let namespace = match metadata.get("namespace").text()? {
            _ if !namespaced => None,
            "" => Some(DEFAULT_NAMESPACE.to_owned()),
            given => Some(given.to_owned()),
        };
        self.expect_new(document, namespace.as_deref(), &metadata.get("name"), &name)?;
        match (document.kind.as_str(), namespace) {
            ("Role", Some(namespace)) => {
                root.expect_only(&["apiVersion", "kind", "metadata", "rules"])?;
                self.roles.insert((namespace, name), rules(&root.get("rules"), true)?);
            }
            ("ClusterRole", _) => {
                let role = cluster_role(&root)?;
                self.aggregated += usize::from(role.selectors.is_some());
                if self.aggregated > aggregate::MAX_AGGREGATED {
                    let expected = format!("expected at most {} aggregated roles", aggregate::MAX_AGGREGATED);
                    return Err(root.get("aggregationRule").problem(&expected));
                }
                self.cluster_roles.insert(name, role);
            }
            (_, namespace) => self.bindings.push(binding(&root, namespace, name)?),
        }
        Ok(())
    }

    fn expect_new(
        &mut self,
        document: &Document,
        namespace: Option<&str>,
        field: &Field<'_>,
        name: &str,
    ) -> Result<(), Diagnostic> {
        let key = (document.kind.clone(), namespace.map(str::to_owned), name.to_owned());
        if let Some(first) = self.seen.get(&key) {
            let place = namespace.map(|namespace| format!(" in namespace {namespace:?}")).unwrap_or_default();
            let kind = &document.kind;
            return Err(field.problem(&format!("{kind} {name:?}{place} is defined twice, first in {first}")));
        }
        self.seen.insert(key, document.location.clone());
        Ok(())
    }

    /// Gives every binding the rules of its role.
    fn link(mut self) -> Rbac {
        let written = self.roles.len() + self.cluster_roles.len();
        self.cluster_roles.entry("cluster-admin".to_owned()).or_insert_with(cluster_admin);
        let cluster_roles = aggregate::rules(&self.cluster_roles);
        let roles: BTreeMap<_, _> =
            self.roles.into_iter().map(|(key, rules)| (key, Arc::<[Arc<PolicyRule>]>::from(rules))).collect();
        let mut rbac = Rbac { roles: written, ..Rbac::default() };
        for mut binding in self.bindings {
            binding.rules = match (&binding.namespace, binding.role_kind) {
                (Some(namespace), RoleKind::Role) => roles.get(&(namespace.clone(), binding.role.clone())).cloned(),
                _ => cluster_roles.get(&binding.role).cloned(),
            };
            match binding.namespace.clone() {
                Some(namespace) => rbac.bindings.entry(namespace).or_default().push(binding),
                None => rbac.cluster_bindings.push(binding),
            }
        }
        rbac.cluster_bindings.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        rbac.bindings.values_mut().for_each(|bindings| bindings.sort_unstable_by(|a, b| a.name.cmp(&b.name)));
        rbac
    }
}

/// The name of a role or binding: anything that can be one segment of a URL's path.
fn object_name(field: &Field<'_>) -> Result<String, Diagnostic> {
    let name = field.required_text()?;
    if name == "." || name == ".." || name.contains(['/', '%']) {
        return Err(field.problem(&format!("expected a name without `/` and `%`, found {name:?}")));
    }
    Ok(name.to_owned())
}

/// The role with all permissions, with the label that the API server gives to its own roles.
fn cluster_admin() -> ClusterRole {
    let all = || vec!["*".to_owned()];
    ClusterRole {
        labels: BTreeMap::from([("kubernetes.io/bootstrapping".to_owned(), "rbac-defaults".to_owned())]),
        rules: vec![Arc::new(PolicyRule { verbs: all(), groups: all(), resources: all(), names: Vec::new() })],
        selectors: None,
    }
}

fn cluster_role(root: &Field<'_>) -> Result<ClusterRole, Diagnostic> {
    root.expect_only(&["aggregationRule", "apiVersion", "kind", "metadata", "rules"])?;
    let label = |(key, value): (&str, Field<'_>)| Ok((key.to_owned(), value.text()?.to_owned()));
    let labels = root.get("metadata").get("labels").entries()?.into_iter().map(label).collect::<Result<_, _>>()?;
    let aggregation = root.get("aggregationRule");
    let selectors = if aggregation.value().is_null() {
        None
    } else {
        aggregation.expect_only(&["clusterRoleSelectors"])?;
        let field = aggregation.get("clusterRoleSelectors");
        let selectors = field.items()?.iter().map(aggregate::read_selector).collect::<Result<Vec<_>, _>>()?;
        if selectors.is_empty() {
            return Err(field.problem("expected at least one selector"));
        }
        Some(selectors)
    };
    Ok(ClusterRole { labels, rules: rules(&root.get("rules"), false)?, selectors })
}

fn rules(field: &Field<'_>, namespaced: bool) -> Result<Vec<Arc<PolicyRule>>, Diagnostic> {
    let mut rules = Vec::new();
    for item in field.items()? {
        item.expect_only(&["apiGroups", "nonResourceURLs", "resourceNames", "resources", "verbs"])?;
        let texts = |name| item.get(name).texts();
        let rule = PolicyRule {
            verbs: texts("verbs")?,
            groups: texts("apiGroups")?,
            resources: texts("resources")?,
            names: texts("resourceNames")?,
        };
        let at_least_one = |name: &str| item.get(name).problem("expected at least one entry");
        if rule.verbs.is_empty() {
            return Err(at_least_one("verbs"));
        }
        if !texts("nonResourceURLs")?.is_empty() {
            let urls = item.get("nonResourceURLs");
            if namespaced {
                return Err(urls.problem("expected none in a Role: it is about objects in a namespace"));
            }
            if !(rule.groups.is_empty() && rule.resources.is_empty() && rule.names.is_empty()) {
                return Err(urls.problem("expected either these or apiGroups and resources in one rule, found both"));
            }
        } else if rule.groups.is_empty() {
            return Err(at_least_one("apiGroups"));
        } else if rule.resources.is_empty() {
            return Err(at_least_one("resources"));
        }
        rules.push(Arc::new(rule));
    }
    Ok(rules)
}

fn binding(root: &Field<'_>, namespace: Option<String>, name: String) -> Result<Binding, Diagnostic> {
    root.expect_only(&["apiVersion", "kind", "metadata", "roleRef", "subjects"])?;
    let reference = root.get("roleRef");
    reference.expect_only(&["apiGroup", "kind", "name"])?;
    expect_group(&reference.get("apiGroup"), &["", GROUP])?;
    let kind = reference.get("kind");
    let role_kind = match (kind.required_text()?, &namespace) {
        ("ClusterRole", _) => RoleKind::ClusterRole,
        ("Role", Some(_)) => RoleKind::Role,
        (other, Some(_)) => return Err(kind.problem(&format!("expected Role or ClusterRole, found {other:?}"))),
        (other, None) => return Err(kind.problem(&format!("expected ClusterRole, found {other:?}"))),
    };
    let role = object_name(&reference.get("name"))?;
    let holder = |subject: &Field<'_>| holder(subject, namespace.as_deref());
    let holders = root.get("subjects").items()?.iter().map(holder).collect::<Result<_, _>>()?;
    Ok(Binding { namespace, name, role_kind, role, holders, rules: None })
}

/// Reads a subject; a service account without a namespace is in the binding's.
fn holder(subject: &Field<'_>, namespace: Option<&str>) -> Result<Holder, Diagnostic> {
    subject.expect_only(&["apiGroup", "kind", "name", "namespace"])?;
    let (kind, group, name) = (subject.get("kind"), subject.get("apiGroup"), subject.get("name"));
    let text = name.required_text()?.to_owned();
    match kind.required_text()? {
        "User" => expect_group(&group, &["", GROUP]).map(|()| Holder::User(text)),
        "Group" => expect_group(&group, &["", GROUP]).map(|()| Holder::Group(text)),
        "ServiceAccount" => {
            expect_group(&group, &[""])?;
            if !is_dns_subdomain(&text) {
                return Err(name.problem(&format!("expected a lower-case DNS subdomain, found {text:?}")));
            }
            let given = subject.get("namespace");
            let namespace = match (given.text()?, namespace) {
                ("", Some(namespace)) => namespace,
                _ => given.required_text()?,
            };
            Ok(Holder::ServiceAccount { namespace: namespace.to_owned(), name: text })
        }
        other => Err(kind.problem(&format!("expected ServiceAccount, User or Group, found {other:?}"))),
    }
}

fn expect_group(field: &Field<'_>, allowed: &[&str]) -> Result<(), Diagnostic> {
    let found = field.text()?;
    if allowed.contains(&found) {
        return Ok(());
    }
    let expected: Vec<_> = allowed.iter().map(|group| format!("{group:?}")).collect();
    Err(field.problem(&format!("expected {}, found {found:?}", expected.join(" or "))))
}
