//! The roles and bindings of a cluster.

use futures::future::join_all;
use gmsa_cluster::manifests::{Document, Manifests};
use serde_json::Value;

use super::World;
use crate::shared::unread::Read;

const API_VERSION: &str = "rbac.authorization.k8s.io/v1";

/// The kinds of RBAC objects.
const KINDS: [(&str, &str); 4] = [
    ("ClusterRole", "clusterroles"),
    ("Role", "roles"),
    ("ClusterRoleBinding", "clusterrolebindings"),
    ("RoleBinding", "rolebindings"),
];

impl World {
    /// Reads all roles and bindings.
    pub async fn roles_and_bindings(&self) -> Read<Manifests> {
        let reading =
            KINDS.map(|(_, resources)| async move { self.list(&format!("/apis/{API_VERSION}/{resources}")).await });
        let mut found = Manifests::default();
        for ((kind, resources), items) in KINDS.into_iter().zip(join_all(reading).await) {
            let document = |item: &Value| Document::of_api(resources, API_VERSION, kind, item);
            found.documents.extend(items?.iter().map(document));
        }
        Ok(found)
    }
}
