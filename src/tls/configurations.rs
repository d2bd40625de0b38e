//! The `caBundle`s of webhook configurations, as the API server has them.
//!
//! What always holds: nothing of a configuration is written but a `caBundle`, and only where the configuration is still
//! the one that was read. Needs `get` and `patch` on the configurations, by name.

use std::{fmt, str::FromStr, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{Request, header::CONTENT_TYPE};
use serde::Deserialize;
use serde_json::json;
use thiserror::Error;
use tokio::time::Instant;

use super::CaBundle;
use crate::apiserver::{ApiServer, CallError};
use gmsa_core::credspec::is_dns_subdomain;

/// The longest that one call to the API server may take.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Who this is, in an object's list of who set which field.
pub(super) const FIELD_MANAGER: &str = "gmsa-webhook";

/// Which of the two kinds of webhook configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `MutatingWebhookConfiguration`.
    Mutating,
    /// `ValidatingWebhookConfiguration`.
    Validating,
}

/// A webhook configuration, by kind and name. It is written `mutating/NAME` or `validating/NAME`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Configuration {
    kind: Kind,
    name: String,
}

impl Configuration {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its name: a DNS subdomain.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn path(&self) -> String {
        format!("/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations/{}", self.kind, self.name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mutating => "mutating",
            Self::Validating => "validating",
        })
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

/// The text does not name a webhook configuration.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected mutating/NAME or validating/NAME")]
pub struct NotAConfiguration;

impl FromStr for Configuration {
    type Err = NotAConfiguration;

    fn from_str(text: &str) -> Result<Self, NotAConfiguration> {
        let (kind, name) = text.split_once('/').ok_or(NotAConfiguration)?;
        let kind = match kind {
            "mutating" => Kind::Mutating,
            "validating" => Kind::Validating,
            _ => return Err(NotAConfiguration),
        };
        // The name becomes a part of a URL.
        if is_dns_subdomain(name) { Ok(Self { kind, name: name.to_owned() }) } else { Err(NotAConfiguration) }
    }
}

/// What is in a webhook configuration, as far as certificates go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    resource_version: String,
    webhooks: Vec<FoundWebhook>,
}

/// A webhook of a configuration, as far as certificates go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundWebhook {
    /// Its name in the configuration.
    pub name: String,
    /// The name that the API server expects in the certificate, where it can be told.
    pub host: Option<String>,
    /// What the API server trusts when it calls it.
    pub bundle: CaBundle,
}

impl Found {
    /// The bundle of each of its webhooks.
    pub fn bundles(&self) -> impl Iterator<Item = &CaBundle> {
        self.webhooks.iter().map(|webhook| &webhook.bundle)
    }

    /// Its webhooks.
    #[must_use]
    pub fn webhooks(&self) -> &[FoundWebhook] {
        &self.webhooks
    }
}

/// Why a configuration could not be read or written.
#[derive(Debug, Error)]
pub enum ConfigurationError {
    /// The API server did not answer, or refused.
    #[error("cannot {verb} the webhook configuration {configuration}")]
    Call {
        /// What was tried: `get` or `patch`.
        verb: &'static str,
        /// Which configuration.
        configuration: Configuration,
        /// Why it failed.
        source: CallError,
    },
    /// What came back is not a webhook configuration.
    #[error("the API server's answer about the webhook configuration {0} is not one")]
    Answer(Configuration),
    /// Somebody else wrote it in the meantime.
    #[error("the webhook configuration {0} was changed by somebody else while it was being changed here")]
    Conflict(Configuration),
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
    #[serde(default)]
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
    client_config: ClientConfig,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClientConfig {
    #[serde(default)]
    ca_bundle: Option<String>,
    #[serde(default)]
    service: Option<Service>,
    #[serde(default)]
    url: Option<String>,
}

#[derive(Deserialize)]
struct Service {
    namespace: String,
    name: String,
}

impl ClientConfig {
    /// The API server asks for `NAME.NAMESPACE.svc`, or for the host of the URL.
    fn host(&self) -> Option<String> {
        if let Some(Service { namespace, name }) = &self.service {
            return Some(format!("{name}.{namespace}.svc"));
        }
        let url: http::Uri = self.url.as_ref()?.parse().ok()?;
        Some(url.host()?.trim_matches(['[', ']']).to_owned())
    }
}

/// Reads a configuration; `None` where there is none of that name.
///
/// # Errors
/// Where the API server does not answer in time, or refuses.
pub async fn read(api: &ApiServer, configuration: &Configuration) -> Result<Option<Found>, ConfigurationError> {
    match call(api, configuration, "get", Vec::new()).await {
        Ok(found) => Ok(Some(found)),
        Err(ConfigurationError::Call { source, .. }) if source.code() == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes the bundles of those webhooks for which `revised` has one, in the order of the webhooks in `found`.
///
/// # Errors
/// Where the API server does not answer in time or refuses, or the configuration is no longer the one that was found.
pub async fn write(
    api: &ApiServer,
    configuration: &Configuration,
    found: &Found,
    revised: &[Option<CaBundle>],
) -> Result<Found, ConfigurationError> {
    let mut patch = vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": found.resource_version})];
    for (index, (webhook, bundle)) in found.webhooks.iter().zip(revised).enumerate() {
        let Some(bundle) = bundle else { continue };
        patch.push(json!({"op": "test", "path": format!("/webhooks/{index}/name"), "value": webhook.name}));
        let field = format!("/webhooks/{index}/clientConfig/caBundle");
        patch.push(json!({"op": "add", "path": field, "value": STANDARD.encode(bundle.to_pem())}));
    }
    let patch = json!(patch).to_string().into_bytes();
    match call(api, configuration, "patch", patch).await {
        // 422 is what a failed `test` ends as, where it is not 409.
        Err(ConfigurationError::Call { source, .. }) if matches!(source.code(), Some(409 | 422)) => {
            Err(ConfigurationError::Conflict(configuration.clone()))
        }
        result => result,
    }
}

async fn call(
    api: &ApiServer,
    configuration: &Configuration,
    verb: &'static str,
    body: Vec<u8>,
) -> Result<Found, ConfigurationError> {
    let path = configuration.path();
    let request = if body.is_empty() {
        Request::get(path).body(body)
    } else {
        Request::patch(format!("{path}?fieldManager={FIELD_MANAGER}"))
            .header(CONTENT_TYPE, "application/json-patch+json")
            .body(body)
    };
    // A kind and a DNS subdomain always make a path.
    let Ok(request) = request else { return Err(ConfigurationError::Answer(configuration.clone())) };
    let answer = api.call(request, Instant::now() + CALL_TIMEOUT).await;
    let answer =
        answer.map_err(|source| ConfigurationError::Call { verb, configuration: configuration.clone(), source })?;
    parse(&answer).ok_or_else(|| ConfigurationError::Answer(configuration.clone()))
}

pub(super) fn parse(body: &[u8]) -> Option<Found> {
    let Object { metadata, webhooks } = serde_json::from_slice(body).ok()?;
    let webhook = |webhook: Webhook| {
        let host = webhook.client_config.host();
        let pem = STANDARD.decode(webhook.client_config.ca_bundle.unwrap_or_default()).unwrap_or_default();
        FoundWebhook { name: webhook.name, host, bundle: CaBundle::salvage(&pem) }
    };
    let webhooks = webhooks.unwrap_or_default().into_iter().map(webhook).collect();
    Some(Found { resource_version: metadata.resource_version, webhooks })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(found.webhooks(), expected.map(|(name, host)| webhook(name, host)));
        assert_eq!(parse(br#"{"kind": "Status"}"#), None);
    }
}
