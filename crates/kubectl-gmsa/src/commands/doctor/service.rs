//! The Service of the webhook: its endpoints, its pods, and their permissions.

use k8s_openapi::api::{
    admissionregistration::v1::WebhookClientConfig,
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
    core::v1::Pod,
    discovery::v1::Endpoint,
};

use super::{certificate, found, not_checked};
use crate::shared::{
    connection::Cluster,
    webhook::{endpoints, image, is_ready, metrics},
};
use gmsa_core::{
    admission::Subject,
    credspec::{GROUP, PLURAL},
    diagnostic::{Check, Diagnostic, Severity, rules},
};

const SERVICE: &str = "service";
const PERMISSIONS: &str = "permissions";

/// Adds the checks of the Service that a webhook is called by.
pub(super) async fn add_checks(cluster: &Cluster, client: &WebhookClientConfig, checks: &mut Vec<Check>) {
    let Some(service) = &client.service else {
        let url = client.url.as_deref().unwrap_or("");
        return checks.push(found(SERVICE, &rules::WEBHOOK_URL, format!("the webhook is called at {url:?}")));
    };
    let (namespace, name) = (&service.namespace, &service.name);
    let endpoints = match endpoints(cluster, service).await {
        Ok(endpoints) => endpoints,
        Err(error) => return checks.push(not_checked(SERVICE, &error)),
    };
    let ready: Vec<&Endpoint> = endpoints.iter().filter(|endpoint| is_ready(endpoint)).collect();
    let count = format!("{namespace}/{name} has {} of {} endpoints ready", ready.len(), endpoints.len());
    checks.push(match ready.len() {
        0 => {
            let fix = format!("kubectl describe pods -n {namespace}");
            Check::found(SERVICE, Diagnostic::new(&rules::ENDPOINTS, count).with_fix(fix))
        }
        1 => Check::found(SERVICE, Diagnostic::new(&rules::ENDPOINTS, count).with_severity(Severity::Warning)),
        _ => Check::pass(SERVICE, count),
    });
    if let Some(name) = ready.iter().find_map(|endpoint| endpoint.target_ref.as_ref()?.name.as_deref()) {
        match cluster.get::<Pod>(&format!("/api/v1/namespaces/{namespace}/pods/{name}")).await {
            Ok(pod) => replica(cluster, namespace, name, &pod, checks).await,
            Err(error) => checks.push(not_checked(SERVICE, &error)),
        }
    }
}

/// Adds the checks of one pod of the webhook.
async fn replica(cluster: &Cluster, namespace: &str, name: &str, pod: &Pod, checks: &mut Vec<Check>) {
    // Whether the certificate is trusted, the dry run shows.
    checks.extend(metrics(cluster, namespace, name, pod).await.and_then(|metrics| certificate::served(name, &metrics)));
    let Some(spec) = &pod.spec else { return };
    checks.push(Check::pass(SERVICE, format!("runs {}", image(pod).unwrap_or("no image"))));
    let account = spec.service_account_name.as_deref().unwrap_or("default");
    checks.push(permissions(cluster, namespace, account).await);
}

/// Whether the webhook's own service account has the permissions that it needs.
async fn permissions(cluster: &Cluster, namespace: &str, account: &str) -> Check {
    let subject = Subject { namespace: namespace.into(), service_account: account.into() };
    let mut missing = Vec::new();
    let needed = [
        ("get", GROUP, PLURAL),
        ("list", GROUP, PLURAL),
        ("watch", GROUP, PLURAL),
        ("create", "authorization.k8s.io", "localsubjectaccessreviews"),
    ];
    for (verb, group, resource) in needed {
        match may(cluster, &subject, verb, group, resource).await {
            Ok(true) => {}
            Ok(false) => missing.push((verb, resource)),
            Err(error) => return not_checked(PERMISSIONS, &error),
        }
    }
    if missing.is_empty() {
        return Check::pass(PERMISSIONS, format!("{namespace}:{account} has the permissions that it needs"));
    }
    let names: Vec<String> = missing.iter().map(|(verb, resource)| format!("{verb} {resource}")).collect();
    let text = format!("{namespace}:{account} may not {}", names.join(", "));
    let diagnostic = if missing.iter().all(|(verb, _)| matches!(*verb, "list" | "watch")) {
        let text = format!("{text}: each pod costs a read");
        Diagnostic::new(&rules::WEBHOOK_PERMISSIONS, text).with_severity(Severity::Warning)
    } else {
        Diagnostic::new(&rules::WEBHOOK_PERMISSIONS, text)
    };
    Check::found(PERMISSIONS, diagnostic)
}

async fn may(cluster: &Cluster, subject: &Subject, verb: &str, group: &str, resource: &str) -> anyhow::Result<bool> {
    let attributes = ResourceAttributes {
        verb: Some(verb.to_owned()),
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SubjectAccessReviewSpec {
        user: Some(subject.user()),
        groups: Some(subject.groups().into()),
        resource_attributes: Some(attributes),
        ..SubjectAccessReviewSpec::default()
    };
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let answer: SubjectAccessReview =
        cluster.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}
