//! Objects that several commands read: the pods about GMSA, of which a large cluster has few, service accounts, namespaces, runtime classes,
//! roles and bindings.

use std::{collections::BTreeSet, rc::Rc};

use futures::future::join_all;
use gmsa_cluster::manifests::{Document, Manifests};
use gmsa_core::{admission::pod::Pod, credspec::is_dns_subdomain};
use k8s_openapi::{
    api::core::v1::{self, Namespace},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{LIST, World};
use crate::shared::{
    kinds::{Kind, controller_of},
    unread::Read,
};

/// The path of the pods of a namespace, or of all.
pub fn pods_of(namespace: Option<&str>) -> String {
    namespace.map_or_else(|| "/api/v1/pods".to_owned(), |namespace| format!("/api/v1/namespaces/{namespace}/pods"))
}

/// An object of any kind, with its metadata only.
#[derive(Deserialize)]
pub struct Owned {
    pub metadata: ObjectMeta,
}

const API_VERSION: &str = "rbac.authorization.k8s.io/v1";

/// The kinds of RBAC objects.
const KINDS: [(&str, &str); 4] = [
    ("ClusterRole", "clusterroles"),
    ("Role", "roles"),
    ("ClusterRoleBinding", "clusterrolebindings"),
    ("RoleBinding", "rolebindings"),
];

/// Whether an object may be kept, its uid, and its controller's.
pub(super) type Link = (bool, String, Option<String>);

impl World {
    /// The pods of a namespace. Of all namespaces only those about GMSA: they name it, cannot be parsed, or are
    /// of workloads about GMSA, whose pods from before a rollout may not name it.
    pub async fn pods(&self, namespace: Option<&str>) -> Read<Rc<Vec<Box<RawValue>>>> {
        let path = pods_of(namespace);
        if namespace.is_some() {
            return self.items(&path).await;
        }
        self.once(LIST, &path, async |live| {
            let page = async |mut page: Vec<Box<RawValue>>| {
                let makers = self.makers().await;
                page.retain(|pod| names_gmsa(pod) || is_made_by(&makers, pod));
                page
            };
            live.list(&path, page).await
        })
        .await
    }

    /// Whether a service account is missing; among manifests only if they hold others of its namespace. Every namespace has `default`.
    pub async fn is_account_missing(&self, namespace: &str, name: &str) -> Read<bool> {
        if name == "default" || !is_dns_subdomain(namespace) || !is_dns_subdomain(name) {
            return Ok(false);
        }
        let list = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        match self.find::<Value>(&format!("{list}/{name}")).await {
            Err(_) if !self.has_cluster() => self.list::<Value>(&list).await.map(|_| true),
            found => Ok(found?.is_none()),
        }
    }

    /// A namespace; `None` if it does not exist, or cannot by its name.
    pub async fn namespace(&self, name: &str) -> Read<Option<Namespace>> {
        if is_dns_subdomain(name) { self.find(&format!("/api/v1/namespaces/{name}")).await } else { Ok(None) }
    }

    /// The runtime class of this name: `None` without a valid name, and `Some(None)` if it is missing.
    pub async fn runtime_class(&self, name: Option<&str>) -> Read<Option<Option<Value>>> {
        let Some(name) = name.filter(|name| is_dns_subdomain(name)) else { return Ok(None) };
        self.find(&format!("/apis/node.k8s.io/v1/runtimeclasses/{name}")).await.map(Some)
    }

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

    /// The uids of the workloads about GMSA, and of those above and below them.
    async fn makers(&self) -> BTreeSet<String> {
        let lists = Kind::ALL.map(|kind| kind.collection(None));
        let lists = join_all(lists.iter().map(|path| self.items(path))).await;
        let link = |object: &RawValue| {
            let Owned { metadata } = serde_json::from_str(object.get()).ok()?;
            let owner = controller_of(&metadata).map(|owner| owner.uid.clone());
            Some((names_gmsa(object), metadata.uid.unwrap_or_default(), owner))
        };
        related(
            &lists.iter().flatten().flat_map(|list| list.iter()).filter_map(|object| link(object)).collect::<Vec<_>>(),
        )
    }
}

/// The uids of objects that are kept with their controllers and dependents: pods from before a rollout may not name GMSA.
pub(super) fn related(links: &[Link]) -> BTreeSet<String> {
    let listed: BTreeSet<&str> = links.iter().map(|(_, uid, _)| uid.as_str()).collect();
    let mut related: BTreeSet<&str> = BTreeSet::new();
    loop {
        let known = related.len();
        for (is_taken, uid, owner) in links {
            let owner = owner.as_deref().filter(|owner| listed.contains(owner));
            let uids = [Some(uid.as_str()).filter(|uid| !uid.is_empty()), owner];
            if *is_taken || uids.iter().flatten().any(|uid| related.contains(uid)) {
                related.extend(uids.iter().flatten());
            }
        }
        if related.len() == known {
            return related.into_iter().map(str::to_owned).collect();
        }
    }
}

fn names_gmsa(object: &RawValue) -> bool {
    object.get().as_bytes().windows(4).any(|word| word.eq_ignore_ascii_case(b"gmsa"))
}

/// Whether one of these workloads controls the pod, or the pod cannot be parsed.
fn is_made_by(makers: &BTreeSet<String>, pod: &RawValue) -> bool {
    match serde_json::from_str::<v1::Pod>(pod.get()) {
        Ok(object) if Pod::from_json(pod.get()).is_ok() => {
            controller_of(&object.metadata).is_some_and(|owner| makers.contains(&owner.uid))
        }
        _ => true,
    }
}
