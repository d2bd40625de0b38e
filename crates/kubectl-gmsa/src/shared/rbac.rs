//! Roles and bindings, as a cluster has them.

use gmsa_cluster::manifests::{Document, Manifests};

use super::connection::Cluster;

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
