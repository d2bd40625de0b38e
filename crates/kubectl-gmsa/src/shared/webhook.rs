//! The installed webhook: its Service, its replicas.

use gmsa_core::credspec::{is_dns_label, is_dns_subdomain};
use k8s_openapi::api::{
    admissionregistration::v1::ServiceReference,
    apps::v1::Deployment,
    core::v1::{Namespace, Pod},
    discovery::v1::{Endpoint, EndpointSlice},
};

use super::{configured::Configured, installer::Installer, unread::Read, world::World};

/// The chart's name for the port of `/metrics`.
const ADMIN: &str = "admin";

/// Why nothing can run in a namespace, if it does not exist or is being deleted.
pub fn no_namespace(found: Option<&Namespace>) -> Option<&'static str> {
    match found {
        None => Some("does not exist"),
        Some(namespace) => namespace.metadata.deletion_timestamp.as_ref().map(|_| "is being deleted"),
    }
}

/// Why nothing of a Service can run, because of its namespace, and what to do before an installation. `part` is what the Service is of.
pub fn without_namespace(
    part: &str,
    service: &ServiceReference,
    found: Option<&Namespace>,
) -> Option<(String, &'static str)> {
    let text = format!("namespace {}, in which the {part} was, {}", service.namespace, no_namespace(found)?);
    Some((text, if found.is_some() { "Wait until it is gone. " } else { "" }))
}

/// The pod webhooks that AKS does not manage, or all if AKS manages all of them.
pub fn reviewing(webhooks: &[Configured]) -> Vec<&Configured> {
    let (of_aks, ours): (Vec<_>, Vec<_>) =
        webhooks.iter().filter(|found| found.is_of_pods()).partition(|found| found.installer == Installer::Aks);
    if ours.is_empty() { of_aks } else { ours }
}

/// The installer, read from the configurations or from the Deployment with the chart's labels; `None` also without the right to read them.
pub async fn installer(world: &World) -> Option<Installer> {
    const DEPLOYMENTS: &str = "/apis/apps/v1/deployments?labelSelector=app.kubernetes.io%2Fname%3Dgmsa-webhook";
    if let Some(found) = reviewing(world.webhooks().await.ok()?).first() {
        return Some(found.installer.clone());
    }
    let deployments: Vec<Deployment> = world.list(DEPLOYMENTS).await.ok()?;
    deployments.first().map(|deployment| Installer::of(&deployment.metadata))
}

/// The first of these webhooks whose Service has no ready endpoint, as far as is known.
pub async fn silent<'w>(
    world: &World,
    webhooks: impl Iterator<Item = &'w Configured>,
) -> Option<(&'w Configured, &'w ServiceReference)> {
    for found in webhooks {
        if let Some(service) = &found.webhook.client_config.service
            && endpoints(world, service).await.is_ok_and(|endpoints| !endpoints.iter().any(is_ready))
        {
            return Some((found, service));
        }
    }
    None
}

/// The endpoints of the webhook's Service.
pub async fn endpoints(world: &World, service: &ServiceReference) -> Read<Vec<Endpoint>> {
    let path = format!(
        "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D{}",
        service.namespace, service.name
    );
    let slices: Vec<EndpointSlice> = world.list(&path).await?;
    Ok(slices.into_iter().flat_map(|slice| slice.endpoints).collect())
}

/// The text that the broker's Service has no ready endpoint, if so.
pub async fn broker_unready(world: &World, service: &ServiceReference) -> Read<Option<String>> {
    let ServiceReference { namespace, name, .. } = service;
    let is_ready = endpoints(world, service).await?.iter().any(is_ready);
    Ok((!is_ready).then(|| format!("the Service {namespace}/{name} of the broker has no ready endpoint")))
}

/// A pod behind a Service; `None` without an endpoint. If none is ready, an unready one may show why.
pub async fn pod_behind(world: &World, service: &ServiceReference) -> Read<Option<Pod>> {
    let endpoints = endpoints(world, service).await?;
    let named = || endpoints.iter().filter_map(|endpoint| Some((endpoint, pod_name(endpoint)?)));
    let ready = named().find(|(endpoint, _)| is_ready(endpoint));
    let Some((_, name)) = ready.or_else(|| named().next()) else { return Ok(None) };
    world.get(&format!("/api/v1/namespaces/{}/pods/{name}", service.namespace)).await.map(Some)
}

