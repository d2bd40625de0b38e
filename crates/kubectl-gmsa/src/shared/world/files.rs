//! The objects of manifests that pods refer to: service accounts, runtime classes, namespaces and credential specs.
//!
//! Invariant: files hold a part of what is applied, so an object that is not in them may exist.

use std::collections::{BTreeMap, HashMap};

use gmsa_cluster::manifests::Document;
use gmsa_core::credspec::{GROUP, KIND, is_dns_subdomain, services};
use serde_json::Value;

use crate::shared::admission::Labels;

/// The kinds, each with its group.
const KINDS: [(&str, &str); 4] =
    [("", "ServiceAccount"), ("", "Namespace"), ("node.k8s.io", "RuntimeClass"), (GROUP, KIND)];

#[derive(Default)]
pub struct ManifestObjects {
    /// The names of service accounts, by namespace.
    pub service_accounts: HashMap<String, Vec<String>>,
    pub runtime_classes: HashMap<String, Value>,
    /// Each with its annotation for tickets.
    pub credential_specs: BTreeMap<String, Option<String>>,
    /// The labels of the namespaces.
    pub namespaces: HashMap<String, Labels>,
    /// The first file that could not be read, which may hold more.
    pub unread_file: Option<String>,
}

impl ManifestObjects {
    /// Collects them; objects without a namespace are in `namespace`.
    pub fn of(documents: &[Document], namespace: &str, unread_file: Option<String>) -> Self {
        let mut found = Self { unread_file, ..Self::default() };
        for document in documents.iter().filter(|document| KINDS.contains(&(document.group(), &*document.kind))) {
            found.add(document, namespace);
        }
        found
    }

    fn add(&mut self, document: &Document, namespace: &str) {
        let value = document.value();
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
        let Some(name) = text("/metadata/name").map(str::to_owned) else { return };
        match document.kind.as_str() {
            "ServiceAccount" => {
                let namespace = text("/metadata/namespace").unwrap_or(namespace).to_owned();
                self.service_accounts.entry(namespace).or_default().push(name);
            }
            "Namespace" => drop(self.namespaces.insert(name, labels(&value))),
            "RuntimeClass" => drop(self.runtime_classes.insert(name, value)),
            _ if is_dns_subdomain(&name) => {
                drop(self.credential_specs.insert(name, services::listed(&value).map(str::to_owned)));
            }
            _ => {}
        }
    }
}

/// The labels of an object.
pub fn labels(object: &Value) -> Labels {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    labels.into_iter().flatten().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
