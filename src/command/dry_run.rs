//! `gmsa-webhook test`: whether an API server asks the webhook, found out by dry runs that leave nothing behind.
//!
//! Pods that name a credential spec which does not exist must be refused with the webhook's own message, for each kind of
//! slot; a pod without GMSA must pass. If denials are not enforced, the message is a warning instead of a refusal.

use std::{fmt::Write as _, process::ExitCode, time::Duration};

use anyhow::Context as _;
use gmsa_cluster::apiserver::{ApiServer, CallKind};
use gmsa_core::admission::Enforcement;
use http::{
    Request,
    header::{CONTENT_TYPE, WARNING},
};
use serde_json::{Value, json};
use tokio::time::Instant;

/// A credential spec that does not exist.
const SPEC: &str = "gmsa-webhook-test-does-not-exist";

/// The webhook's denial.
const REFUSAL: &str = "cred spec gmsa-webhook-test-does-not-exist does not exist";

/// How long one dry run may take: longer than an API server waits for a webhook.
const PATIENCE: Duration = Duration::from_secs(35);

/// Sends the pods, and reports one line for each.
///
/// # Errors
/// Where the API server cannot be called, or this account may not create pods.
pub async fn run(api: &ApiServer, namespace: &str, enforcement: Enforcement) -> anyhow::Result<(String, ExitCode)> {
    let mut report = String::new();
    let mut code = ExitCode::SUCCESS;
    for (what, pod, refused) in pods() {
        let warns = enforcement == Enforcement::Warn;
        let fault = match (create(api, namespace, &pod).await?, refused) {
            (Answer::Admitted { .. }, false) => None,
            (Answer::Admitted { warned: true }, true) if warns => None,
            (Answer::Refused(404, message), true) if message.ends_with(REFUSAL) && !warns => None,
            (Answer::Admitted { .. }, true) => Some("was admitted: the API server did not ask the webhook".to_owned()),
            (Answer::Refused(status, message), _) => Some(format!("was refused with {status}: {message}")),
        };
        match fault {
            None => writeln!(report, "pass  {what}")?,
            Some(fault) => {
                code = ExitCode::FAILURE;
                writeln!(report, "FAIL  {what} {fault}")?;
            }
        }
    }
    Ok((report, code))
}

/// The pods, and whether each must be refused.
fn pods() -> [(&'static str, Value, bool); 4] {
    let pod = |holder: &str| {
        let mut pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"generateName": "gmsa-webhook-test-"},
            "spec": {
                "os": {"name": "windows"},
                // What the restricted Pod Security Standard asks of a Windows pod.
                "securityContext": {"runAsNonRoot": true},
                "automountServiceAccountToken": false,
                "containers": [{"name": "test", "image": "test.invalid/none"}],
                "initContainers": [{"name": "init", "image": "test.invalid/none"}]
            }
        });
        if let Some(holder) = pod.pointer_mut(holder) {
            let context = &mut holder["securityContext"];
            context["windowsOptions"] = json!({"gmsaCredentialSpecName": SPEC});
        }
        pod
    };
    [
        ("a pod without GMSA", pod("/none"), false),
        ("a pod that names a credential spec", pod("/spec"), true),
        ("a container that names a credential spec", pod("/spec/containers/0"), true),
        ("an init container that names a credential spec", pod("/spec/initContainers/0"), true),
    ]
}

/// The API server's answer to a pod.
enum Answer {
    /// It would be created; `warned` where the webhook's denial came as a warning.
    Admitted { warned: bool },
    /// The code and the message.
    Refused(u16, String),
}

/// Creates a pod as a dry run.
async fn create(api: &ApiServer, namespace: &str, pod: &Value) -> anyhow::Result<Answer> {
    let request = Request::post(format!("/api/v1/namespaces/{namespace}/pods?dryRun=All"))
        .header(CONTENT_TYPE, "application/json")
        .body(serde_json::to_vec(pod)?)
        .context("the namespace does not make a URL")?;
    let error = match api.exchange(CallKind::Background, None, request, Instant::now() + PATIENCE).await {
        Ok(answer) => {
            let mut warnings = answer.headers().get_all(WARNING).iter().filter_map(|warning| warning.to_str().ok());
            return Ok(Answer::Admitted { warned: warnings.any(|warning| warning.contains(REFUSAL)) });
        }
        Err(error) => error,
    };
    match (error.code(), error.status()) {
        (Some(code), Some(status)) if !status.message.contains("cannot create resource \"pods\"") => {
            Ok(Answer::Refused(code, status.message.clone()))
        }
        _ => Err(error).context("cannot ask the API server"),
    }
}
