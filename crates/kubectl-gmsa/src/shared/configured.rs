//! The configurations of the webhooks for GMSA: what each receives, and of which namespaces and pods.

use std::collections::BTreeMap;

use gmsa_core::credspec::{is_dns_label, is_dns_subdomain};
use k8s_openapi::{
    api::admissionregistration::v1::{ServiceReference, ValidatingWebhook},
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
};
use kube::core::{ParseExpressionError, Selector, SelectorExt as _};
use serde::Deserialize;

use super::installer::Installer;

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
