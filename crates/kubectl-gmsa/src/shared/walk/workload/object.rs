//! A workload as the API server returns it: the pods that it wants, its conditions and its pod template.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::apps::v1::DeploymentCondition,
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, Time},
};
use kube::core::{Selector, SelectorExt as _};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::shared::{
    admission::NewPod,
    kinds::Kind,
    unread::{Read, Unread},
    world::{Owned, World},
};
use gmsa_core::{
    admission::{pod::Pod, workload::PodCount},
    credspec::Verb,
};

/// The annotation of a DaemonSet with the generation of its template.
const GENERATION: &str = "deprecated.daemonset.template.generation";

/// A workload of a cluster, with the needed fields.
pub struct ClusterWorkload {
    pub kind: Kind,
    pub metadata: ObjectMeta,
    spec: Spec,
    status: Reported,
    /// Its pod template; the whole object if the way to the template cannot be read.
    template: Result<Option<Box<RawValue>>, Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Fields {
    metadata: ObjectMeta,
    spec: Spec,
    status: Reported,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    replicas: Option<usize>,
    parallelism: Option<usize>,
    completions: Option<usize>,
    suspend: bool,
    paused: bool,
    selector: Option<LabelSelector>,
    update_strategy: Value,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Reported {
    conditions: Vec<DeploymentCondition>,
    desired_number_scheduled: Option<usize>,
    observed_generation: Option<i64>,
    update_revision: Option<String>,
    succeeded: Option<usize>,
}

/// Why a workload wants no pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    Scaled,
    NoNode,
    /// Its controller has reported nothing yet.
    NotSeen,
    Suspended,
    NoJobYet,
    Complete,
}

impl Idle {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scaled => "replicas is 0",
            Self::NoNode => "no node fits its node selector, its affinity and its tolerations",
            Self::NotSeen => "its controller, in kube-controller-manager, has not looked at it yet",
            Self::Suspended => "it is suspended",
            Self::NoJobYet => "it has started no Job yet",
            Self::Complete => "it is complete",
        }
    }
}

impl ClusterWorkload {
    /// Reads a workload; `None` if it does not exist.
    pub async fn find(world: &World, kind: Kind, namespace: &str, name: &str) -> Read<Option<Self>> {
        let path = format!("{}/{name}", kind.collection(Some(namespace)));
        let found: Option<Box<RawValue>> = world.find(&path).await?;
        found.map(|json| Self::of(kind, &json).map_err(|error| Unread::of("get", &path, &error.into()))).transpose()
    }

    /// Reads the workloads of one kind, in a namespace or in all.
    pub async fn list(world: &World, kind: Kind, namespace: Option<&str>) -> Read<Vec<Self>> {
        let path = kind.collection(namespace);
        let items = world.items(&path).await?;
        let read = items.iter().map(|json| Self::of(kind, json)).collect::<Result<_, _>>();
        read.map_err(|error| Unread::of("list", &path, &error.into()))
    }

    /// List items have no `kind`.
    fn of(kind: Kind, json: &RawValue) -> Result<Self, serde_json::Error> {
        let Fields { metadata, spec, status } = serde_json::from_str(json.get())?;
        let template = kind.template_in(json.get()).map(|template| template.map(ToOwned::to_owned));
        Ok(Self { kind, metadata, spec, status, template: template.map_err(|_| json.to_owned()) })
    }

    pub fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// The message of a condition with this status.
    pub fn says(&self, condition: &str, status: &str) -> Option<&str> {
        let is_it = |found: &&DeploymentCondition| found.type_ == condition && found.status == status;
        self.status.conditions.iter().find(is_it).map(|found| found.message.as_deref().unwrap_or_default())
    }

    /// Whether its rollout is paused.
    pub fn is_paused(&self) -> bool {
        self.spec.paused
    }

    /// Whether it replaces a pod only after the pod is deleted.
    pub fn replaces_on_delete(&self) -> bool {
        self.spec.update_strategy.get("type").is_some_and(|strategy| strategy == "OnDelete")
    }

