//! The workload that is restarted to replace a pod.
//!
//! Invariant: it owns the pod by the rules of [`owners`](crate::shared::owners), and its own template uses GMSA.

use kube::api::ObjectMeta;

use crate::shared::{
    owners::{NamedOwner, NotOwned},
    pods::ClusterPod,
    snapshot::Snapshot,
    workloads::Kind,
};

/// The annotation of a pod template, and so of its pods, by which `kubectl rollout restart` makes a new revision.
const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

/// What controls pods: a workload, or nothing but the pod itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PodOwner {
    pub namespace: String,
    pub kind: String,
    pub name: String,
    /// `None` where a restart is not possible.
    pub restartable: Option<Kind>,
    /// Whether it replaces a pod only after the pod is deleted.
    pub on_delete: bool,
}

/// The owner of a pod, a Deployment rather than its `ReplicaSet`, and whether the pod is of a template from before its last restart, so that it is
/// being replaced.
///
/// # Errors
/// Where the owner that the pod names is not its owner, or cannot be read.
pub(super) async fn owner_of(snapshot: &Snapshot, pod: &ClusterPod) -> Result<(PodOwner, bool), NotOwned> {
    let owners = NamedOwner::all_of(snapshot, pod).await?;
    let other = owners.iter().find(|owner| owner.read.as_ref().is_some_and(|read| !read.uses_gmsa()));
    if let Some(owner) = other {
        let (kind, name) = (&owner.reference.kind, &owner.reference.name);
        return Err(format!("names {kind} {name} as its owner, whose pod template does not use GMSA").into());
    }
    let (namespace, name) = pod.place();
    let (kind, name, read) = match owners.into_iter().next_back() {
        Some(owner) => (owner.reference.kind, owner.reference.name, owner.read),
        None => ("Pod".to_owned(), name.to_owned(), None),
    };
    let mut owner = PodOwner { namespace: namespace.to_owned(), kind, name, restartable: None, on_delete: false };
    let Some(read) = read else { return Ok((owner, false)) };
    owner.restartable = Some(read.kind).filter(|kind| *kind != Kind::ReplicaSet);
    owner.on_delete = read.replaces_on_delete();
    let template = read.of_template().unwrap_or_default();
    Ok((owner, restarted_at(&template) != restarted_at(&pod.object.metadata)))
}

fn restarted_at(metadata: &ObjectMeta) -> Option<&str> {
    metadata.annotations.as_ref()?.get(RESTARTED_AT).map(String::as_str)
}

/// The workload, as `kubectl` takes it.
pub(super) fn target(workload: &PodOwner) -> String {
    format!("{}/{}", workload.kind.to_ascii_lowercase(), workload.name)
}
