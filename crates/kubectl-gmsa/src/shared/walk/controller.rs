//! A controller of an unknown kind, such as a Rollout, found by the ReplicaSets, Jobs and pods that name it as their controller.
//!
//! Invariant: owner references are trusted only for output; nothing is changed.

use anyhow::bail;
use gmsa_core::diagnostic::Check;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::{ADMISSION, workload::ClusterWorkload};
use crate::shared::{
    kinds::{Kind, PODS, controller_of},
    spelling::nearest,
    unread::{Read, Unread},
    world::{Owned, World, pods_of},
};

/// The lines of the newest ReplicaSet or Job that it controls, or else of a pod.
pub(super) async fn lines(world: &World, typed: &str, name: &str) -> anyhow::Result<Vec<Check>> {
    let namespace = world.namespace.as_str();
    let is_it = |metadata: &ObjectMeta| controller_of(metadata).is_some_and(|owner| is_named(owner, typed, name));
    let mut unread = None;
    for kind in Kind::ALL.into_iter().filter(|kind| kind.is_below()) {
        let read = known(ClusterWorkload::list(world, kind, Some(namespace)).await, &mut unread);
        let own = read.into_iter().filter(|object| is_it(&object.metadata));
        let newest = own.max_by(|one, other| {
            let wants = |object: &ClusterWorkload| object.wanted().0 > 0;
            (wants(one), one.age()).cmp(&(wants(other), other.age()))
        });
        if let Some(found) = newest.and_then(|newest| newest.metadata.name) {
            let first = Check::pass(ADMISSION, format!("{typed}/{name}: its newest {} is {found}", kind.as_str()));
            let lines = Box::pin(super::workload(world, kind, &found)).await?;
            return Ok([vec![first], lines].concat());
        }
    }
    let pods: Vec<Owned> = known(world.list(&pods_of(Some(namespace))).await, &mut unread);
    if let Some(found) = pods.into_iter().find(|pod| is_it(&pod.metadata)).and_then(|pod| pod.metadata.name) {
        let first = Check::pass(ADMISSION, format!("{typed}/{name}: one of its pods is {found}"));
        return Ok([vec![first], Box::pin(super::pod(world, &found)).await?].concat());
    }
    let words: Vec<String> =
        PODS.map(str::to_owned).into_iter().chain(Kind::ALL.into_iter().flat_map(Kind::words)).collect();
    match (nearest(typed, words.iter().map(String::as_str)), unread) {
        (Some(nearest), _) => bail!("{typed:?} is not a kind with pods: is {nearest}/{name} meant?"),
        (None, Some(unread)) => Err(unread.into()),
        (None, None) => bail!(
            "nothing in namespace {namespace} has {typed}/{name} as its controller: no ReplicaSet, no Job and no pod"
        ),
    }
}

/// The objects of a list; the first failed read is kept.
fn known<T>(read: Read<Vec<T>>, unread: &mut Option<Unread>) -> Vec<T> {
    read.unwrap_or_else(|error| {
        unread.get_or_insert(error);
        Vec::new()
    })
}

/// Whether the reference has this kind (as a word of `kubectl`) and this name.
fn is_named(owner: &OwnerReference, word: &str, name: &str) -> bool {
    let (kind, group) = word.split_once('.').unwrap_or((word, ""));
    let own = owner.kind.to_ascii_lowercase();
    let is_kind = kind == own || kind.strip_suffix('s') == Some(&own);
    is_kind && owner.name == name && (group.is_empty() || owner.api_version.split('/').next() == Some(group))
}
