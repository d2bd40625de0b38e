//! The workload that is restarted to replace a pod.
//!
//! Invariant: it owns the pod by the rules of [`owners`](crate::shared::owners), and its own template uses GMSA.

use kube::api::ObjectMeta;

use crate::shared::{
    owners::{self, NotOwned, REPLICA_SETS},
    pods::ClusterPod,
    snapshot::Snapshot,
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

impl Owner {
    /// That of a pod: the Deployment rather than its `ReplicaSet`.
    ///
    /// # Errors
    /// Where the owner that the pod names is not its owner, or cannot be read.
    pub async fn of(snapshot: &Snapshot, pod: &ClusterPod) -> Result<Self, NotOwned> {
        let owners = owners::Owner::all_of(snapshot, pod).await?;
        let other = owners.iter().find(|owner| owner.read.as_ref().is_some_and(|read| !read.spec.uses_gmsa()));
        if let Some(owner) = other {
            let (kind, name) = (&owner.reference.kind, &owner.reference.name);
            return Err(format!("names {kind} {name} as its owner, whose pod template does not use GMSA").into());
        }
        let (namespace, name) = pod.place();
        let last = owners.into_iter().next_back();
        let (kind, name, read) = match last {
            Some(owner) => (owner.reference.kind, owner.reference.name, owner.read),
            None => ("Pod".to_owned(), name.to_owned(), None),
        };
        let mut workload = Workload { namespace: namespace.to_owned(), kind, name, resource: None, on_delete: false };
        let Some(read) = read else { return Ok(Self { workload, is_restarted: false }) };
        workload.resource = (read.resource != REPLICA_SETS).then_some(read.resource);
        workload.on_delete = read.spec.update_strategy.get("type").is_some_and(|strategy| strategy == "OnDelete");
        let is_restarted = restarted_at(&read.spec.template.metadata) != restarted_at(&pod.object.metadata);
        Ok(Self { workload, is_restarted })
    }
}

fn restarted_at(metadata: &ObjectMeta) -> Option<&str> {
    metadata.annotations.as_ref()?.get(RESTARTED_AT).map(String::as_str)
}