/// A pod of the webhook that the API server calls for new pods; `None` without a Service or an endpoint.
pub async fn replica(world: &World) -> Read<Option<Pod>> {
    let reviewing = reviewing(world.webhooks().await?);
    let Some(service) = reviewing.iter().find_map(|found| found.webhook.client_config.service.as_ref()) else {
        return Ok(None);
    };
    pod_behind(world, service).await
}

/// The values of an option in the charts' form, `--NAME=VALUE`.
pub fn arguments<'p>(pod: &'p Pod, name: &'p str) -> impl Iterator<Item = &'p str> {
    let containers = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten().chain(&spec.containers));
    let arguments = containers.flat_map(|container| container.args.iter().flatten());
    arguments.filter_map(move |argument| argument.strip_prefix("--")?.strip_prefix(name)?.strip_prefix('='))
}

/// The first value of such an option.
pub fn argument<'p>(pod: &'p Pod, name: &'p str) -> Option<&'p str> {
    arguments(pod, name).next()
}

/// Whether this replica of the webhook is installed without tickets.
pub fn is_without_tickets(replica: &Pod) -> bool {
    argument(replica, "tickets-broker").is_none()
}

/// The Service of the broker of tickets that an option names in the charts' form, `NAME.NAMESPACE.svc`.
pub fn broker(pod: &Pod, option: &str) -> Option<ServiceReference> {
    let (name, namespace) = argument(pod, option)?.strip_suffix(".svc")?.split_once('.')?;
    let service =
        ServiceReference { name: name.to_owned(), namespace: namespace.to_owned(), ..ServiceReference::default() };
    Some(service).filter(|_| is_dns_label(namespace) && is_dns_subdomain(name))
}

/// Whether this replica of the webhook gives random host names to all pods that use GMSA: by the variable that both charts set, or the
/// flag.
pub fn gives_hostnames(replica: &Pod) -> bool {
    replica.spec.iter().flat_map(|spec| &spec.containers).any(|container| {
        let variables = container.env.iter().flatten().filter(|variable| variable.name == "RANDOM_HOSTNAME");
        let mut flags = container.args.iter().flatten().filter_map(|flag| flag.strip_prefix("--random-hostname"));
        variables.filter_map(|variable| variable.value.as_deref()).any(is_true)
            || flags.any(|value| value.is_empty() || value.strip_prefix('=').is_some_and(is_true))
    })
}

/// Whether Go's `strconv.ParseBool` reads it as true.
pub fn is_true(word: &str) -> bool {
    matches!(word, "1" | "t" | "T" | "TRUE" | "true" | "True")
}

/// The pod behind an endpoint. Its name becomes part of paths and commands, and the API server does not validate it.
pub fn pod_name(endpoint: &Endpoint) -> Option<&str> {
    endpoint.target_ref.as_ref()?.name.as_deref().filter(|name| is_dns_subdomain(name))
}

pub fn is_ready(endpoint: &Endpoint) -> bool {
    endpoint.conditions.as_ref().and_then(|is| is.ready) != Some(false)
}

/// The image of a replica.
pub fn image(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.containers.first()?.image.as_deref()
}

/// The release in the tag of an image; a digest names none.
pub fn release(image: &str) -> Option<&str> {
    let (_, tag) = image.split('@').next()?.rsplit('/').next()?.split_once(':')?;
    Some(tag)
}

/// The namespace and the name of a replica, if they can be parts of paths and commands.
pub fn place(pod: &Pod) -> Option<(&str, &str)> {
    let place = (pod.metadata.namespace.as_deref()?, pod.metadata.name.as_deref()?);
    Some(place).filter(|(namespace, name)| is_dns_label(namespace) && is_dns_subdomain(name))
}

/// The metrics of a replica. `None` where it has no port for them.
pub async fn metrics(world: &World, pod: &Pod) -> Option<Read<String>> {
    let (namespace, name) = place(pod)?;
    let mut ports =
        pod.spec.iter().flat_map(|spec| &spec.containers).flat_map(|container| container.ports.iter().flatten());
    let port = ports.find(|port| port.name.as_deref() == Some(ADMIN))?.container_port;
    Some(world.text(&format!("/api/v1/namespaces/{namespace}/pods/{name}:{port}/proxy/metrics")).await)
}
