//! Sends one pod through both webhooks, the mutating one first, as the API server does.

use anyhow::Context as _;
use serde_json::Value;

use super::{FactFinder, Reviewed, review_of};
use gmsa_core::admission::{Denial, Review, SlotDenial, Webhook};

pub struct Admission {
    /// The pod as the mutating webhook leaves it.
    pub stored: Value,
    /// Every denial, at most one for each slot.
    pub denials: Vec<SlotDenial>,
}

/// Admits the pod of `review`, which is `pod`, by the webhooks that review it.
pub async fn admit(
    review: &Review,
    pod: &Value,
    reviewed: &Reviewed,
    finder: &mut FactFinder,
) -> anyhow::Result<Admission> {
    let (mut stored, mut denials, mut patched) = (pod.clone(), Vec::new(), None);
    if reviewed.mutates() {
        let mutated = finder.decide(Webhook::Mutate, review).await;
        denials = mutated.denials;
        if let Some(patch) = mutated.patch {
            let patch: json_patch::Patch =
                serde_json::from_slice(patch.as_bytes()).context("the patch is not a JSON Patch")?;
            json_patch::patch(&mut stored, &patch).context("the patch does not fit the pod")?;
            patched = Some(review_of(&review.namespace, &stored)?);
        }
    }
    if reviewed.validates() {
        for found in finder.decide(Webhook::Validate, patched.as_ref().unwrap_or(review)).await.denials {
            match denials.iter_mut().find(|known| known.slot == found.slot) {
                None => denials.push(found),
                // A refusal says more than what could not be checked.
                Some(known) if is_unchecked(&known.denial) && matches!(found.denial, Denial::NotAuthorized { .. }) => {
                    *known = found;
                }
                // Why a slot was not filled in says more than that it is empty.
                Some(_) => {}
            }
        }
    }
    Ok(Admission { stored, denials })
}

/// Whether a look-up failed: the webhook, which makes it as another user and from another place, may succeed.
pub fn is_unchecked(denial: &Denial) -> bool {
    matches!(denial, Denial::SpecUnreadable { .. } | Denial::AuthorizationFailed { .. })
}
