//! Sends one pod through both webhooks, the mutating one first, as the API server does.

use anyhow::Context as _;
use serde_json::{Value, json};

use super::facts::FactFinder;
use gmsa_core::admission::{Denial, Plan, Review, Verdict, Webhook};

pub(super) struct Admission {
    /// The pod as the mutating webhook leaves it.
    pub stored: Value,
    /// The denial, if one of the webhooks refuses the pod.
    pub denial: Option<Denial>,
}

/// The review of a pod that is created.
pub(super) fn review(namespace: &str, pod: &Value, webhook: Webhook) -> anyhow::Result<Review> {
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
    Review::parse(review.to_string().as_bytes(), webhook).context("the API server would refuse the pod")
}

pub(super) async fn admit(namespace: &str, pod: Value, finder: &mut FactFinder) -> anyhow::Result<Admission> {
    let mut stored = pod;
    for webhook in [Webhook::Mutate { random_hostname: false }, Webhook::Validate] {
        let review = review(namespace, &stored, webhook)?;
        let facts = finder.facts(&Plan::new(webhook, &review).needs()).await;
        match Plan::new(webhook, &review).decide(&facts).verdict {
            Verdict::Denied(denial) | Verdict::WouldDeny { denial, .. } => {
                return Ok(Admission { stored, denial: Some(denial) });
            }
            Verdict::Allowed(None) => {}
            Verdict::Allowed(Some(patch)) => {
                let patch: json_patch::Patch =
                    serde_json::from_slice(patch.as_bytes()).context("the patch is not a JSON Patch")?;
                json_patch::patch(&mut stored, &patch).context("the patch does not fit the pod")?;
            }
        }
    }
    Ok(Admission { stored, denial: None })
}
