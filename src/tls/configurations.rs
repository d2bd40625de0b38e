//! The `caBundle`s of webhook configurations, as the API server has them.
//!
//! Invariants: only the `caBundle`s of a configuration are written, and only where it is still the version that was
//! read. Needs `get` and `patch` on the configurations, by name.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gmsa_cluster::apiserver::ApiServer;
use k8s_openapi::{api::admissionregistration::v1::WebhookClientConfig, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use serde::Deserialize;
use serde_json::json;

use super::{
    CaBundle,
    object::{self, ObjectError, ObjectName},
};

/// The part of a webhook configuration that is about certificates.
#[derive(Clone, Debug, Deserialize)]
pub struct Configuration {
    metadata: ObjectMeta,
    webhooks: Option<Vec<ConfiguredWebhook>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfiguredWebhook {
    pub name: String,
    client_config: WebhookClientConfig,
}

impl Configuration {
    pub fn webhooks(&self) -> impl Iterator<Item = &ConfiguredWebhook> {
        self.webhooks.iter().flatten()
    }

    pub fn bundles(&self) -> impl Iterator<Item = CaBundle> {
        self.webhooks().map(ConfiguredWebhook::bundle)
    }
}

impl ConfiguredWebhook {
    /// What the API server trusts when it calls the webhook.
    #[must_use]
    pub fn bundle(&self) -> CaBundle {
        self.client_config.ca_bundle.as_ref().map(|pem| CaBundle::salvage(&pem.0)).unwrap_or_default()
    }

    /// The name that the API server expects in the certificate, `NAME.NAMESPACE.svc` or the host of the URL; `None` where
    /// there is neither.
    #[must_use]
    pub fn host(&self) -> Option<String> {
        if let Some(service) = &self.client_config.service {
            return Some(format!("{}.{}.svc", service.name, service.namespace));
        }
        let url: http::Uri = self.client_config.url.as_ref()?.parse().ok()?;
        Some(url.host()?.trim_matches(['[', ']']).to_owned())
    }
}

/// Writes the bundles of those webhooks for which `revised` has one, in the order of the webhooks in `found`.
///
/// # Errors
/// Where the API server does not answer in time or refuses, or the configuration has changed since it was read.
pub(super) async fn write(
    api: &ApiServer,
    configuration: &ObjectName,
    found: &Configuration,
    revised: &[Option<CaBundle>],
) -> Result<Configuration, ObjectError> {
    let version = &found.metadata.resource_version;
    let mut patch = vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": version})];
    for (index, (webhook, bundle)) in found.webhooks().zip(revised).enumerate() {
        let Some(bundle) = bundle else { continue };
        patch.push(json!({"op": "test", "path": format!("/webhooks/{index}/name"), "value": webhook.name}));
        let field = format!("/webhooks/{index}/clientConfig/caBundle");
        patch.push(json!({"op": "add", "path": field, "value": STANDARD.encode(bundle.to_pem())}));
    }
    object::patch(api, configuration, &json!(patch)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_without_webhooks_or_bundles_is_read() {
        let webhooks = |body: &str| -> Vec<(String, Option<String>, CaBundle)> {
            let found: Configuration = serde_json::from_str(body).unwrap();
            found.webhooks().map(|webhook| (webhook.name.clone(), webhook.host(), webhook.bundle())).collect()
        };
        assert_eq!(webhooks(r#"{"metadata": {"resourceVersion": "7"}, "webhooks": null}"#), []);
        let body = r#"{"metadata": {"resourceVersion": "8"}, "webhooks": [
            {"name": "a", "clientConfig": {}},
            {"name": "b", "clientConfig": {"caBundle": "Cg==", "service": {"namespace": "n", "name": "s"}}},
            {"name": "c", "clientConfig": {"url": "https://gmsa.example:8443/mutate"}},
            {"name": "d", "clientConfig": {"url": "https://[::1]:8443/mutate"}}]}"#;
        let expected = [("a", None), ("b", Some("s.n.svc")), ("c", Some("gmsa.example")), ("d", Some("::1"))]
            .map(|(name, host)| (name.to_owned(), host.map(str::to_owned), CaBundle::default()));
        assert_eq!(webhooks(body), expected);
        serde_json::from_str::<Configuration>(r#"{"kind": "Status"}"#).unwrap_err();
    }
}
