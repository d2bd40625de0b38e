//! The pods of all namespaces about GMSA, of which a large cluster has few: each page of the list is dropped but for them.

use std::{collections::BTreeSet, rc::Rc};

use futures::future::join_all;
use gmsa_core::admission::pod::Pod;
use k8s_openapi::{api::core::v1, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use serde::Deserialize;
use serde_json::value::RawValue;

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

    /// The uids of the workloads about GMSA, and of those above and below them.
    async fn makers(&self) -> BTreeSet<String> {
        let unscoped = Self { declared: None, ..self.clone() };
        let lists = Kind::ALL.map(|kind| kind.collection(None));
        let lists = join_all(lists.iter().map(|path| unscoped.items(path))).await;
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
