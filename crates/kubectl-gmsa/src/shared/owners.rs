//! The owners of a pod, verified.
//!
//! Invariant: `ownerReferences` are not trusted, because any user who may create pods can write them. A name is checked before it
//! becomes part of a URL. An owner of a known kind counts only if it exists with the same `uid` and selects the pod.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::{
    kinds::{Kind, controller_of},
    pods::ClusterPod,
    walk::workload::ClusterWorkload,
    world::World,
};
use gmsa_core::credspec::{is_dns_label, is_dns_subdomain};

/// An owner of a pod, as the pod or its `ReplicaSet` names it.
pub struct NamedOwner {
    pub reference: OwnerReference,
    /// The owner itself, if its kind is known.
    pub read: Option<ClusterWorkload>,
}

/// Why the owner that a pod names was not accepted.
pub struct NotOwned {
    pub why: String,
    /// The remedy if the owner could not be verified.
    pub fix: Option<String>,
}

impl From<String> for NotOwned {
    fn from(why: String) -> Self {
        Self { why, fix: None }
    }
}

impl NamedOwner {
    /// The owners of a pod, the nearest first: a `ReplicaSet`, then its Deployment.
    ///
    /// # Errors
    /// If a named owner does not own the pod, or cannot be read.
    pub async fn all_of(world: &World, pod: &ClusterPod) -> Result<Vec<Self>, NotOwned> {
        let mut owners = Vec::new();
        let mut next = controller_of(&pod.object.metadata).cloned();
        while let Some(reference) = next.take() {
            let read = match kind(&reference) {
                Some(kind) => Some(verified(world, &reference, kind, pod).await?),
                None => None,
            };
            if let Some(below) = read.as_ref().filter(|read| owners.is_empty() && read.kind.is_below()) {
                next = controller_of(&below.metadata).cloned();
            }
            owners.push(Self { reference, read });
        }
        Ok(owners)
    }
}

async fn verified(
    world: &World,
    owner: &OwnerReference,
    of: Kind,
    pod: &ClusterPod,
) -> Result<ClusterWorkload, NotOwned> {
    let (OwnerReference { kind, name, uid, .. }, (namespace, _)) = (owner, pod.place());
    if !is_dns_label(namespace) || !is_dns_subdomain(name) {
        return Err(format!("names as its owner a {kind} with an invalid name").into());
    }
    let not_owned = |why: &str| NotOwned::from(format!("names {kind} {name} as its owner, {why}"));
    let read = ClusterWorkload::find(world, of, namespace, name).await.map_err(|unread| {
        let fix = Some(unread.remedy().to_owned());
        NotOwned { fix, ..not_owned(&format!("which cannot be read: {unread}")) }
    });
    let found = read?.ok_or_else(|| not_owned("which does not exist"))?;
    if found.uid() != uid {
        return Err(not_owned("with another uid than the existing one"));
    } else if !found.selects(&pod.object.metadata.labels.clone().unwrap_or_default()) {
        return Err(not_owned("which does not select it"));
    }
    Ok(found)
}

/// The kind of the owner, if a restart of it, or of its own owner, can replace the pod. Owners of other kinds are not read.
fn kind(owner: &OwnerReference) -> Option<Kind> {
    let is_it = |kind: &Kind| kind.as_str() == owner.kind && kind.api_version() == owner.api_version;
    let is_restarted = |kind: &Kind| {
        let mut above = Kind::ALL.into_iter().filter(|above| above.below() == Some(*kind));
        kind.rolls_out() || above.any(Kind::rolls_out)
    };
    Kind::ALL.into_iter().find(is_it).filter(is_restarted)
}
