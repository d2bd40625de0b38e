//! `gmsa-webhook test`: whether an API server asks the webhook, found out by dry runs that leave nothing behind.
//!
//! Pods that name a credential spec which does not exist must be refused with the webhook's own message, for each kind of
//! slot; a pod without GMSA must pass. If denials are not enforced, the message is a warning instead of a refusal.

use std::{fmt::Write as _, time::Duration};

use anyhow::Context as _;
use gmsa_cluster::apiserver::ApiServer;
use gmsa_core::admission::Enforcement;
use http::{
    Request,
    header::{CONTENT_TYPE, WARNING},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Outcome;

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
pub async fn run(api: &ApiServer, namespace: &str, enforcement: Enforcement) -> anyhow::Result<(String, Outcome)> {
    let mut report = String::new();
    let mut outcome = Outcome::Clean;
    for (what, pod, refused) in pods() {
        let warns = enforcement == Enforcement::Warn;
        let fault = match (create(api, namespace, &pod).await?, refused) {
            (Answer::Admitted { .. }, false) => None,
            (Answer::Admitted { warned: true }, true) if warns => None,
            (Answer::Refused(404, message), true) if message.ends_with(REFUSAL) && !warns => None,
            (Answer::Admitted { .. }, true) => Some("was admitted: the API server did not ask the webhook".to_owned()),
            (Answer::Refused(code, message), _) => Some(format!("was refused with {code}: {message}")),
        };
        match fault {
            None => writeln!(report, "pass  {what}")?,
            Some(fault) => {
                outcome = Outcome::Findings;
                writeln!(report, "FAIL  {what} {fault}")?;
            }
        }
    }
    Ok((report, outcome))
}

/// The pods, and whether each must be refused.
fn pods() -> [(&'static str, Value, bool); 4] {
    let options = json!({"windowsOptions": {"gmsaCredentialSpecName": SPEC}});
    let pod = |slot: &str| {
        let mut container = json!({"name": "test", "image": "test.invalid/none"});
        let mut init = json!({"name": "init", "image": "test.invalid/none"});
        // What the restricted Pod Security Standard asks of a Windows pod.
        let mut context = json!({"runAsNonRoot": true});
        let holder = match slot {
            "pod" => Some(&mut context),
            "container" => Some(&mut container),
            "init" => Some(&mut init),
            _ => None,
        };
        if let Some(Value::Object(holder)) = holder {
            if slot == "pod" {
                holder.extend(options.as_object().cloned().unwrap_or_default());
            } else {
                holder.insert("securityContext".to_owned(), options.clone());
            }
        }
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"generateName": "gmsa-webhook-test-"},
            "spec": {
                "os": {"name": "windows"},
                "securityContext": context,
                "automountServiceAccountToken": false,
                "containers": [container],
                "initContainers": [init]
            }
        })
    };
    [
        ("a pod without GMSA", pod("none"), false),
        ("a pod that names a credential spec", pod("pod"), true),
        ("a container that names a credential spec", pod("container"), true),
        ("an init container that names a credential spec", pod("init"), true),
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
    let error = match api.exchange(request, Instant::now() + PATIENCE).await {
        Ok(answer) => {
            let mut warnings = answer.headers().get_all(WARNING).iter().filter_map(|warning| warning.to_str().ok());
            return Ok(Answer::Admitted { warned: warnings.any(|warning| warning.contains(REFUSAL)) });
        }
        Err(error) => error,
    };
    match error.status().map(|status| status.message.clone()) {
        Some(message) if !message.contains("cannot create resource \"pods\"") => {
            Ok(Answer::Refused(error.code().unwrap_or_default(), message))
        }
        _ => Err(error).context("cannot ask the API server"),
    }
}