    /// Whether a pod is of an older template, by the revision (StatefulSet) or the generation (DaemonSet) in its labels, if they are known.
    pub fn is_older(&self, pod: &ObjectMeta) -> Option<bool> {
        let (label, now) = match &self.status.update_revision {
            Some(revision) => ("controller-revision-hash", revision),
            None => ("pod-template-generation", self.metadata.annotations.as_ref()?.get(GENERATION)?),
        };
        Some(pod.labels.as_ref()?.get(label)? != now)
    }

    /// The number below which a restart leaves the pods of a StatefulSet alone.
    pub fn partition(&self) -> u64 {
        self.spec.update_strategy.pointer("/rollingUpdate/partition").and_then(Value::as_u64).unwrap_or(0)
    }

    /// Whether its selector matches the labels of a pod. An empty selector, which `apps/v1` does not allow, does not count.
    pub fn selects(&self, pod: &ObjectMeta) -> bool {
        let none = BTreeMap::new();
        let labels = pod.labels.as_ref().unwrap_or(&none);
        let selector = self.spec.selector.clone().and_then(|selector| Selector::try_from(selector).ok());
        selector.is_some_and(|selector| !selector.selects_all() && selector.matches(labels))
    }

    /// The sort key among objects of one owner: a rollback makes an old ReplicaSet the newest.
    pub fn age(&self) -> (Option<u64>, Option<&Time>) {
        let annotations = self.metadata.annotations.as_ref();
        let revision = annotations.and_then(|all| all.get("deployment.kubernetes.io/revision"));
        (revision.and_then(|revision| revision.parse().ok()), self.metadata.creation_timestamp.as_ref())
    }

    /// How many pods it creates, and the reason if that is 0.
    pub fn wanted(&self) -> (usize, Idle) {
        let Self { kind, spec, status, .. } = self;
        match kind.facts().pod_count {
            PodCount::Replicas => (spec.replicas.unwrap_or(1), Idle::Scaled),
            PodCount::Nodes => {
                let idle = if status.observed_generation.is_none() { Idle::NotSeen } else { Idle::NoNode };
                (status.desired_number_scheduled.unwrap_or(0), idle)
            }
            PodCount::Runs if spec.suspend => (0, Idle::Suspended),
            PodCount::Runs => (0, Idle::NoJobYet),
            PodCount::Completions if self.says("Complete", "True").is_some() => (0, Idle::Complete),
            PodCount::Completions if spec.suspend => (0, Idle::Suspended),
            PodCount::Completions => {
                let at_once = spec.parallelism.unwrap_or(1);
                let left = |all: usize| all.saturating_sub(status.succeeded.unwrap_or(0));
                (spec.completions.map_or(at_once, |all| left(all).min(at_once)), Idle::Complete)
            }
        }
    }

    /// The metadata of its pod template.
    pub fn of_template(&self) -> Option<ObjectMeta> {
        let template: Owned = serde_json::from_str(self.template()?.get()).ok()?;
        Some(template.metadata)
    }

    fn template(&self) -> Option<&RawValue> {
        self.template.as_ref().ok()?.as_deref()
    }

    /// Whether its pod template uses GMSA or asks for tickets or a keytab. An unparsable template that names them counts.
    pub fn uses_gmsa(&self) -> bool {
        let asks = |pod: &Pod| pod.uses_gmsa() || pod.asks_tickets_of().next().is_some();
        let uses = |template: &RawValue| Pod::from_json(template.get()).map_or(true, |pod| asks(&pod));
        let asked = Verb::ALL.map(|verb| [verb.product().annotation, verb.product().audience]);
        let words = || asked.iter().flatten().chain([&"gmsaCredentialSpec"]);
        let names = |json: &RawValue| words().any(|word| json.get().contains(word));
        match &self.template {
            Ok(template) => template.as_deref().is_some_and(|template| names(template) && uses(template)),
            Err(object) => names(object),
        }
    }

    /// A pod of its template; what cannot be read as a template is no pod.
    pub fn pod(&self, namespace: &str) -> NewPod {
        let template = self.template().and_then(|template| serde_json::from_str(template.get()).ok());
        NewPod::of_template(namespace, template.unwrap_or_default(), self.metadata.name.as_deref().unwrap_or_default())
    }
}
