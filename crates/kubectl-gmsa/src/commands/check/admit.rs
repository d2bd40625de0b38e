//! Sends one pod through both webhooks, the mutating one first, as the API server does.

use anyhow::Context as _;
use serde_json::Value;

use super::facts::FactFinder;
use gmsa_core::admission::{Review, SlotDenial, Webhook};

pub(super) struct Admission {
    /// The pod as the mutating webhook leaves it.
    pub stored: Value,
    /// Every denial, at most one for each slot.
    pub denials: Vec<SlotDenial>,
}

/// Admits the pod of `review`, which is `pod`.
pub(super) async fn admit(review: &Review, pod: &Value, finder: &mut FactFinder) -> anyhow::Result<Admission> {
    let mut stored = pod.clone();
    let mutated = finder.decide(Webhook::Mutate, review).await;
    let mut patched = None;
    if let Some(patch) = mutated.patch {
        let patch: json_patch::Patch =
            serde_json::from_slice(patch.as_bytes()).context("the patch is not a JSON Patch")?;
        json_patch::patch(&mut stored, &patch).context("the patch does not fit the pod")?;
        patched = Some(Review::of_pod(&review.namespace, &stored.to_string())?);
    }
    let mut denials = mutated.denials;
    for found in finder.decide(Webhook::Validate, patched.as_ref().unwrap_or(review)).await.denials {
        // Why a slot was not filled in says more than that it is empty.
        if !denials.iter().any(|known| known.slot == found.slot) {
            denials.push(found);
        }
    }
    Ok(Admission { stored, denials })
}
