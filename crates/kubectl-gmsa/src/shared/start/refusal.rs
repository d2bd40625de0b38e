//! The pods of a workload that the API server refuses.

use crate::shared::rules::{self, Names};
use gmsa_core::{admission::pod::Pod, diagnostic::Diagnostic};

use super::workload::Workload;

/// The finding about a workload whose pods are refused with this message. `count` says how many pods it has.
pub fn found(workload: &Workload, count: &str, message: &str) -> Diagnostic {
    let said = rules::said(message);
    let pod = Pod::from_json(&workload.template.to_string()).ok();
    let names = Names {
        namespace: Some(&workload.namespace),
        service_account: pod.as_ref().map(Pod::service_account),
        pod: pod.as_ref(),
        subject: Some(workload.subject()),
        ..Names::of_refusal(said)
    };
    rules::found(rules::refusal(said), format!("{count}: {said}"), &names)
}
