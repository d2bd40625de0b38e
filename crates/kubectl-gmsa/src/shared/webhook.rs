//! The installed webhook: its configurations, with what each receives, and of which namespaces and pods; its Service, its replicas.

use std::collections::BTreeMap;

use gmsa_core::credspec::{is_dns_label, is_dns_subdomain};
use k8s_openapi::{
    api::{
        admissionregistration::v1::{ServiceReference, ValidatingWebhook},
        apps::v1::Deployment,
        core::v1::{Namespace, Pod},
        discovery::v1::{Endpoint, EndpointSlice},
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
};
use kube::core::{ParseExpressionError, Selector, SelectorExt as _};
use serde::Deserialize;

use super::{installer::Installer, unread::Read, world::World};

/// A webhook configuration of either kind. The additional field of a mutating webhook is not needed here.
#[derive(Deserialize)]
pub struct Configuration {
    metadata: ObjectMeta,
    webhooks: Option<Vec<ValidatingWebhook>>,
}

pub struct Configured {
    pub mutating: bool,
    /// The configuration's and the webhook's name.
    pub name: String,
    /// Its index in the list of the configuration.
    pub index: usize,
    pub webhook: ValidatingWebhook,
    /// The field managers that changed its selectors after the installation.
    pub changed_by: Vec<String>,
    pub installer: Installer,
}

/// Whether a webhook is for GMSA, judged by its name: this chart and the Go webhook's chart both put `gmsa` into it.
pub fn is_of_gmsa(name: &str) -> bool {
    name.contains("gmsa")
}

/// The kind of the configurations of mutating, or of validating webhooks.
pub fn kind(mutating: bool) -> &'static str {
    if mutating { "MutatingWebhookConfiguration" } else { "ValidatingWebhookConfiguration" }
}

/// Every webhook for GMSA of the configurations of one kind. Names that cannot be parts of paths and commands are
/// left out: the API server does not validate those of a Service.
pub fn configured(mutating: bool, configurations: Vec<Configuration>) -> Vec<Configured> {
    let is_invalid =
        |service: &mut ServiceReference| !is_dns_label(&service.namespace) || !is_dns_subdomain(&service.name);
    let mut found = Vec::new();
    for Configuration { metadata, webhooks } in configurations {
        for (index, mut webhook) in webhooks.into_iter().flatten().enumerate() {
            let configuration = metadata.name.as_deref().unwrap_or("");
            let name = format!("{configuration}/{}", webhook.name);
            if is_of_gmsa(&name) && is_dns_subdomain(configuration) {
                webhook.client_config.service.take_if(is_invalid);
                let (changed_by, installer) = (changed_by(&metadata, &webhook), Installer::of(&metadata));
                found.push(Configured { mutating, name, index, webhook, changed_by, installer });
            }
        }
    }
    found
}

/// The field managers that own a selector of this webhook but not its rules, which the installing manager owns. An empty selector,
/// the API server's default, is ignored: it selects everything.
fn changed_by(configuration: &ObjectMeta, webhook: &ValidatingWebhook) -> Vec<String> {
    let key = format!("k:{{\"name\":\"{}\"}}", webhook.name);
    let selects_all = |selector: Option<&LabelSelector>| selector.is_none_or(|it| *it == LabelSelector::default());
    let selectors = [
        ("f:namespaceSelector", webhook.namespace_selector.as_ref()),
        ("f:objectSelector", webhook.object_selector.as_ref()),
    ];
    let entries = configuration.managed_fields.iter().flatten().filter(|entry| {
        let fields = entry.fields_v1.as_ref().and_then(|fields| fields.0.pointer("/f:webhooks")?.get(&key));
        let owns = |field: &str| fields.and_then(|fields| fields.get(field)).is_some();
        selectors.iter().any(|(field, selector)| owns(field) && !selects_all(*selector)) && !owns("f:rules")
    });
    entries.map(|entry| entry.manager.clone().unwrap_or_else(|| "an unnamed manager".to_owned())).collect()
}

impl Configured {
    /// The name of the configuration.
    pub fn configuration(&self) -> &str {
        self.name.split_once('/').map_or("", |(configuration, _)| configuration)
    }

    pub fn covers(&self, operation: &str, resource: &str) -> bool {
        let (kind, sub) = resource.split_once('/').unwrap_or((resource, ""));
        let all_of_kind = if sub.is_empty() { "*".to_owned() } else { format!("{kind}/*") };
        let has = |list: Option<&Vec<String>>, wanted: &[&str]| {
            list.into_iter().flatten().any(|entry| wanted.contains(&entry.as_str()))
        };
        self.webhook.rules.iter().flatten().any(|rule| {
            has(rule.operations.as_ref(), &[operation, "*"])
                && has(rule.resources.as_ref(), &[resource, &all_of_kind, "*/*"])
                && has(rule.api_groups.as_ref(), &["", "*"])
        })
    }

    pub fn is_of_pods(&self) -> bool {
        self.covers("CREATE", "pods") && !self.is_of_system_namespaces()
    }

    /// Whether it is the webhook for system namespaces only, which older clusters have and which must not block them.
    pub fn is_of_system_namespaces(&self) -> bool {
        self.webhook.name.starts_with("system-namespaces.")
    }

    /// Whether it reviews a pod with these labels in such a namespace. The API server refuses invalid selectors.
    pub fn reviews(&self, namespace: &BTreeMap<String, String>, pod: &BTreeMap<String, String>) -> bool {
        let of_pod = matches(self.webhook.object_selector.as_ref(), Some(pod));
        self.selects(Some(namespace)).unwrap_or(true) && of_pod.unwrap_or(true)
    }

    /// Whether a namespace with these labels is selected.
    pub fn selects(&self, labels: Option<&BTreeMap<String, String>>) -> Result<bool, ParseExpressionError> {
        matches(self.webhook.namespace_selector.as_ref(), labels)
    }
}

/// Whether a selector, if there is one, selects an object with these labels.
pub fn matches(
    selector: Option<&LabelSelector>,
    labels: Option<&BTreeMap<String, String>>,
) -> Result<bool, ParseExpressionError> {
    let Some(selector) = selector.cloned() else { return Ok(true) };
    Ok(Selector::try_from(selector)?.matches(labels.unwrap_or(&BTreeMap::new())))
}

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
