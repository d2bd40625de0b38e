//! The Service of the webhook: its endpoints, and one of the pods behind it.

use k8s_openapi::api::{admissionregistration::v1::WebhookClientConfig, core::v1::Pod, discovery::v1::Endpoint};

use super::{found, not_checked, replica};
use crate::shared::{
    connection::Cluster,
    rules,
    webhook::{endpoints, is_ready},
};
use gmsa_core::{
    credspec::is_dns_label,
    diagnostic::{Check, Diagnostic, Severity},
};

pub(super) const SERVICE: &str = "service";

/// The checks of the Service that a webhook is called by.
pub(super) async fn checks(cluster: &Cluster, client: &WebhookClientConfig) -> Vec<Check> {
    let Some(service) = &client.service else {
        let url = client.url.as_deref().unwrap_or("");
        return vec![found(SERVICE, &rules::WEBHOOK_URL, format!("the webhook is called at {url:?}"))];
    };
    let (namespace, name) = (&service.namespace, &service.name);
    let endpoints = match endpoints(cluster, service).await {
        Ok(endpoints) => endpoints,
        Err(error) => return vec![not_checked(SERVICE, &error)],
    };
    let ready: Vec<&Endpoint> = endpoints.iter().filter(|endpoint| is_ready(endpoint)).collect();
    let count = format!("{namespace}/{name} has {} of {} endpoints ready", ready.len(), endpoints.len());
    let mut checks = vec![match ready.len() {
        0 => {
            // The API server does not check what a configuration names.
            let fix = is_dns_label(namespace).then(|| format!("kubectl describe pods -n {namespace}"));
            Check::found(SERVICE, Diagnostic { fix, ..Diagnostic::new(&rules::ENDPOINTS, count) })
        }
        1 => Check::found(SERVICE, Diagnostic::new(&rules::ENDPOINTS, count).with_severity(Severity::Warning)),
        _ => Check::pass(SERVICE, count),
    }];
    // Where none is ready, one that is not may show why.
    let mut pods =
        ready.into_iter().chain(&endpoints).filter_map(|endpoint| endpoint.target_ref.as_ref()?.name.as_deref());
    if let Some(name) = pods.next() {
        match cluster.get::<Pod>(&format!("/api/v1/namespaces/{namespace}/pods/{name}")).await {
            Ok(pod) => replica::add_checks(cluster, namespace, name, &pod, &mut checks).await,
            Err(error) => checks.push(not_checked(SERVICE, &error)),
        }
    }
    checks
}
