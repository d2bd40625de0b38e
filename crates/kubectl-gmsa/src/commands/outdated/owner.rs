//! What controls a pod, and whether it does.
//!
//! Invariant: no `ownerReferences` are believed. A user who may create pods may write them, and the names in them: a name is checked
//! before it becomes part of a URL, and an owner counts only where it exists with the same `uid`, selects the pod, and uses GMSA itself.

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference};
use kube::{
    api::ObjectMeta,
    core::{Selector, SelectorExt as _},
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::shared::{connection::Cluster, pods::ClusterPod};
use gmsa_core::{
    admission::pod::Pod,
    credspec::{is_dns_label, is_dns_subdomain},
};

/// The annotation of a pod template, and so of its pods, by which `kubectl rollout restart` makes a new revision.
pub(super) const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

/// What controls pods: a workload, or nothing but the pod itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Workload {
    pub namespace: String,
    pub kind: String,
    pub name: String,
    /// The plural name of the resource in `apps/v1`; `None` where a restart is not possible.
    pub resource: Option<&'static str>,
    /// Whether it replaces a pod only when somebody deletes it.
    pub on_delete: bool,
}

/// The owner of a pod.
pub(super) struct Owner {
    pub workload: Workload,
    /// Whether the pod is of a template from before the last restart, so that it is being replaced.
    pub is_restarted: bool,
}

/// Why the owner that a pod names cannot be taken for its owner.
pub(super) struct NotOwned {
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
struct Controller {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: ControllerSpec,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ControllerSpec {
    selector: Option<LabelSelector>,
    #[serde(default)]
    template: Template,
    #[serde(default)]
    update_strategy: Value,
}

#[derive(Clone, Default, Deserialize)]
struct Template {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Value,
}

/// Finds owners, and reads each once.
pub(super) struct Owners<'c> {
    cluster: &'c Cluster,
    /// By path: `None` where there is none, or why it could not be read.
    read: HashMap<String, Result<Option<Controller>, String>>,
}

impl<'c> Owners<'c> {
    pub(super) fn new(cluster: &'c Cluster) -> Self {
        Self { cluster, read: HashMap::new() }
    }

    /// The owner of a pod: the Deployment rather than its `ReplicaSet`.
    ///
    /// # Errors
    /// Where the owner that the pod names is not its owner, or cannot be read.
    pub(super) async fn of(&mut self, pod: &ClusterPod) -> Result<Owner, NotOwned> {
        let (namespace, name) = pod.place();
        let (kind, of_itself) = ("Pod".to_owned(), |kind: String, name: &str, resource| Workload {
            namespace: namespace.to_owned(),
            kind,
            name: name.to_owned(),
            resource,
            on_delete: false,
        });
        let Some(owner) = controller(&pod.object.metadata) else {
            return Ok(Owner { workload: of_itself(kind, name, None), is_restarted: false });
        };
        let Some(resource) = resource(owner) else {
            return Ok(Owner { workload: of_itself(owner.kind.clone(), &owner.name, None), is_restarted: false });
        };
        let mut found = self.verified(namespace, owner, resource, pod).await?;
        let (mut owner, mut resource) = (owner.clone(), resource);
        if resource == REPLICA_SETS
            && let Some(parent) = controller(&found.metadata).cloned()
        {
            let Some(of_parent) = self::resource(&parent) else {
                return Ok(Owner { workload: of_itself(parent.kind, &parent.name, None), is_restarted: false });
            };
            found = self.verified(namespace, &parent, of_parent, pod).await?;
            (owner, resource) = (parent, of_parent);
        }
        let restartable = (resource != REPLICA_SETS).then_some(resource);
        let mut workload = of_itself(owner.kind, &owner.name, restartable);
        workload.on_delete = found.spec.update_strategy.get("type").is_some_and(|strategy| strategy == "OnDelete");
        let is_restarted = restarted_at(&found.spec.template.metadata) != restarted_at(&pod.object.metadata);
        Ok(Owner { workload, is_restarted })
    }

    async fn verified(
        &mut self,
        namespace: &str,
        owner: &OwnerReference,
        resource: &str,
        pod: &ClusterPod,
    ) -> Result<Controller, NotOwned> {
        let OwnerReference { kind, name, uid, .. } = owner;
        if !is_dns_label(namespace) || !is_dns_subdomain(name) {
            return Err(format!("names as its owner a {kind} with an invalid name").into());
        }
        let path = format!("/apis/apps/v1/namespaces/{namespace}/{resource}/{name}");
        if !self.read.contains_key(&path) {
            let found = self.cluster.find(&path).await.map_err(|error| format!("{error:#}"));
            self.read.insert(path.clone(), found);
        }
        let found = match self.read.get(&path) {
            Some(Ok(Some(found))) => found,
            Some(Err(error)) => {
                return Err(NotOwned {
                    why: format!("names {kind} {name} as its owner, which cannot be read: {error}"),
                    fix: Some(format!("run this as a user who may get {resource} in {namespace}")),
                });
            }
            Some(Ok(None)) | None => {
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
        if !found.spec.uses_gmsa() {
            return Err(format!("names {kind} {name} as its owner, whose pod template does not use GMSA").into());
        }
        Ok(found.clone())
    }
}

const REPLICA_SETS: &str = "replicasets";

impl ControllerSpec {
    fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let selector = self.selector.clone().and_then(|selector| Selector::try_from(selector).ok());
        // An empty selector, which `apps/v1` does not allow, selects everything.
        selector.is_some_and(|selector| !selector.selects_all() && selector.matches(labels))
    }

    fn uses_gmsa(&self) -> bool {
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

fn restarted_at(metadata: &ObjectMeta) -> Option<&str> {
    metadata.annotations.as_ref()?.get(RESTARTED_AT).map(String::as_str)
}
