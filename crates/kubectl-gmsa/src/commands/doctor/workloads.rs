//! The webhook, and then all workloads that use GMSA: each that lacks pods, or whose pods do not run, with the first cause.

use k8s_openapi::api::admissionregistration::v1::ServiceReference;
use serde_json::Value;

use super::parts::{Judged, Parts};
use crate::shared::{
    installer::Installer,
    output::first_five,
    rules::{self, Names},
    start::{cause, workload::Workload},
    unread::{Remedy, because},
};
use gmsa_core::diagnostic::{Check, Diagnostic};

pub(super) const WEBHOOK: &str = "webhook";
pub(super) const WORKLOADS: &str = "workloads";

/// The most workloads that have a line of their own.
const MOST: usize = 100;

/// A check for each workload that has a problem, or one for all.
pub(super) fn check(parts: &Parts) -> Judged<'_> {
    // Without the pods, nothing is known of their number.
    parts.pods.as_ref()?;
    let mut checks = Vec::new();
    let (workloads, unread) = (&parts.workloads.known, &parts.workloads.unread);
    if let Some((_, first)) = unread.first() {
        let kinds = first_five(unread.iter().map(|(kind, _)| kind.as_str()));
        let Check { about, result } = first.check(WORKLOADS);
        let result = result.map_err(|found| Diagnostic { object: kinds, ..found });
        checks.push(Check { about, result });
    }
    checks.extend(parts.events.lacking());
    // A pod that is said to run may be on a node that is gone.
    let lacks_nodes = parts.windows.as_ref().err().or(parts.nodes.unread());
    let have_pods = workloads.iter().any(|workload| workload.pods().next().is_some());
    checks.extend(lacks_nodes.filter(|_| have_pods).map(|unread| unread.check(WORKLOADS)));
    let unparsed = workloads.iter().filter_map(Workload::unparsed);
    checks.extend(unparsed.map(|cause| because(WORKLOADS, &cause, Remedy::newer())));
    let mut broken: Vec<Diagnostic> = Vec::new();
    // What makes the pods of a Deployment and of a CronJob is another kind: without it nothing is known of them.
    let is_known =
        |workload: &&Workload| workload.kind.below().is_none_or(|below| unread.iter().all(|(kind, _)| *kind != below));
    for workload in workloads.iter().filter(is_known).filter(|workload| workload.pod().is_some()) {
        let found = cause::of(workload, &parts.nodes, &parts.events);
        broken.extend(found.map(|found| Diagnostic { object: workload.title(), ..found }));
    }
    // The pods that run keep what they have, so this shows in none of them.
    if let Ok(specs) = &parts.specs {
        let exists =
            |name: &str| specs.iter().any(|spec| spec.pointer("/metadata/name").and_then(Value::as_str) == Some(name));
        let of_known = workloads.iter().filter(|workload| broken.iter().all(|found| found.object != workload.title()));
        let missing = of_known.filter_map(|workload| {
            let spec = workload.credential_specs().into_iter().find(|name| !exists(name))?;
            let text = format!("cred spec {spec} does not exist: pods that run keep theirs, and new ones are refused");
            let names = Names { spec: Some(&spec), ..Names::default() };
            Some(Diagnostic { object: workload.title(), ..rules::found(&rules::SPEC_MISSING, text, &names) })
        });
        let missing: Vec<Diagnostic> = missing.collect();
        broken.extend(missing);
    }
    let more = broken.len().saturating_sub(MOST);
    broken.truncate(MOST);
    checks.extend(broken.into_iter().map(|found| Check::found(WORKLOADS, found)));
    if more > 0 {
        checks.push(Check::breach(
            WORKLOADS,
            &rules::PODS_MISSING,
            format!("{more} more workloads lack pods, or have pods that do not run"),
        ));
    }
    if checks.is_empty() {
        checks.push(Check::pass(
            WORKLOADS,
            match workloads.len() {
                0 => "no pod template uses GMSA yet".to_owned(),
                1 => "1 uses GMSA, and has its pods".to_owned(),
                count => format!("{count} use GMSA, and have their pods"),
            },
        ));
    }
    Ok(checks)
}

/// A check of each Deployment that a Service of a webhook belongs to.
pub(super) fn of_webhook(parts: &Parts) -> Judged<'_> {
    parts.webhooks.as_ref()?;
    let mut checks = Vec::new();
    for service in &parts.services {
        let Some(own) = &service.own else { continue };
        if let Ok(None) = own.namespace {
            checks.push(gone(&service.named, parts.installer.as_ref()));
            continue;
        }
        let workload = match &own.workload {
            Ok(Some(workload)) => workload,
            Ok(None) => continue,
            Err(unread) => {
                checks.push(unread.check(WEBHOOK));
                continue;
            }
        };
        if let Some(found) = cause::of(workload, &parts.nodes, &own.events) {
            checks.extend(own.events.lacking());
            checks.push(Check::found(WEBHOOK, Diagnostic { object: workload.title(), ..found }));
        } else {
            let text =
                format!("{} has {} of {} pods, and they run", workload.title(), workload.has(), workload.wanted().0);
            checks.push(Check::pass(WEBHOOK, text));
        }
    }
    Ok(checks)
}

/// The namespace is deleted, and the configurations, which are in none, remain.
fn gone(service: &ServiceReference, installer: Option<&Installer>) -> Check {
    let namespace = service.namespace.as_str();
    let text =
        format!("namespace {namespace}, in which the webhook was, does not exist: every pod that uses GMSA is refused");
    let names = Names { namespace: Some(namespace), installer, ..Names::default() };
    if installer.is_none() {
        return Check::breach(WEBHOOK, &rules::WEBHOOK_GONE, text);
    }
    Check::found(WEBHOOK, rules::found(&rules::WEBHOOK_GONE, text, &names))
}
