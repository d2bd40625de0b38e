//! The workload to restart in order to replace a pod.
//!
//! Invariant: of a workload that can be restarted, [`owners`](crate::shared::owners) has verified that it owns the pod, and its template
//! uses GMSA.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;

use crate::shared::{
    kinds::Kind,
    owners::{NamedOwner, NotOwned},
    pods::ClusterPod,
    world::World,
};

/// The annotation that `kubectl rollout restart` sets in the pod template to make a new revision; pods inherit it.
const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

/// The owner of pods: a workload, or the pod itself if it has no owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PodOwner {
    pub namespace: String,
    pub kind: String,
    pub name: String,
    pub restart: Restart,
}

/// What a restart of the owner does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Restart {
    /// It has none.
    Impossible,
    ReplacesPods,
    /// It replaces a pod only after the pod is deleted.
    OnDelete,
    /// It is refused while the Deployment is paused.
    Paused,
    /// It leaves pods with a lower number alone.
    Partition(u64),
}

/// The owner of a pod (the Deployment, not its `ReplicaSet`), and whether the pod is older than the last restart, so it is being
/// replaced.
///
/// # Errors
/// If the owner could not be verified.
pub(super) async fn owner_of(world: &World, pod: &ClusterPod) -> Result<(PodOwner, bool), NotOwned> {
    let owners = NamedOwner::all_of(world, pod).await?;
    let other = owners.iter().find(|owner| owner.read.as_ref().is_some_and(|read| !read.uses_gmsa()));
    if let Some(owner) = other {
        let (kind, name) = (&owner.reference.kind, &owner.reference.name);
        return Err(format!("names {kind} {name} as its owner, whose pod template does not use GMSA").into());
    }
    let (namespace, name) = pod.place();
    let (kind, name, read) = match owners.into_iter().next_back() {
        Some(owner) => (kind_of(&owner.reference), owner.reference.name, owner.read),
        None => ("Pod".to_owned(), name.to_owned(), None),
    };
    let mut owner = PodOwner { namespace: namespace.to_owned(), kind, name, restart: Restart::Impossible };
    let Some(read) = read else { return Ok((owner, false)) };
    owner.restart = match read.partition() {
        _ if !read.kind.rolls_out() => Restart::Impossible,
        _ if read.replaces_on_delete() => Restart::OnDelete,
        _ if read.is_paused() => Restart::Paused,
        0 => Restart::ReplacesPods,
        partition => Restart::Partition(partition),
    };
    let template = read.of_template().unwrap_or_default();
    Ok((owner, restarted_at(&template) != restarted_at(&pod.object.metadata)))
}

/// The kind; with its group (`Job.batch.volcano.sh`) where another API has a kind of the same name as Kubernetes.
fn kind_of(OwnerReference { api_version, kind, .. }: &OwnerReference) -> String {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let is_of_core = |known: &str| known == kind && !group.is_empty();
    let is_like = |known: Kind| known.as_str() == kind && known.group() != group;
    let is_other = Kind::ALL.into_iter().any(is_like) || ["Node", "Pod"].into_iter().any(is_of_core);
    if is_other { format!("{kind}.{group}") } else { kind.clone() }
}

fn restarted_at(metadata: &ObjectMeta) -> Option<&str> {
    metadata.annotations.as_ref()?.get(RESTARTED_AT).map(String::as_str)
}

/// The workload in the form that `kubectl` accepts.
pub(super) fn target(workload: &PodOwner) -> String {
    format!("{}/{}", workload.kind.to_ascii_lowercase(), workload.name)
}
