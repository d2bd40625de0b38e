//! The probe of an installation: pods that a webhook must refuse, which the API server creates as dry runs.
//!
//! Invariants: nothing is left behind; each pod that must be refused is refused by one webhook alone, so the answer shows whether that
//! one is called. The pods meet the Pod Security Standard `restricted`, which is enforced before validating webhooks are called.

use std::time::Duration;

use http::{Request, header::WARNING};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::apiserver::{ApiServer, CallError, CallKind, with_object};
use gmsa_core::admission::Webhook;

/// A credential spec that does not exist.
const SPEC: &str = "gmsa-webhook-test-does-not-exist";

/// How long one dry run may take: longer than an API server waits for a webhook, which is 30 s at most.
const DRY_RUN_TIMEOUT: Duration = Duration::from_secs(35);

/// A pod that no webhook for GMSA has anything to say about.
pub fn without_gmsa() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "gmsa-webhook-test-"},
        "spec": {
            // For Windows pods, `restricted` requires only `runAsNonRoot`:
            // https://kubernetes.io/docs/concepts/security/pod-security-standards/#os-specific-policy-controls
            "os": {"name": "windows"},
            "securityContext": {"runAsNonRoot": true},
            "automountServiceAccountToken": false,
            "containers": [{"name": "test", "image": "test.invalid/none"}],
            "initContainers": [{"name": "init", "image": "test.invalid/none"}]
        }
    })
}

/// A slot that the Go webhook ignores, so a denial is from this one where both are installed.
pub const INIT_CONTAINER: &str = "/spec/initContainers/0";

/// A pod whose slot (`/spec`, `/spec/containers/0`) names the credential spec, which `/mutate` must refuse.
pub fn naming(slot: &str) -> Value {
    with_options(slot, json!({"gmsaCredentialSpecName": SPEC}))
}

/// A pod whose slot also carries contents: `/mutate` has nothing to fill in, and `/validate` must refuse it.
pub fn carrying(slot: &str) -> Value {
    with_options(slot, json!({"gmsaCredentialSpecName": SPEC, "gmsaCredentialSpec": "{}"}))
}

fn with_options(slot: &str, options: Value) -> Value {
    let mut pod = without_gmsa();
    if let Some(Value::Object(slot)) = pod.pointer_mut(slot) {
        let context = slot.entry("securityContext").or_insert_with(|| json!({}));
        if let Value::Object(context) = context {
            context.insert("windowsOptions".to_owned(), options);
        }
    }
    pod
}

/// Whether `text` contains the denial with which `webhook` refuses a pod of the probe. A failed call does not count as a denial.
pub fn is_denial(webhook: Webhook, text: &str) -> bool {
    let missing = text.contains(&format!("cred spec {SPEC} does not exist"));
    // Which of these it is depends on the rights of the namespace's default service account.
    let others = ["is not authorized to `use` GMSA cred spec", "but does not carry its contents"];
    missing || (webhook == Webhook::Validate && text.contains(SPEC) && others.iter().any(|other| text.contains(other)))
}

/// The policy that refused a pod, or warned of it, by the words that the API server puts around the policy's own.
fn policy(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("ValidatingAdmissionPolicy '")?;
    rest.split_once('\'').map(|(name, _)| name)
}

/// The policy that refused a pod of the probe as the guard of the chart does: before any validating webhook was asked.
fn guard(webhook: Webhook, message: &str) -> Option<&str> {
    let refuses = is_denial(webhook, message) || message.contains("a GMSA cred spec name has no contents");
    policy(message).filter(|_| refuses)
}

/// The API server's answer to a pod.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DryRun {
    /// It would be created.
    Admitted,
    /// It would be created, and the webhook's denial came as a warning.
    Warned,
    /// The webhook refused it with its denial.
    Refused,
    /// A policy of this name refused it, before any validating webhook was asked: the guard.
    Guarded(String),
}

/// Has the API server create `pod` in `namespace` as a dry run, which `webhook` should refuse. `None` where the namespace does not make
/// a URL.
///
/// # Errors
/// Any other answer, or none.
pub async fn ask(api: &ApiServer, namespace: &str, pod: &Value, webhook: Webhook) -> Option<Result<DryRun, CallError>> {
    let request = with_object(Request::post(format!("/api/v1/namespaces/{namespace}/pods?dryRun=All")), pod).ok()?;
    Some(match api.exchange(CallKind::Background, None, Ok(request), Instant::now() + DRY_RUN_TIMEOUT).await {
        Ok(answer) => {
            let warnings = answer.headers().get_all(WARNING).iter();
            let warned = warnings
                .map(|text| String::from_utf8_lossy(text.as_bytes()))
                .any(|text| is_denial(webhook, &text) && policy(&text).is_none());
            Ok(if warned { DryRun::Warned } else { DryRun::Admitted })
        }
        Err(error) => match error.status().map(|status| (guard(webhook, &status.message), &*status.message)) {
            Some((Some(policy), _)) => Ok(DryRun::Guarded(policy.to_owned())),
            Some((None, message)) if is_denial(webhook, message) => Ok(DryRun::Refused),
            _ => Err(error),
        },
    })
}
