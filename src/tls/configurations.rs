//! The `caBundle`s of webhook configurations, as the API server has them.
//!
//! What always holds: only the `caBundle`s of a configuration are written, and only where it is still the version that was
//! read. Needs `get` and `patch` on the configurations, by name.

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gmsa_core::credspec::is_dns_subdomain;
use http::{Request, header::CONTENT_TYPE};
use k8s_openapi::api::admissionregistration::v1::WebhookClientConfig;
use serde::Deserialize;
use serde_json::json;
use thiserror::Error;

use super::{
    CaBundle,
    object::{self, FIELD_MANAGER, ObjectError},
};
use crate::apiserver::ApiServer;

/// A webhook configuration, by kind and name: `mutating/NAME` or `validating/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// `mutating` or `validating`.
    kind: &'static str,
    name: String,
}

impl Configuration {
    fn path(&self) -> String {
        format!("/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations/{}", self.kind, self.name)
    }

    fn title(&self) -> String {
        format!("the webhook configuration {self}")
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected mutating/NAME or validating/NAME")]
pub struct NotAConfiguration;

impl FromStr for Configuration {
    type Err = NotAConfiguration;

    fn from_str(text: &str) -> Result<Self, NotAConfiguration> {
        let (kind, name) = match text.split_once('/') {
            Some(("mutating", name)) => ("mutating", name),
            Some(("validating", name)) => ("validating", name),
            _ => return Err(NotAConfiguration),
        };
        // The name becomes a part of a URL.
        if is_dns_subdomain(name) { Ok(Self { kind, name: name.to_owned() }) } else { Err(NotAConfiguration) }
    }
}

/// What a webhook configuration says about certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    resource_version: String,
    pub webhooks: Vec<FoundWebhook>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundWebhook {
    pub name: String,
    /// The name that the API server expects in the certificate, if it is known.
    pub host: Option<String>,
    /// What the API server trusts when it calls the webhook.
    pub bundle: CaBundle,
}

impl Found {
    pub fn bundles(&self) -> impl Iterator<Item = &CaBundle> {
        self.webhooks.iter().map(|webhook| &webhook.bundle)
    }
}

#[derive(Deserialize)]
pub(super) struct Object {
    metadata: Metadata,
    webhooks: Option<Vec<Webhook>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    resource_version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Webhook {
    name: String,
    client_config: WebhookClientConfig,
}

/// Reads a configuration; `None` where it does not exist.
///
/// # Errors
/// Where the API server does not answer in time, or refuses.
pub async fn read(api: &ApiServer, configuration: &Configuration) -> Result<Option<Found>, ObjectError> {
    let object: Option<Object> = object::get(api, &configuration.path(), configuration.title()).await?;
    Ok(object.map(Found::from))
}

/// Writes the bundles of those webhooks for which `revised` has one, in the order of the webhooks in `found`.
///
/// # Errors
/// Where the API server does not answer in time or refuses, or the configuration has changed since it was read.
pub(super) async fn write(
    api: &ApiServer,
    configuration: &Configuration,
    found: &Found,
    revised: &[Option<CaBundle>],
) -> Result<Found, ObjectError> {
    let mut patch = vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": found.resource_version})];
    for (index, (webhook, bundle)) in found.webhooks.iter().zip(revised).enumerate() {
        let Some(bundle) = bundle else { continue };
        patch.push(json!({"op": "test", "path": format!("/webhooks/{index}/name"), "value": webhook.name}));
        let field = format!("/webhooks/{index}/clientConfig/caBundle");
        patch.push(json!({"op": "add", "path": field, "value": STANDARD.encode(bundle.to_pem())}));
    }
    let request = Request::patch(format!("{}?fieldManager={FIELD_MANAGER}", configuration.path()))
        .header(CONTENT_TYPE, "application/json-patch+json");
    let body = json!(patch).to_string().into_bytes();
    // A failed `test` is answered with 422 or 409.
    let object: Object = object::write(api, "patch", configuration.title(), request, body, &[409, 422]).await?;
    Ok(object.into())
}

impl From<Object> for Found {
    fn from(Object { metadata, webhooks }: Object) -> Self {
        let webhook = |Webhook { name, client_config: client }: Webhook| FoundWebhook {
            name,
            host: host(&client),
            bundle: CaBundle::salvage(&client.ca_bundle.unwrap_or_default().0),
        };
        let webhooks = webhooks.unwrap_or_default().into_iter().map(webhook).collect();
        Self { resource_version: metadata.resource_version, webhooks }
    }
}

/// The API server expects `NAME.NAMESPACE.svc`, or the host of the URL.
fn host(client: &WebhookClientConfig) -> Option<String> {
    if let Some(service) = &client.service {
        return Some(format!("{}.{}.svc", service.name, service.namespace));
    }
    let url: http::Uri = client.url.as_ref()?.parse().ok()?;
    Some(url.host()?.trim_matches(['[', ']']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &[u8]) -> Option<Found> {
        serde_json::from_slice::<Object>(body).ok().map(Found::from)
    }

    #[test]
    fn a_configuration_is_named_by_kind_and_name() {
        let configuration: Configuration = "mutating/gmsa-webhook".parse().unwrap();
        assert_eq!(
            configuration.path(),
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/gmsa-webhook"
        );
        assert_eq!(configuration.to_string(), "mutating/gmsa-webhook");
        for text in ["", "gmsa-webhook", "mutating/", "validating/a/b", "validating/A", "other/a", "mutating/a?b=c"] {
            assert_eq!(text.parse::<Configuration>(), Err(NotAConfiguration), "{text}");
        }
    }

    #[test]
    fn an_object_without_webhooks_or_bundles_is_read() {
        let found = parse(br#"{"metadata": {"resourceVersion": "7"}, "webhooks": null}"#).unwrap();
        assert_eq!(found, Found { resource_version: "7".to_owned(), webhooks: Vec::new() });
        let body = br#"{"metadata": {"resourceVersion": "8"}, "webhooks": [
            {"name": "a", "clientConfig": {}},
            {"name": "b", "clientConfig": {"caBundle": "Cg==", "service": {"namespace": "n", "name": "s"}}},
            {"name": "c", "clientConfig": {"url": "https://gmsa.example:8443/mutate"}},
            {"name": "d", "clientConfig": {"url": "https://[::1]:8443/mutate"}}]}"#;
        let found = parse(body).unwrap();
        let webhook = |name: &str, host: Option<&str>| {
            let (name, host) = (name.to_owned(), host.map(str::to_owned));
            FoundWebhook { name, host, bundle: CaBundle::default() }
        };
        let expected = [("a", None), ("b", Some("s.n.svc")), ("c", Some("gmsa.example")), ("d", Some("::1"))];
        assert_eq!(found.webhooks, expected.map(|(name, host)| webhook(name, host)));
        assert_eq!(parse(br#"{"kind": "Status"}"#), None);
    }
}
