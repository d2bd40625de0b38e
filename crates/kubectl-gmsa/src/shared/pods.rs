//! Pods of a cluster, and whether their contents match their credential specs.

use std::{borrow::Borrow, collections::HashMap};

use anyhow::Context as _;
use k8s_openapi::api::core::v1;
use serde_json::{Value, value::RawValue};

use super::{
    kinds::controller_of,
    names,
    world::{World, pods_of},
};
use crate::shared::rules::{self, FixTarget, Names};
use gmsa_core::{
    admission::pod::{Pod, Slot},
    credspec::{Contents, compare::compare},
    diagnostic::Diagnostic,
};

/// A pod of a cluster: as admission reads it, and as the API server describes it. A pod to be created has no such description, and may be wrong: it is
/// a [`NewPod`](super::admission::NewPod), its JSON beside its review.
pub struct ClusterPod {
    pub admission: Pod,
    pub object: v1::Pod,
}

impl ClusterPod {
    /// The node that the pod is bound to.
    pub fn node_name(&self) -> Option<&str> {
        self.object.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
    }

    /// How to create the pod again: by its controller, if it has one.
    pub fn created_again(&self) -> Option<String> {
        if controller_of(&self.object.metadata).is_none() {
            let fix =
                "Create it again from its manifest, because no controller does: `kubectl replace --force -f FILE`.";
            return Some(fix.to_owned());
        }
        let (namespace, name) = self.place();
        let delete = FixTarget::Pod { namespace }.command("delete pod", name, "")?;
        Some(format!("Delete the pod: {delete}. Its controller creates a new one."))
    }

    /// Reads the pod with this name in the namespace of the command.
    pub async fn find(world: &World, name: &str) -> anyhow::Result<Self> {
        let namespace = world.valid_namespace()?;
        let list = pods_of(Some(namespace));
        let read = world.find(&format!("{list}/{name}")).await;
        let json: Box<RawValue> = names::found(world, read, "pod", &list, name).await?;
        Self::read(&json).context("the pod cannot be parsed")
    }

    pub fn read(json: &RawValue) -> Result<Self, serde_json::Error> {
        Ok(Self { admission: Pod::from_json(json.get())?, object: serde_json::from_str(json.get())? })
    }

    pub fn phase(&self) -> &str {
        self.object.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Unknown")
    }

    /// Its namespace and its name, which every object of a cluster has.
    pub fn place(&self) -> (&str, &str) {
        let v1::Pod { metadata, .. } = &self.object;
        (metadata.namespace.as_deref().unwrap_or(""), metadata.name.as_deref().unwrap_or(""))
    }

    /// The names in a remedy.
    pub fn names(&self) -> Names<'_> {
        let (namespace, name) = self.place();
        Names {
            spec: self.admission.audiences().next(),
            namespace: Some(namespace),
            pod_name: Some(name),
            service_account: Some(self.admission.service_account()),
            ..Names::default()
        }
    }

    pub fn condition(&self, name: &str) -> Option<&v1::PodCondition> {
        let mut conditions = self.object.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.find(|condition| condition.type_ == name)
    }

    /// Whether it is the mirror of a static pod: its kubelet created it, and its node is its controller.
    pub fn is_static(&self) -> bool {
        let metadata = &self.object.metadata;
        let annotations = metadata.annotations.as_ref();
        controller_of(metadata).is_some_and(|owner| owner.kind == "Node")
            || annotations.is_some_and(|annotations| annotations.contains_key("kubernetes.io/config.mirror"))
    }

    /// Whether all its containers have ended for good.
    pub fn has_ended(&self) -> bool {
        matches!(self.phase(), "Succeeded" | "Failed")
    }
}

/// Adds to a refusal about resources of a pod with an injected sidecar that the webhook's chart sets the sidecar's.
pub fn with_sidecar(pod: Option<&Pod>, said: &str, found: Diagnostic) -> Diagnostic {
    const RESOURCES: [&str; 4] = ["exceeded quota", " usage per ", " limit to request ratio per ", "Insufficient"];
    if pod.is_none_or(|pod| pod.asks().next().is_none()) || RESOURCES.iter().all(|words| !said.contains(words)) {
        return found;
    }
    let counts =
        "The injected sidecar counts too: its resources are the value `tickets.resources` of the webhook's chart.";
    let fix = format!("{} {counts}", found.remedy());
    found.with_fix(fix)
}

/// The finding for a pod that cannot be parsed, with as much of its name as is readable.
pub fn unparsable(json: &RawValue, error: &serde_json::Error) -> Diagnostic {
    let pod: Value = serde_json::from_str(json.get()).unwrap_or_default();
    let field = |pointer| pod.pointer(pointer).and_then(Value::as_str).unwrap_or("?");
    // The line and the column are in an answer that the user does not see.
    let error = error.to_string();
    let error = error.split_once(" at line ").map_or(error.as_str(), |(error, _)| error);
    let object = format!("Pod {}/{}", field("/metadata/namespace"), field("/metadata/name"));
    Diagnostic { object, ..Diagnostic::new(&rules::UNREADABLE, format!("cannot be parsed: {error}")) }
        .with_fix("use a newer version of kubectl gmsa")
}

/// The contents in a pod, compared with its credential specs. The worst slot decides; later variants are worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContentsState {
    NoGmsa,
    UpToDate,
    /// A name without contents.
    WithoutContents,
    /// Other contents than the credential spec has now.
    Outdated,
    /// Contents that cannot be compared: they have no name, or their credential spec does not exist or has no contents.
    Unmatched,
}

/// The remedy for [`ContentsState::Unmatched`].
pub const FIX_UNMATCHED: &str = "create the credential spec that gmsaCredentialSpecName names, or set that name where it is missing: \
     otherwise new pods are refused";

impl ContentsState {
    pub fn of<C: Borrow<Contents>>(pod: &Pod, contents: &HashMap<String, C>) -> Self {
        let state = |slot: Slot<'_>| {
            let Some(carried) = slot.contents else { return Self::WithoutContents };
            match slot.name.and_then(|name| contents.get(name)) {
                None => Self::Unmatched,
                Some(current) if compare(carried, current.borrow()).is_err() => Self::Outdated,
                Some(_) => Self::UpToDate,
            }
        };
        pod.slots().filter(Slot::uses_gmsa).map(state).max().unwrap_or(Self::NoGmsa)
    }
}
