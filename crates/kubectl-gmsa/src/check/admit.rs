//! Sends one pod through both webhooks, the mutating one first, as the API server does.

use serde_json::{Value, json};

use super::facts::FactFinder;
use gmsa_core::admission::{Denial, Plan, Review, Verdict, Webhook};

pub(super) struct Admission {
    /// The pod as the mutating webhook leaves it.
    pub stored: Value,
    /// The denial, if one of the webhooks refuses the pod.
    pub denial: Option<Denial>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum AdmissionError {
    #[error("the API server would refuse the pod")]
    NotAPod(#[source] gmsa_core::admission::review::ParseError),
    #[error("the patch does not fit the pod")]
    Patch(#[source] json_patch::PatchError),
    #[error("the patch is not a JSON Patch")]
    NotAPatch(#[source] serde_json::Error),
}

/// The review of a pod that is created.
pub(super) fn review(namespace: &str, pod: &Value) -> Vec<u8> {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "kubectl-gmsa",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "operation": "CREATE",
            "namespace": namespace,
            "object": pod,
        },
    });
    review.to_string().into_bytes()
}

pub(super) async fn admit(namespace: &str, pod: Value, finder: &mut FactFinder) -> Result<Admission, AdmissionError> {
    let mut stored = pod;
    for webhook in [Webhook::Mutate { random_hostname: false }, Webhook::Validate] {
        let body = review(namespace, &stored);
        let review = Review::parse(&body, webhook).map_err(AdmissionError::NotAPod)?;
        let facts = finder.facts(&Plan::new(webhook, &review).needs()).await;
        match Plan::new(webhook, &review).decide(&facts).verdict {
            Verdict::Denied(denial) | Verdict::WouldDeny { denial, .. } => {
                return Ok(Admission { stored, denial: Some(denial) });
            }
            Verdict::Allowed(None) => {}
            Verdict::Allowed(Some(patch)) => {
                let patch: json_patch::Patch =
                    serde_json::from_slice(patch.as_bytes()).map_err(AdmissionError::NotAPatch)?;
                json_patch::patch(&mut stored, &patch).map_err(AdmissionError::Patch)?;
            }
        }
    }
    Ok(Admission { stored, denial: None })
}
