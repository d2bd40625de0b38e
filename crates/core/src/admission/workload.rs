//! A workload, as far as admission cares: its pod template, and whether another object controls it.
//!
//! A new kind is:
//! - a variant of [`Kind`] with its row, which has all that code decides by; a test names each page and list of rights that must name it;
//! - a rule of `/validate-workload` in the chart's `validatingwebhook.yaml` and, where its pod template is in another place,
//!   `gmsa-webhook.cel.workload` in `_cel.tpl`;
//! - an object in `tests/install/objects/every-kind.yaml`.

mod kind;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::pod::{
    Pod,
    fields::{self, Unsupported},
};
pub use kind::{Kind, PodCount, PodNames};

use crate::json::{self, Flag, Object, fold};

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

fn has_controller<'de, D: Deserializer<'de>>(input: D) -> Result<bool, D::Error> {
    fold(input, false, |found, Object(OwnerReference { controller })| *found |= controller == Some(Flag(true)))
}

#[derive(Deserialize)]
struct OwnerReference {
    controller: Option<Flag>,
}

impl Workload {
    /// Reads a workload of this kind.
    ///
    /// # Errors
    /// Where the string is not JSON, or a known field has the wrong type.
    pub fn from_json(kind: Kind, json: &str) -> Result<Self, serde_json::Error> {
        let owners = json::at(json, "/metadata/ownerReferences")?
            .map(|owners| has_controller(&mut serde_json::Deserializer::from_str(owners.get())));
        let is_controlled = owners.transpose()?.unwrap_or(false);
        let replicas = json::at(json, "/spec/replicas")?.and_then(|number| number.get().parse().ok());
        // The review of the controller checks the pods.
        let json = kind.template_in(json)?.filter(|_| !is_controlled).map(RawValue::get);
        let template = json.map(Pod::from_json).transpose()?;
        let uses_gmsa = template.as_ref().is_some_and(Pod::uses_gmsa);
        let unsupported = json.filter(|_| uses_gmsa).map(fields::read).unwrap_or_default();
        Ok(Self { is_controlled, template, unsupported, replicas })
    }
}
