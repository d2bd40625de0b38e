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
    pub message: Option<String>,
}

impl Object {
    pub fn condition(&self, name: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.type_ == name && condition.status == "True")
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
    pub fn wanted(&self, kind: Kind) -> (usize, &'static str) {
        let Self { spec, status, .. } = self;
        match kind {
            Kind::Deployment | Kind::StatefulSet | Kind::ReplicaSet => (spec.replicas.unwrap_or(1), "replicas is 0"),
            Kind::DaemonSet => (status.desired_number_scheduled.unwrap_or(0), "no node matches its node selector"),
            Kind::CronJob if spec.suspend => (0, "it is suspended"),
            Kind::CronJob => (0, "it has started no Job yet"),
            Kind::Job if self.condition("Complete").is_some() => (0, "it is complete"),
            Kind::Job if spec.suspend => (0, "it is suspended"),
            Kind::Job => {
                let at_once = spec.parallelism.unwrap_or(1);
                let left = |all: usize| all.saturating_sub(status.succeeded.unwrap_or(0));
                (spec.completions.map_or(at_once, |all| left(all).min(at_once)), "nothing is left to do")
            }
        }
    }

    /// Its pod template as a pod, where that uses GMSA.
    pub fn pod(&self, kind: Kind) -> Option<Value> {
        let template = match kind {
            Kind::CronJob => self.spec.job_template.as_ref()?.spec.template.as_ref(),
            _ => self.spec.template.as_ref(),
        }?;
        if !template.get().contains("gmsaCredentialSpec") || !Pod::from_json(template.get()).ok()?.uses_gmsa() {
            return None;
        }
        let mut pod: Value = serde_json::from_str(template.get()).ok()?;
        // Its controller names it.
        let labels = pod.pointer("/metadata/labels").cloned().unwrap_or_default();
        *pod.get_mut("metadata")? = json!({"generateName": format!("{}-", self.metadata.name), "labels": labels});
        Some(pod)
    }
}
