//! The owner of a pod, verified, and what a restart of it does.
//!
//! Invariant: `ownerReferences` are not trusted, because any user who may create pods can write them. A name is checked before it
//! becomes part of a URL. An owner of a known kind counts only if it exists with the same `uid` and selects the pod.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::shared::{
    kinds::{Kind, controller_of},
    pods::ClusterPod,
    walk::workload::ClusterWorkload,
    world::World,
};
use gmsa_core::credspec::{is_dns_label, is_dns_subdomain};

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

/// The effect of a restart of the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Restart {
    /// It has none.
    Impossible,
    ReplacesPods,
    /// It replaces some pods only after they are deleted: paused, `OnDelete`, or a partition.
    OnDelete,
}

/// Why the owner that a pod names was not accepted, and the remedy if it could not be verified.
pub(super) type NotOwned = (String, Option<String>);

impl PodOwner {
    /// The owner of a pod (the Deployment, not its `ReplicaSet`), and whether the pod is older than the last restart, so it is being
    /// replaced.
    ///
    /// # Errors
    /// If a named owner does not own the pod, or cannot be read.
    pub(super) async fn of(world: &World, pod: &ClusterPod) -> Result<(Self, bool), NotOwned> {
        let (namespace, name) = pod.place();
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        let mut owner = Self { namespace, kind: "Pod".to_owned(), name, restart: Restart::Impossible };
        let (mut next, mut read) = (controller_of(&pod.object.metadata).cloned(), None);
        while let Some(reference) = next.take() {
            let below: Option<ClusterWorkload> = read.take();
            read = verified(world, &reference, pod).await?;
            let above = read.as_ref().filter(|read| read.kind.is_below() && below.is_none());
            next = above.and_then(|read| controller_of(&read.metadata)).cloned();
            (owner.kind, owner.name) = (kind_of(&reference), reference.name);
        }
        let Some(read) = read else { return Ok((owner, false)) };
        if read.kind.rolls_out() {
            let is_on_delete = read.is_paused() || read.replaces_on_delete() || read.partition() > 0;
            owner.restart = if is_on_delete { Restart::OnDelete } else { Restart::ReplacesPods };
        }
        let template = read.of_template().unwrap_or_default();
        Ok((owner, restarted_at(&template) != restarted_at(&pod.object.metadata)))
    }
}

/// The kind; with its group (`Job.batch.volcano.sh`) where another API has a kind of the same name as Kubernetes.
fn kind_of(OwnerReference { api_version, kind, .. }: &OwnerReference) -> String {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let is_of_core = |known: &str| known == kind && !group.is_empty();
    let is_like = |known: Kind| known.as_str() == kind && known.facts().group != group;
    let is_other = Kind::ALL.into_iter().any(is_like) || ["Node", "Pod"].into_iter().any(is_of_core);
    if is_other { format!("{kind}.{group}") } else { kind.clone() }
}

fn restarted_at(metadata: &ObjectMeta) -> Option<&str> {
    metadata.annotations.as_ref()?.get(RESTARTED_AT).map(String::as_str)
}

/// The owner, if it owns the pod; `None` if neither a restart of it nor one of its own owner can replace the pod: such owners are not read.
async fn verified(
    world: &World,
    owner: &OwnerReference,
    pod: &ClusterPod,
) -> Result<Option<ClusterWorkload>, NotOwned> {
    let is_it = |kind: &Kind| kind.as_str() == owner.kind && kind.api_version() == owner.api_version;
    let is_restarted = |kind: &Kind| {
        let mut above = Kind::ALL.into_iter().filter(|above| above.facts().below == Some(*kind));
        kind.rolls_out() || above.any(Kind::rolls_out)
    };
    let Some(known) = Kind::ALL.into_iter().find(is_it).filter(is_restarted) else { return Ok(None) };
    let (OwnerReference { kind, name, uid, .. }, (namespace, _)) = (owner, pod.place());
    if !is_dns_label(namespace) || !is_dns_subdomain(name) {
        return Err((format!("names as its owner a {kind} with an invalid name"), None));
    }
    let not_owned = |why: &str| (format!("names {kind} {name} as its owner, {why}"), None);
    let read = ClusterWorkload::find(world, known, namespace, name).await;
    let read = read
        .map_err(|unread| (not_owned(&format!("which cannot be read: {unread}")).0, Some(unread.remedy().to_owned())));
    let found = read?.ok_or_else(|| not_owned("which does not exist"))?;
    if found.uid() != uid {
        Err(not_owned("with another uid than the existing one"))
    } else if !found.selects(&pod.object.metadata) {
        Err(not_owned("which does not select it"))
    } else if !found.uses_gmsa() {
        Err(not_owned("whose pod template does not use GMSA"))
    } else {
        Ok(Some(found))
    }
}
