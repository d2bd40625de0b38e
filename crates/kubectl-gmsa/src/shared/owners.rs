//! What controls a pod, and whether it does.
//!
//! Invariant: no `ownerReferences` are believed. A user who may create pods may write them, and the names in them: a name is checked
//! before it becomes part of a URL, and an owner of a kind that is read counts only where it exists with the same `uid` and selects the pod.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference};
use kube::{
    api::ObjectMeta,
    core::{Selector, SelectorExt as _},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{pods::ClusterPod, snapshot::Snapshot};
use gmsa_core::{
    admission::pod::Pod,
    credspec::{is_dns_label, is_dns_subdomain},
};

/// An owner of a pod, as the pod or its `ReplicaSet` names it.
pub struct Owner {
    pub reference: OwnerReference,
    /// What it is, where its kind is read.
    pub read: Option<Controller>,
}

/// Why the owner that a pod names cannot be taken for its owner.
pub struct NotOwned {
    pub why: String,
    /// What to do where it is not known whether the owner is one.
    pub fix: Option<String>,
}

impl From<String> for NotOwned {
    fn from(why: String) -> Self {
        Self { why, fix: None }
    }
}

/// A workload as the API server describes it.
#[derive(Clone, Deserialize)]
pub struct Controller {
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: ControllerSpec,
    /// The plural name of the resource in `apps/v1`.
    #[serde(skip)]
    pub resource: &'static str,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerSpec {
    selector: Option<LabelSelector>,
    #[serde(default)]
    pub template: Template,
    #[serde(default)]
    pub update_strategy: Value,
}

#[derive(Clone, Default, Deserialize)]
pub struct Template {
    #[serde(default)]
    pub metadata: ObjectMeta,
    #[serde(default)]
    spec: Value,
}

impl Owner {
    /// The owners of a pod, from the nearest one on: a `ReplicaSet`, then its Deployment.
    ///
    /// # Errors
    /// Where an owner that is named is not its owner, or cannot be read.
    pub async fn all_of(snapshot: &Snapshot, pod: &ClusterPod) -> Result<Vec<Self>, NotOwned> {
        let mut owners = Vec::new();
        let mut next = controller(&pod.object.metadata).cloned();
        while let Some(reference) = next.take() {
            let read = match resource(&reference) {
                Some(resource) => Some(verified(snapshot, &reference, resource, pod).await?),
                None => None,
            };
            if let Some(replica_set) = read.as_ref().filter(|read| read.resource == REPLICA_SETS && owners.is_empty()) {
                next = controller(&replica_set.metadata).cloned();
            }
            owners.push(Self { reference, read });
        }
        Ok(owners)
    }
}

async fn verified(
    snapshot: &Snapshot,
    owner: &OwnerReference,
    resource: &'static str,
    pod: &ClusterPod,
) -> Result<Controller, NotOwned> {
    let (OwnerReference { kind, name, uid, .. }, (namespace, _)) = (owner, pod.place());
    if !is_dns_label(namespace) || !is_dns_subdomain(name) {
        return Err(format!("names as its owner a {kind} with an invalid name").into());
    }
    let path = format!("/apis/apps/v1/namespaces/{namespace}/{resource}/{name}");
    let found: Controller = match snapshot.find(&path).await {
        Ok(Some(found)) => found,
        Err(error) => {
            return Err(NotOwned {
                why: format!("names {kind} {name} as its owner, which cannot be read: {error}"),
                fix: Some(format!("run this as a user who may get {resource} in {namespace}")),
            });
        }
        Ok(None) => {
            return Err(format!("names {kind} {name} as its owner, which does not exist").into());
        }
    };
    let labels: BTreeMap<_, _> = pod.object.metadata.labels.clone().unwrap_or_default();
    if found.metadata.uid.as_ref() != Some(uid) {
        return Err(format!("names as its owner a {kind} {name} with another uid than the one that exists").into());
    }
    if !found.spec.selects(&labels) {
        return Err(format!("names {kind} {name} as its owner, which does not select it").into());
    }
    Ok(Controller { resource, ..found })
}

pub const REPLICA_SETS: &str = "replicasets";

impl ControllerSpec {
    fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let selector = self.selector.clone().and_then(|selector| Selector::try_from(selector).ok());
        // An empty selector, which `apps/v1` does not allow, selects everything.
        selector.is_some_and(|selector| !selector.selects_all() && selector.matches(labels))
    }

    pub fn uses_gmsa(&self) -> bool {
        let pod = json!({"metadata": {}, "spec": self.template.spec});
        Pod::from_json(&pod.to_string()).is_ok_and(|pod| pod.uses_gmsa())
    }
}

fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// The plural name of a kind whose objects are read.
fn resource(owner: &OwnerReference) -> Option<&'static str> {
    match (owner.api_version.as_str(), owner.kind.as_str()) {
        ("apps/v1", "ReplicaSet") => Some(REPLICA_SETS),
        ("apps/v1", "Deployment") => Some("deployments"),
        ("apps/v1", "StatefulSet") => Some("statefulsets"),
        ("apps/v1", "DaemonSet") => Some("daemonsets"),
        _ => None,
    }
}
