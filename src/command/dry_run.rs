//! `gmsa-webhook test`: whether an API server asks the webhook, found out by dry runs that leave nothing behind.
//!
//! A name of a credential spec which does not exist, on a pod, a container or an init container, must be refused by `/mutate` with the
//! webhook's own message, and contents of an init container by `/validate`; a pod without GMSA must pass. If denials are not enforced,
//! the message is a warning instead of a refusal.

use std::{fmt::Write as _, process::ExitCode};

use anyhow::Context as _;
use gmsa_cluster::{
    apiserver::ApiServer,
    probe::{self, DryRun},
};
use gmsa_core::admission::{Enforcement, Webhook};
use serde_json::Value;

use crate::config::TestArgs;

/// Sends the pods, and reports one line for each.
///
/// # Errors
/// Where the API server cannot be called, or this account may not create pods.
pub async fn run(args: TestArgs) -> anyhow::Result<(String, ExitCode)> {
    let api = ApiServer::from_environment().await.context("no cluster to test")?;
    let warns = args.enforcement == Enforcement::Warn;
    let mut report = String::new();
    let mut code = ExitCode::SUCCESS;
    for (what, pod, refuser) in pods() {
        let answer = probe::ask(&api, &args.namespace, &pod, refuser.unwrap_or(Webhook::Mutate)).await;
        let answer = match answer.context("the namespace does not make a URL")? {
            Ok(answer) => Ok(answer),
            Err(error) => match (error.code(), error.status()) {
                (Some(code), Some(status)) if !status.message.contains("cannot create resource \"pods\"") => {
                    Err(format!("was refused with {code}: {}", status.message))
                }
                _ => return Err(error).context("cannot ask the API server"),
            },
        };
        let fault = match (answer, refuser) {
            (Ok(DryRun::Admitted | DryRun::Warned), None) => None,
            (Ok(DryRun::Warned), Some(_)) if warns => None,
            // The guard has the same right to refuse what the pod brings; what it names must be filled in first.
            (Ok(DryRun::Refused), Some(_)) | (Ok(DryRun::Guarded(_)), Some(Webhook::Validate)) if !warns => None,
            (Ok(DryRun::Guarded(policy)), Some(_)) if !warns => {
                Some(format!("was refused by the policy {policy}: the API server did not ask the webhook"))
            }
            (Ok(DryRun::Admitted), Some(_)) => Some("was admitted: the API server did not ask the webhook".to_owned()),
            (Ok(DryRun::Warned), Some(_)) => Some("was admitted with a warning: denials are not enforced".to_owned()),
            (Ok(DryRun::Refused | DryRun::Guarded(_)), _) => Some("was refused: denials are enforced".to_owned()),
            (Err(refused), _) => Some(refused),
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

/// The pods, and the webhook that must refuse each.
fn pods() -> [(&'static str, Value, Option<Webhook>); 5] {
    [
        ("a pod without GMSA", probe::without_gmsa(), None),
        ("a pod that names a credential spec", probe::naming("/spec"), Some(Webhook::Mutate)),
        ("a container that names a credential spec", probe::naming("/spec/containers/0"), Some(Webhook::Mutate)),
        ("an init container that names a credential spec", probe::naming(probe::INIT_CONTAINER), Some(Webhook::Mutate)),
        ("a pod that brings contents of its own", probe::carrying(probe::INIT_CONTAINER), Some(Webhook::Validate)),
    ]
}
