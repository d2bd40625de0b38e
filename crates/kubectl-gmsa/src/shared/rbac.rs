//! Roles and bindings: read from a cluster or from files, and who they let use credential specs.

use std::collections::BTreeSet;

use gmsa_cluster::{
    authorizer::rbac::Binding,
    manifests::{Document, Manifests},
};
use gmsa_core::{
    admission::Subject,
    credspec::{SpecName, is_dns_subdomain},
    diagnostic::Diagnostics,
};

use super::{
    Outcome,
    connection::Cluster,
    output::{print, table::table},
};

pub fn spec_name(text: &str) -> Result<SpecName, String> {
    SpecName::parse(text).ok_or_else(|| "expected a lower-case DNS name".to_owned())
}

pub fn service_account(text: &str) -> Result<Subject, String> {
    let (namespace, name) = text.split_once(':').ok_or("expected NAMESPACE:NAME")?;
    if namespace.contains('.') || !is_dns_subdomain(namespace) {
        return Err(format!("{namespace:?} is not the name of a namespace"));
    }
    if !is_dns_subdomain(name) {
        return Err(format!("{name:?} is not the name of a service account"));
    }
    Ok(Subject { namespace: namespace.into(), service_account: name.into() })
}

/// A binding and its role, for people.
pub fn by(binding: &Binding) -> String {
    let kind = if binding.namespace.is_some() { "RoleBinding" } else { "ClusterRoleBinding" };
    format!("{kind} {} of {} {}", binding.name, binding.role_kind.as_str(), binding.role)
}

/// Prints a table of grants below what could not be read, or `none` where there is no grant.
pub fn print_grants<const COLUMNS: usize>(
    problems: &Diagnostics,
    head: [&str; COLUMNS],
    rows: &BTreeSet<[String; COLUMNS]>,
    none: &str,
) -> anyhow::Result<Outcome> {
    let mut text: String =
        problems.as_slice().iter().map(|problem| format!("{}: {problem}\n", problem.rule.id)).collect();
    text += &if rows.is_empty() { format!("{none}\n") } else { table(head, rows) };
    print(text)?;
    Ok(if problems.is_empty() { Outcome::Clean } else { Outcome::Incomplete })
}

const API_VERSION: &str = "rbac.authorization.k8s.io/v1";

/// The kinds that RBAC is made of.
const KINDS: [(&str, &str); 4] = [
    ("ClusterRole", "clusterroles"),
    ("Role", "roles"),
    ("ClusterRoleBinding", "clusterrolebindings"),
    ("RoleBinding", "rolebindings"),
];

/// Reads all roles and bindings of a cluster, in pages.
pub async fn roles_and_bindings(cluster: &Cluster) -> anyhow::Result<Manifests> {
    let mut found = Manifests::default();
    for (kind, resources) in KINDS {
        let items = cluster.list(&format!("/apis/{API_VERSION}/{resources}")).await?.into_iter();
        found.documents.extend(items.map(|item| Document::of_api(resources, API_VERSION, kind, item)));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_accounts_are_typed_with_their_namespace() {
        let parsed = service_account("shop:web.v1").unwrap();
        assert_eq!(parsed, Subject { namespace: "shop".into(), service_account: "web.v1".into() });
        for (text, error) in [
            ("web", "expected NAMESPACE:NAME"),
            ("a.b:web", "\"a.b\" is not the name of a namespace"),
            ("shop:", "\"\" is not the name of a service account"),
            ("shop:a/b", "\"a/b\" is not the name of a service account"),
        ] {
            assert_eq!(service_account(text).unwrap_err(), error);
        }
    }
}
