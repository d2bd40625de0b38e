//! A workload as the API server describes it: what it wants, and its pod template.

use std::collections::HashMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::shared::workloads::Kind;
use gmsa_core::admission::pod::Pod;

/// The fields that are needed.
#[derive(Deserialize)]
pub struct Object {
    pub metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    pub namespace: String,
    pub name: String,
    #[serde(default)]
    pub uid: String,
    #[serde(default)]
    owner_references: Vec<OwnerReference>,
    creation_timestamp: Option<Time>,
    #[serde(default)]
    annotations: HashMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    replicas: Option<usize>,
    parallelism: Option<usize>,
    completions: Option<usize>,
    #[serde(default)]
    suspend: bool,
    #[serde(default)]
    paused: bool,
    template: Option<Box<RawValue>>,
    job_template: Option<JobTemplate>,
}

#[derive(Deserialize)]
struct JobTemplate {
    spec: JobSpec,
}

#[derive(Deserialize)]
struct JobSpec {
    template: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(default)]
    conditions: Vec<Condition>,
    desired_number_scheduled: Option<usize>,
    succeeded: Option<usize>,
}

#[derive(Deserialize)]
pub struct Condition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
    reason: Option<String>,
    pub message: Option<String>,
}

/// Why a workload wants no pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    Scaled,
    NoNode,
    Suspended,
    NoJobYet,
    Complete,
    NothingLeft,
}

impl Idle {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scaled => "replicas is 0",
            Self::NoNode => "no node matches its node selector",
            Self::Suspended => "it is suspended",
            Self::NoJobYet => "it has started no Job yet",
            Self::Complete => "it is complete",
            Self::NothingLeft => "nothing is left to do",
        }
    }
}

impl Object {
    pub fn condition(&self, name: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.type_ == name && condition.status == "True")
    }

    /// The message of a rollout that does not go on (`progressDeadlineSeconds`).
    pub fn stuck(&self) -> Option<String> {
        let is_stuck = |condition: &&Condition| {
            condition.type_ == "Progressing" && condition.reason.as_deref() == Some("ProgressDeadlineExceeded")
        };
        self.status.conditions.iter().find(is_stuck).map(|found| found.message.clone().unwrap_or_default())
    }

    pub fn is_paused(&self) -> bool {
        self.spec.paused
    }

    /// By what those of one owner are in order: a rollback makes an old ReplicaSet the newest.
    pub fn age(&self) -> (Option<u64>, Option<&Time>) {
        let revision = self.metadata.annotations.get("deployment.kubernetes.io/revision");
        (revision.and_then(|revision| revision.parse().ok()), self.metadata.creation_timestamp.as_ref())
    }

    pub fn controller(&self) -> Option<&str> {
        let mut owners = self.metadata.owner_references.iter();
        owners.find(|owner| owner.controller == Some(true)).map(|owner| owner.uid.as_str())
    }

    /// How many pods it creates, and why that is none.
    pub fn wanted(&self, kind: Kind) -> (usize, Idle) {
        let Self { spec, status, .. } = self;
        match kind {
            Kind::Deployment | Kind::StatefulSet | Kind::ReplicaSet => (spec.replicas.unwrap_or(1), Idle::Scaled),
            Kind::DaemonSet => (status.desired_number_scheduled.unwrap_or(0), Idle::NoNode),
            Kind::CronJob if spec.suspend => (0, Idle::Suspended),
            Kind::CronJob => (0, Idle::NoJobYet),
            Kind::Job if self.condition("Complete").is_some() => (0, Idle::Complete),
            Kind::Job if spec.suspend => (0, Idle::Suspended),
            Kind::Job => {
                let at_once = spec.parallelism.unwrap_or(1);
                let left = |all: usize| all.saturating_sub(status.succeeded.unwrap_or(0));
                (spec.completions.map_or(at_once, |all| left(all).min(at_once)), Idle::NothingLeft)
            }
        }
    }

    fn template(&self, kind: Kind) -> Option<&RawValue> {
        match kind {
            Kind::CronJob => self.spec.job_template.as_ref()?.spec.template.as_deref(),
            _ => self.spec.template.as_deref(),
        }
    }

    /// Whether its pod template uses GMSA.
    pub fn uses_gmsa(&self, kind: Kind) -> bool {
        let uses = |template: &RawValue| Pod::from_json(template.get()).is_ok_and(|pod| pod.uses_gmsa());
        self.template(kind).is_some_and(|template| template.get().contains("gmsaCredentialSpec") && uses(template))
    }

    /// Its pod template as a pod.
    pub fn pod(&self, kind: Kind) -> Option<Value> {
        let template = self.template(kind)?;
        let mut pod: Value = serde_json::from_str(template.get()).ok()?;
        // Its controller names it.
        let labels = pod.pointer("/metadata/labels").cloned().unwrap_or_default();
        *pod.get_mut("metadata")? = json!({"generateName": format!("{}-", self.metadata.name), "labels": labels});
        Some(pod)
    }
}
