//! What a pod refers to beside credential specs: its service account and its runtime class, in the manifests or in the cluster.
//!
//! Invariants: what cannot be read, or is unknown from files, is not reported.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;

use crate::shared::connection::Cluster;
use gmsa_cluster::manifests::Document;
use gmsa_core::{credspec::is_dns_subdomain, diagnostic::Severity};

/// Where service accounts and runtime classes are looked up.
pub(super) enum Surroundings {
    Files(FileObjects),
    /// In the cluster; each object is read once.
    Cluster(Arc<Cluster>, HashMap<String, Option<Value>>),
}

#[derive(Default)]
pub(super) struct FileObjects {
    /// The service accounts of each namespace.
    accounts: HashMap<String, Vec<String>>,
    /// The handlers of runtime classes.
    handlers: HashMap<String, String>,
}

impl Surroundings {
    /// From manifests; objects without a namespace are in `namespace`.
    pub(super) fn of_files(documents: &[Document], namespace: &str) -> Self {
        let mut files = FileObjects::default();
        for document in documents {
            let text = |pointer: &str| document.value.pointer(pointer).and_then(Value::as_str);
            let Some(name) = text("/metadata/name") else { continue };
            match (document.group(), document.kind.as_str()) {
                ("", "ServiceAccount") => {
                    let namespace = text("/metadata/namespace").unwrap_or(namespace);
                    files.accounts.entry(namespace.to_owned()).or_default().push(name.to_owned());
                }
                ("node.k8s.io", "RuntimeClass") => {
                    files.handlers.insert(name.to_owned(), text("/handler").unwrap_or("").to_owned());
                }
                _ => {}
            }
        }
        Self::Files(files)
    }

    pub(super) fn of_cluster(cluster: Arc<Cluster>) -> Self {
        Self::Cluster(cluster, HashMap::new())
    }

    /// Where a service account is missing, and how severe that is; `None` where it exists, or nothing says otherwise. Every
    /// namespace gets `default` by itself.
    pub(super) async fn lacks_service_account(
        &mut self,
        namespace: &str,
        name: &str,
    ) -> Option<(&'static str, Severity)> {
        if name == "default" || !is_dns_subdomain(namespace) || !is_dns_subdomain(name) {
            return None;
        }
        match self {
            // Only where the manifests hold others of its namespace; even then another file may create it.
            Self::Files(files) => {
                let known = files.accounts.get(namespace)?;
                (!known.iter().any(|known| known == name)).then_some(("among the manifests", Severity::Warning))
            }
            Self::Cluster(cluster, known) => {
                let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}");
                find(cluster, known, path).await?.is_none().then_some(("in the cluster", Severity::Error))
            }
        }
    }

    /// The handler of a runtime class, where it is known.
    pub(super) async fn handler(&mut self, class: &str) -> Option<String> {
        match self {
            Self::Files(files) => files.handlers.get(class).cloned(),
            Self::Cluster(cluster, known) if is_dns_subdomain(class) => {
                let found = find(cluster, known, format!("/apis/node.k8s.io/v1/runtimeclasses/{class}")).await??;
                found.get("handler").and_then(Value::as_str).map(str::to_owned)
            }
            Self::Cluster(..) => None,
        }
    }
}

/// The object of a path; `None` where it could not be read.
async fn find(cluster: &Cluster, known: &mut HashMap<String, Option<Value>>, path: String) -> Option<Option<Value>> {
    if let Some(found) = known.get(&path) {
        return Some(found.clone());
    }
    let found = cluster.find(&path).await.ok()?;
    known.insert(path, found.clone());
    Some(found)
}
