//! The pods of the webhook itself: the same walk as that of any workload, before what follows from them.

use k8s_openapi::api::admissionregistration::v1::ServiceReference;

use super::{
    found,
    parts::{Judged, Parts},
};
use crate::shared::{
    installer::Installer,
    rules::{self, Names},
    start::{cause, events::Events},
};
use gmsa_core::diagnostic::{Check, Diagnostic};

pub(super) const WEBHOOK: &str = "webhook";

/// A check of each Deployment that a Service of a webhook belongs to.
pub(super) fn check(parts: &Parts) -> Judged<'_> {
    parts.webhooks.as_ref()?;
    let mut checks = Vec::new();
    for own in &parts.own {
        if let Ok(None) = own.namespace {
            checks.push(gone(&own.service, parts.installer.as_ref()));
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
        let (none, mut unread) = (Events::default(), None);
        let events = own.events.as_ref().unwrap_or_else(|error| {
            unread = Some(error);
            &none
        });
        if let Some(found) = cause::of(workload, &parts.nodes, events) {
            checks.extend(unread.map(|error| error.check("events")));
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
        return found(WEBHOOK, &rules::WEBHOOK_GONE, text);
    }
    Check::found(WEBHOOK, rules::found(&rules::WEBHOOK_GONE, text, &names))
}
