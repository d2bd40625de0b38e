//! The Service of the webhook: its endpoints, its pods, and their permissions.

use std::collections::BTreeSet;

use k8s_openapi::api::{
    admissionregistration::v1::{ServiceReference, WebhookClientConfig},
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
    core::v1::Pod,
    discovery::v1::{Endpoint, EndpointSlice},
};

use super::{certificate, found, not_checked};
use crate::connect::Cluster;
use gmsa_core::{
    admission::Subject,
    credspec::{GROUP, PLURAL},
    diagnostic::{Check, Diagnostic, Severity, rules},
};

const SERVICE: &str = "service";
const PERMISSIONS: &str = "permissions";

/// The chart's name for the port of `/metrics`.
const ADMIN: &str = "admin";

/// Adds the checks of the Service that a webhook is called by.
pub(super) async fn add_checks(cluster: &Cluster, client: &WebhookClientConfig, checks: &mut Vec<Check>) {
    let Some(service) = &client.service else {
        let url = client.url.as_deref().unwrap_or_default();
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

async fn endpoints(cluster: &Cluster, service: &ServiceReference) -> anyhow::Result<Vec<Endpoint>> {
    let path = format!(
        "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D{}",
        service.namespace, service.name
    );
    let slices: Vec<EndpointSlice> = cluster.list(&path).await?;
    Ok(slices.into_iter().flat_map(|slice| slice.endpoints).collect())
}

fn is_ready(endpoint: &Endpoint) -> bool {
    endpoint.conditions.as_ref().and_then(|is| is.ready) != Some(false)
}

/// The versions that the replicas run, sorted, each once: a rollout has two. For a replica whose metrics cannot
/// be read, it is the tag of its image.
pub(crate) async fn versions(cluster: &Cluster, service: &ServiceReference) -> anyhow::Result<BTreeSet<String>> {
    let endpoints = endpoints(cluster, service).await?;
    let mut found = BTreeSet::new();
    for endpoint in endpoints.iter().filter(|endpoint| is_ready(endpoint)) {
        let Some(name) = endpoint.target_ref.as_ref().and_then(|pod| pod.name.as_deref()) else { continue };
        // It may have been deleted meanwhile.
        let path = format!("/api/v1/namespaces/{}/pods/{name}", service.namespace);
        let Some(pod) = cluster.find::<Pod>(&path).await? else { continue };
        let metrics = metrics(cluster, &service.namespace, name, &pod).await;
        found.extend(metrics.as_deref().and_then(built).or_else(|| tag(&pod)));
    }
    Ok(found)
}

/// The version in the metric about the build.
fn built(metrics: &str) -> Option<String> {
    let labels = metrics.lines().find_map(|line| line.strip_prefix("gmsa_webhook_build_info{"))?;
    Some(labels.split_once("version=\"")?.1.split_once('"')?.0.to_owned())
}

/// The tag of the image; a digest contains no version.
fn tag(pod: &Pod) -> Option<String> {
    let image = image(pod)?.split('@').next()?;
    let (_, tag) = image.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'))?;
    Some(tag.to_owned())
}

fn image(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.containers.first()?.image.as_deref()
}

/// Adds the checks of one pod of the webhook.
async fn replica(cluster: &Cluster, namespace: &str, name: &str, pod: &Pod, checks: &mut Vec<Check>) {
    checks.extend(served(cluster, namespace, name, pod).await);
    let Some(spec) = &pod.spec else { return };
    checks.push(Check::pass(SERVICE, format!("runs {}", image(pod).unwrap_or_default())));
    let account = spec.service_account_name.as_deref().unwrap_or_default();
    checks.push(permissions(cluster, namespace, account).await);
}

/// The certificate that a replica serves, from its metrics. Whether it is trusted, the dry run shows.
async fn served(cluster: &Cluster, namespace: &str, name: &str, pod: &Pod) -> Option<Check> {
    certificate::served(name, &metrics(cluster, namespace, name, pod).await?)
}

/// The metrics of a replica. `None` where the user may not (`pods/proxy`) or the API server does not reach it.
async fn metrics(cluster: &Cluster, namespace: &str, name: &str, pod: &Pod) -> Option<String> {
    let ports =
        pod.spec.iter().flat_map(|spec| &spec.containers).flat_map(|container| container.ports.iter().flatten());
    let port = ports.into_iter().find(|port| port.name.as_deref() == Some(ADMIN))?.container_port;
    cluster.read_from_pod(namespace, name, port, "/metrics").await.ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn tag_of(image: &str) -> Option<String> {
        tag(&serde_json::from_value(serde_json::json!({"spec": {"containers": [{"name": "a", "image": image}]}}))
            .unwrap())
    }

    #[test]
    fn the_version_of_an_image_is_its_tag() {
        assert_eq!(tag_of("gmsa-webhook:0.1.0").as_deref(), Some("0.1.0"));
        assert_eq!(tag_of("registry.example.com:5000/gmsa-webhook:1.2.3@sha256:abc").as_deref(), Some("1.2.3"));
        assert_eq!(tag_of("registry.example.com:5000/gmsa-webhook"), None);
        assert_eq!(tag_of("gmsa-webhook@sha256:abc"), None);
    }

    #[test]
    fn the_version_of_a_replica_is_in_its_metrics() {
        let metrics = "# EOF\ngmsa_webhook_build_info{version=\"1.2.3\"} 1\n";
        assert_eq!(built(metrics).as_deref(), Some("1.2.3"));
        assert_eq!(built("gmsa_webhook_connections 1\n"), None);
    }
}
