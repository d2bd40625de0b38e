//! A workload, as far as admission cares: its pod template, and whether another object controls it.
//!
//! A new kind is:
//! - a variant of [`Kind`]: the compiler then names each match, and a test the rights of `doctor` and `docs/rights.md`;
//! - a rule of `/validate-workload` in the chart's `validatingwebhook.yaml`;
//! - an object in `tests/install/objects/lister.yaml` and in the plugin's `tests/fixtures/bundle.yaml`, its path in `KINDS` of `tests/cli/cluster.rs`, and its name in
//!   `docs/pipelines.md` and `docs/k9s-plugins.yaml`;
//! - where its pod template is in another place, also `WorkloadSpec` here, and `gmsa-webhook.cel.workload` in the chart's `_cel.tpl`.

mod kind;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::pod::{
    Pod,
    fields::{self, Unsupported},
};
pub use kind::Kind;

use crate::json::{Flag, Object, fold, null_is_default};

/// The parts of a workload that matter.
#[derive(Debug)]
pub struct Workload {
    /// Whether another object controls this one.
    pub(super) is_controlled: bool,
    /// The template of the pods; none where another object controls the workload.
    pub(super) template: Option<Pod>,
    /// Settings of the pods that behave differently on Windows; empty if the pods do not use GMSA.
    pub(super) unsupported: Unsupported,
    /// How many pods there will be, where the workload says so.
    pub(super) replicas: Option<u64>,
}

#[derive(Deserialize)]
struct WorkloadFields<'a> {
    #[serde(default, deserialize_with = "null_is_default")]
    metadata: Object<WorkloadMetadata>,
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    spec: Object<WorkloadSpec<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WorkloadMetadata {
    #[serde(default, deserialize_with = "has_controller")]
    owner_references: bool,
}

fn has_controller<'de, D: Deserializer<'de>>(input: D) -> Result<bool, D::Error> {
    fold(input, false, |found, Object(OwnerReference { controller })| *found |= controller == Some(Flag(true)))
}

#[derive(Deserialize)]
struct OwnerReference {
    controller: Option<Flag>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WorkloadSpec<'a> {
    #[serde(borrow)]
    replicas: Option<&'a RawValue>,
    #[serde(borrow)]
    template: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    job_template: Object<JobTemplateSpec<'a>>,
}

/// A `CronJob` holds its pod template one level deeper than the rest.
#[derive(Default, Deserialize)]
struct JobTemplateSpec<'a> {
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    spec: Object<BatchJobSpec<'a>>,
}

#[derive(Default, Deserialize)]
struct BatchJobSpec<'a> {
    #[serde(borrow)]
    template: Option<&'a RawValue>,
}

impl Workload {
    /// Reads a workload.
    ///
    /// # Errors
    /// Where the string is not JSON, or a known field has the wrong type.
    pub fn from_json(json: &str) -> Result<Self, serde_json::Error> {
        let Object(WorkloadFields { metadata, spec: Object(spec) }) = serde_json::from_str(json)?;
        let template = spec.template.or(spec.job_template.0.spec.0.template);
        let is_controlled = metadata.owner_references;
        // The review of the controller checks the pods.
        let json = template.filter(|_| !is_controlled).map(RawValue::get);
        let template = json.map(Pod::from_json).transpose()?;
        let uses_gmsa = template.as_ref().is_some_and(Pod::uses_gmsa);
        // Advice only: what cannot be read in these fields, the API server refuses.
        let unsupported = json
            .filter(|_| uses_gmsa)
            .and_then(|json| fields::read(&mut serde_json::Deserializer::from_str(json)).ok())
            .unwrap_or_default();
        let replicas = spec.replicas.and_then(|number| number.get().parse().ok());
        Ok(Self { is_controlled, template, unsupported, replicas })
    }
}
