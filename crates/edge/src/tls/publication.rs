//! Reads the `caBundle`s of the webhook configurations, and keeps the CAs of a program in them. `ca_bundle.rs` says which.
//!
//! Invariants: only the `caBundle`s of a configuration are written, and only where it is still the version that was read; a CA
//! counts as published from the time on at which it was seen in every `caBundle`; one configuration that cannot be written does
//! not keep the others from being written. Needs `get` and `patch` on the configurations, by name.

use std::{
    convert::Infallible,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gmsa_cluster::apiserver::ApiServer;
use k8s_openapi::{api::admissionregistration::v1::WebhookClientConfig, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use rustls::pki_types::CertificateDer;
use serde::Deserialize;
use serde_json::json;
use thiserror::Error;

use super::{
    CaBundle, Clock,
    ca_bundle::{BundleHistory, CaPolicy},
    files::{load_cas, log_invalid_cas},
    reload::Reload,
};
use crate::{
    Program,
    object::{self, ObjectError, ObjectName},
    telemetry::LogOnce,
};

/// How often to try again in one run when others write the same configuration.
const ATTEMPTS: usize = 5;

/// The webhook configurations of a program, and since when CAs are in them.
pub struct Publication {
    api: Arc<ApiServer>,
    program: Program,
    targets: Vec<(ObjectName, LogOnce)>,
    history: BundleHistory,
}

/// The result of one run over all configurations.
#[derive(Debug, Default)]
pub struct Published {
    /// Every configuration exists and has all desired CAs.
    pub complete: bool,
    /// How many configurations were written.
    pub written: u64,
    /// How many configurations could not be read or written. A missing one is not counted.
    pub failed: u64,
    /// Every CA that is in any `caBundle` of the configurations that exist; `None` where one of them could not be read or written.
    pub present: Option<CaBundle>,
}

impl Publication {
    /// Writes as `program` into these configurations. Unknown CAs stay in them for `foreign_grace`.
    #[must_use]
    pub fn new(
        api: Arc<ApiServer>,
        program: Program,
        configurations: Vec<ObjectName>,
        foreign_grace: Duration,
    ) -> Self {
        let targets = configurations.into_iter().map(|configuration| (configuration, LogOnce::default())).collect();
        Self { api, program, targets, history: BundleHistory::new(foreign_grace) }
    }

    /// Publishes the CAs in a file, for a serving certificate from a Secret that another tool fills: after each change of
    /// the file, and every `interval` in any case, because others may write the configurations too. While the file is
    /// invalid, the CAs that it held before are published.
    ///
    /// A tool that replaces a CA must add the new one beside the old one first: `caBundle` and serving certificate do not
    /// change at the same time.
    pub async fn follow(mut self, file: PathBuf, interval: Duration, clock: Clock) -> Infallible {
        let path = file.clone();
        let mut bundles = Reload::new(&[&file], interval, move || load_cas(&path));
        let (mut policy, mut problem) = (None, LogOnce::default());
        loop {
            if let Some(desired) = problem.check(bundles.next().await, log_invalid_cas) {
                policy = Some(CaPolicy { desired, ..CaPolicy::default() });
            }
            if let Some(policy) = &policy {
                self.publish(policy, &clock).await;
            }
        }
    }

    /// For how long a CA has been in every `caBundle`; `None` where it is not.
    pub(super) fn published_for(&self, ca: &CertificateDer<'static>, now: SystemTime) -> Option<Duration> {
        self.history.published_for(ca, now)
    }

    /// Reads every configuration, and writes each that differs from the policy.
    pub async fn publish(&mut self, policy: &CaPolicy, clock: &Clock) -> Published {
        let now = clock();
        let mut published = Published::default();
        let mut all_found = Vec::new();
        for (configuration, problem) in &mut self.targets {
            match reconcile(&self.api, &self.program, configuration, &mut self.history, policy, now).await {
                Ok((found, written)) => {
                    problem.resolve();
                    published.written += u64::from(written);
                    all_found.push(found);
                }
                Err(error) => {
                    published.failed += u64::from(!matches!(error, ReconcileError::Missing));
                    problem.fail(&error, |reason| {
                        tracing::warn!(%configuration, reason, "the webhook configuration does not have this webhook's certificate authority yet");
                    });
                }
            }
        }
        if published.failed == 0 {
            published.complete = all_found.len() == self.targets.len();
            let bundles: Vec<_> = all_found.iter().flat_map(WebhookConfiguration::bundles).collect();
            // They were written later than this began, by minutes where the API server is slow.
            self.history.observe(&bundles, policy, clock());
            published.present = Some(bundles.iter().flat_map(|bundle| bundle.iter()).cloned().collect());
        }
        published
    }
}

#[derive(Debug, Error)]
enum ReconcileError {
    #[error("the webhook configuration does not exist")]
    Missing,
    #[error(transparent)]
    Object(#[from] ObjectError),
}

/// Reads one configuration and writes it where it differs. Returns it, and whether it was written.
async fn reconcile(
    api: &ApiServer,
    program: &Program,
    configuration: &ObjectName,
    history: &mut BundleHistory,
    policy: &CaPolicy,
    now: SystemTime,
) -> Result<(WebhookConfiguration, bool), ReconcileError> {
    let mut attempt = 1;
    loop {
        let found: WebhookConfiguration = object::get(api, configuration).await?.ok_or(ReconcileError::Missing)?;
        let version = &found.metadata.resource_version;
        let mut patch = vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": version})];
        for (index, webhook) in found.webhooks().enumerate() {
            let Some(bundle) = history.revise(&webhook.bundle(), policy, now) else { continue };
            patch.push(json!({"op": "test", "path": format!("/webhooks/{index}/name"), "value": webhook.name}));
            let field = format!("/webhooks/{index}/clientConfig/caBundle");
            patch.push(json!({"op": "add", "path": field, "value": STANDARD.encode(bundle.to_pem())}));
        }
        if patch.len() == 1 {
            return Ok((found, false));
        }
        match object::patch(api, program, configuration, &json!(patch)).await {
            Ok(found) => {
                tracing::info!(%configuration, "wrote the certificate authorities into the webhook configuration");
                return Ok((found, true));
            }
            Err(error) if error.is_conflict() && attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// The part of a webhook configuration that is about certificates.
#[derive(Clone, Debug, Deserialize)]
pub struct WebhookConfiguration {
    metadata: ObjectMeta,
    webhooks: Option<Vec<ConfiguredWebhook>>,
}

/// One webhook of a configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfiguredWebhook {
    /// Its name.
    pub name: String,
    client_config: WebhookClientConfig,
}

impl WebhookConfiguration {
    /// Its webhooks.
    pub fn webhooks(&self) -> impl Iterator<Item = &ConfiguredWebhook> {
        self.webhooks.iter().flatten()
    }

    /// The `caBundle` of each.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_without_webhooks_or_bundles_is_read() {
        let webhooks = |body: &str| -> Vec<(String, Option<String>, CaBundle)> {
            let found: WebhookConfiguration = serde_json::from_str(body).unwrap();
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
        serde_json::from_str::<WebhookConfiguration>(r#"{"kind": "Status"}"#).unwrap_err();
    }
}
