//! The Service of the webhook: its endpoints, and one of the pods behind it.

use k8s_openapi::{api::discovery::v1::Endpoint, jiff::Timestamp};

use super::{
    found,
    parts::{Judged, Parts, Service},
};
use crate::shared::{rules, webhook::is_ready};
use gmsa_core::{
    credspec::is_dns_label,
    diagnostic::{Check, Diagnostic, Severity},
};

pub(super) use super::replica::SERVICE;

/// The checks of each Service that a webhook is called by.
pub(super) fn checks(parts: &Parts) -> Judged<'_> {
    parts.webhooks.as_ref()?;
    Ok(parts.services.iter().flat_map(|service| of_service(service, parts.taken)).collect())
}

fn of_service(Service { client, endpoints, replica, .. }: &Service, now: Timestamp) -> Vec<Check> {
    let Some(service) = &client.service else {
        let url = client.url.as_deref().unwrap_or("");
        return vec![found(SERVICE, &rules::WEBHOOK_URL, format!("the webhook is called at {url:?}"))];
    };
    let (namespace, name) = (&service.namespace, &service.name);
    let endpoints = match endpoints {
        Ok(endpoints) => endpoints,
        Err(unread) => return vec![unread.check(SERVICE)],
    };
    let ready: Vec<&Endpoint> = endpoints.iter().filter(|endpoint| is_ready(endpoint)).collect();
    let count = format!("{namespace}/{name} has {} of {} endpoints ready", ready.len(), endpoints.len());
    let mut checks = vec![match ready.len() {
        0 => {
            // The API server does not check what a configuration names.
            let fix = is_dns_label(namespace).then(|| format!("`kubectl describe pods -n {namespace}`."));
            Check::found(SERVICE, Diagnostic { fix, ..Diagnostic::new(&rules::ENDPOINTS, count) })
        }
        1 => Check::found(SERVICE, Diagnostic::new(&rules::ENDPOINTS, count).with_severity(Severity::Warning)),
        _ => Check::pass(SERVICE, count),
    }];
    match replica {
        Some((name, Ok(replica))) => replica.add_checks(namespace, name, now, &mut checks),
        Some((_, Err(unread))) => checks.push(unread.check(SERVICE)),
        None => {}
    }
    checks
}
