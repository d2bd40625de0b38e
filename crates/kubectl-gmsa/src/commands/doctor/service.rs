//! The Service of the webhook: its endpoints, and one pod behind it.

use std::collections::BTreeSet;

use futures::future::join_all;
use k8s_openapi::api::{admissionregistration::v1::ServiceReference, discovery::v1::Endpoint};

use super::{
    install::{broker_of, services},
    replica::{self, SERVICE},
};
use crate::shared::{
    installer::Installer,
    kinds::Kind,
    rules,
    unread::Read,
    walk::workload::ClusterWorkload,
    webhook::{endpoints, installer, is_ready, pod_behind, reviewing},
    world::World,
};
use gmsa_core::diagnostic::{Check, Diagnostic, Severity};

/// The checks of each Service of a webhook, and of the broker's.
pub(super) async fn checks(world: &World) -> Read<Vec<Check>> {
    let reviewing = reviewing(world.webhooks().await?).into_iter();
    let urls: BTreeSet<&str> = reviewing.filter_map(|found| found.webhook.client_config.url.as_deref()).collect();
    let outside =
        urls.iter().map(|url| Check::breach(SERVICE, &rules::WEBHOOK_URL, format!("the webhook is called at {url:?}")));
    let (installer, services) = (installer(world).await, services(world).await?);
    let of_webhook = join_all(services.into_iter().map(|service| of_service(world, service, installer.as_ref()))).await;
    let mut checks: Vec<Check> = outside.chain(of_webhook.into_iter().flatten()).collect();
    if let Some(broker) = broker_of(world).await {
        // The chart gives its Deployment the same name.
        let ServiceReference { namespace, name, .. } = &broker;
        let deployment = ClusterWorkload::find(world, Kind::Deployment, namespace, name).await.ok().flatten();
        let installer = deployment.map(|found| Installer::of(&found.metadata));
        checks.extend(of_service(world, &broker, installer.as_ref()).await);
    }
    Ok(checks)
}

async fn of_service(world: &World, service: &ServiceReference, installer: Option<&Installer>) -> Vec<Check> {
    let ServiceReference { namespace, name, .. } = service;
    let endpoints = match endpoints(world, service).await {
        Ok(endpoints) => endpoints,
        Err(unread) => return vec![unread.check(SERVICE)],
    };
    let ready: Vec<&Endpoint> = endpoints.iter().filter(|endpoint| is_ready(endpoint)).collect();
    let count = format!("{namespace}/{name} has {} of {} endpoints ready", ready.len(), endpoints.len());
    let mut checks = vec![match ready.len() {
        0 => {
            let fix = format!("`kubectl describe pods -n {namespace}`.");
            Check::found(SERVICE, Diagnostic::new(&rules::ENDPOINTS, count).with_fix(fix))
        }
        1 => Check::found(SERVICE, Diagnostic::new(&rules::ENDPOINTS, count).with_severity(Severity::Warning)),
        _ => Check::pass(SERVICE, count),
    }];
    match pod_behind(world, service).await {
        Ok(Some(pod)) => checks.extend(replica::checks(world, &pod, installer).await),
        Ok(None) => {}
        Err(unread) => checks.push(unread.check(SERVICE)),
    }
    checks
}
