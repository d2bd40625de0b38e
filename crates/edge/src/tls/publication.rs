//! Reads the `caBundle`s of the webhook configurations, and keeps the CAs of a program in them. `ca_bundle.rs` says which.
//!
//! Invariants: only the `caBundle`s of a configuration are written, and only where it is still the version that was read; a CA
//! counts as published from the time on at which it was seen in every `caBundle`; one configuration that cannot be written does
//! not keep the others from being written. A configuration from which another writer removes the CAs again and again is written on
//! the timer alone: two writers that answer each other at once would not end. Needs `get`, `patch` and `watch` on the configurations, by name.

use std::{convert::Infallible, future::pending, path::PathBuf, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures::{FutureExt as _, future::select_all};
use gmsa_cluster::apiserver::ApiServer;
use k8s_openapi::{
    api::admissionregistration::v1::WebhookClientConfig,
    apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta},
};
use serde::Deserialize;
use serde_json::json;
use thiserror::Error;

use super::{
    CaBundle,
    ca_bundle::{BundleHistory, CaPolicy},
    files::{load_cas, log_invalid_cas},
    reload::Reload,
};
use crate::{
    Program,
    clock::{Clock, Moment},
    metrics::{CertificateStep, EdgeMetrics},
    object::{KeptObject, ObjectError, ObjectName},
    telemetry::LogOnce,
};

/// How often to try again in one run when others write the same configuration.
const ATTEMPTS: usize = 5;

/// Where the CAs are removed twice within this time, another writer does it, and no accident.
const CONTEST: Duration = Duration::from_secs(600);

/// The webhook configurations of a program, and since when CAs are in them.
pub struct Publication {
    program: Program,
    targets: Vec<Target>,
    pub(super) history: BundleHistory,
    metrics: EdgeMetrics,
}

/// One webhook configuration.
struct Target {
    configuration: KeptObject,
    problem: LogOnce,
    /// The CAs that every `caBundle` of it had when it was read or written last.
    had: CaBundle,
    /// When CAs were missing that had been there, for the last time.
    lost: Option<Moment>,
    /// The field manager that removes them again and again, if there is one.
    contested_by: Option<String>,
}

/// The result of one run over all configurations.
#[derive(Debug, Default)]
pub struct Published {
    /// Every configuration exists and has all desired CAs.
    pub complete: bool,
    /// Every CA that is in any `caBundle` of the configurations that exist; `None` where one of them could not be read or written.
    pub present: Option<CaBundle>,
}

impl Publication {
    /// Writes as `program` into these configurations. Unknown CAs stay in them for `foreign_grace`.
    pub fn new(
        api: Arc<ApiServer>,
        program: Program,
        configurations: Vec<ObjectName>,
        foreign_grace: Duration,
        metrics: EdgeMetrics,
    ) -> Self {
        let target = move |name| Target::new(KeptObject::new(Arc::clone(&api), program, name));
        let targets = configurations.into_iter().map(target).collect();
        Self { program, targets, history: BundleHistory::new(foreign_grace), metrics }
    }

    /// Publishes the CAs in a file, for a serving certificate from a Secret that another tool fills: after each change of
    /// the file or of a configuration, and every `interval` in any case. While the file is invalid, its previous CAs are published.
    ///
    /// A tool that replaces a CA must add the new one beside the old one first: `caBundle` and serving certificate do not
    /// change at the same time.
    pub async fn follow(mut self, file: PathBuf, interval: Duration, clock: Clock) -> Infallible {
        let path = file.clone();
        let mut bundles = Reload::new(&[&file], interval, move || load_cas(&path));
        let (mut policy, mut problem) = (None, LogOnce::default());
        loop {
            let loaded = tokio::select! {
                loaded = bundles.next() => Some(loaded),
                () = self.changed() => None,
            };
            if let Some(desired) = loaded.and_then(|loaded| problem.check(loaded, log_invalid_cas)) {
                policy = Some(CaPolicy { desired, ..CaPolicy::default() });
            }
            if let Some(policy) = &policy {
                self.publish(policy, &clock).await;
            }
        }
    }

    /// Returns when a configuration is not the version that was read last; never where none can be watched, or another writer contests it.
    pub(super) async fn changed(&mut self) {
        let watched = self.targets.iter_mut().filter(|target| target.contested_by.is_none());
        let changes: Vec<_> = watched.map(|target| target.configuration.changed().boxed()).collect();
        if changes.is_empty() {
            return pending().await;
        }
        select_all(changes).await;
    }

    /// Reads every configuration, and writes each that differs from the policy.
    pub async fn publish(&mut self, policy: &CaPolicy, clock: &Clock) -> Published {
        let now = clock();
        let (mut found, mut failed) = (Vec::new(), 0);
        for target in &mut self.targets {
            match target.reconcile(&self.program, &mut self.history, policy, now, &self.metrics).await {
                Ok(configuration) => {
                    target.problem.resolve();
                    found.push(configuration);
                }
                Err(error) => {
                    failed += u64::from(!matches!(error, ReconcileError::Missing));
                    let configuration = &target.configuration.name;
                    target.problem.fail(&error, |reason| {
                        tracing::warn!(%configuration, reason, "the webhook configuration does not have this webhook's certificate authority yet");
                    });
                }
            }
        }
        self.metrics.certificate_step(CertificateStep::Failed, failed);
        if failed > 0 {
            return Published::default();
        }
        let bundles: Vec<_> = found.iter().flat_map(WebhookConfiguration::bundles).collect();
        // They were written later than this began, by minutes where the API server is slow.
        self.history.observe(&bundles, policy, clock());
        let present = bundles.iter().flat_map(|bundle| bundle.iter()).cloned().collect();
        Published { complete: found.len() == self.targets.len(), present: Some(present) }
    }
}

#[derive(Debug, Error)]
enum ReconcileError {
    #[error("the webhook configuration does not exist")]
    Missing,
    #[error(transparent)]
    Object(#[from] ObjectError),
}

impl Target {
    fn new(configuration: KeptObject) -> Self {
        let (problem, had) = (LogOnce::default(), CaBundle::default());
        Self { configuration, problem, had, lost: None, contested_by: None }
    }

    /// Reads the configuration, and writes it where it differs from the policy. Returns it as it is then.
    async fn reconcile(
        &mut self,
        program: &Program,
        history: &mut BundleHistory,
        policy: &CaPolicy,
        now: Moment,
        metrics: &EdgeMetrics,
    ) -> Result<WebhookConfiguration, ReconcileError> {
        let (mut attempt, mut lost) = (1, false);
        loop {
            let found: Option<WebhookConfiguration> = self.configuration.get().await?;
            self.configuration.seen = found.as_ref().and_then(|found| found.metadata.resource_version.clone());
            let mut found = found.ok_or(ReconcileError::Missing)?;
            lost |= self.has_lost(&found, policy);
            let remover = lost.then(|| found.writer(program));
            let version = &found.metadata.resource_version;
            let mut patch = vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": version})];
            for (index, webhook) in found.webhooks().enumerate() {
                let Some(bundle) = history.revise(&webhook.bundle(), policy, now) else { continue };
                patch.push(json!({"op": "test", "path": format!("/webhooks/{index}/name"), "value": webhook.name}));
                let field = format!("/webhooks/{index}/clientConfig/caBundle");
                patch.push(json!({"op": "add", "path": field, "value": STANDARD.encode(bundle.to_pem())}));
            }
            if patch.len() > 1 {
                found = match self.configuration.patch(&json!(patch)).await {
                    Err(error) if error.is_conflict() && attempt < ATTEMPTS => {
                        attempt += 1;
                        continue;
                    }
                    patched => patched?,
                };
                tracing::info!(configuration = %self.configuration.name, "wrote the certificate authorities into the webhook configuration");
                self.configuration.seen.clone_from(&found.metadata.resource_version);
                metrics.certificate_step(CertificateStep::BundleWritten, 1);
            }
            self.had.clone_from(&policy.desired);
            metrics.certificate_step(CertificateStep::BundleLost, u64::from(lost));
            self.judge(remover, now);
            return Ok(found);
        }
    }

    /// Whether a CA is missing that was there when the configuration was read or written last, and belongs there still.
    fn has_lost(&self, found: &WebhookConfiguration, policy: &CaPolicy) -> bool {
        let had: Vec<_> = self.had.iter().filter(|ca| policy.desired.contains(ca)).collect();
        found.bundles().any(|bundle| had.iter().any(|ca| !bundle.contains(ca)))
    }

    /// Decides whether another writer contests the configuration. `remover` removed CAs from it since it was read last.
    fn judge(&mut self, remover: Option<String>, now: Moment) {
        let is_recent = self.lost.is_some_and(|lost| now.running_since(&lost) < CONTEST);
        let Some(manager) = remover else {
            if !is_recent && self.contested_by.take().is_some() {
                tracing::info!(configuration = %self.configuration.name, "nobody removes the certificate authorities from the webhook configuration any more");
            }
            return;
        };
        self.lost = Some(now);
        if is_recent && self.contested_by.as_ref() != Some(&manager) {
            tracing::warn!(
                configuration = %self.configuration.name, manager,
                "another writer removes the certificate authorities from the webhook configuration again and again, and pods are refused meanwhile: have it leave caBundle alone"
            );
            self.contested_by = Some(manager);
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

    /// The field manager other than `program` that wrote a `caBundle` last, or else the webhooks.
    fn writer(&self, program: &Program) -> String {
        let entries = self.metadata.managed_fields.iter().flatten();
        let others = entries.filter(|entry| entry.manager.as_deref() != Some(program.name));
        let last = others.filter_map(|entry| Some((has_bundle(entry)?, &entry.time, entry.manager.as_deref()?))).max();
        last.map_or("unknown", |(_, _, manager)| manager).to_owned()
    }
}

/// Whether a field manager wrote a `caBundle` of the webhooks; `None` where it wrote nothing of them. The form, as in `metadata.managedFields`: `{"f:webhooks": {"k:{…}": {"f:clientConfig": {"f:caBundle": {}}}}}`.
fn has_bundle(entry: &ManagedFieldsEntry) -> Option<bool> {
    let webhooks = entry.fields_v1.as_ref()?.0.get("f:webhooks")?;
    let mut each = webhooks.as_object().into_iter().flat_map(serde_json::Map::values);
    Some(each.any(|webhook| webhook.pointer("/f:clientConfig/f:caBundle").is_some()))
}

impl ConfiguredWebhook {
    /// The CAs that the API server trusts when it calls the webhook.
    pub fn bundle(&self) -> CaBundle {
        self.client_config.ca_bundle.as_ref().map(|pem| CaBundle::salvage(&pem.0)).unwrap_or_default()
    }

    /// The name that the API server expects in the certificate, `NAME.NAMESPACE.svc` or the host of the URL; `None` where
    /// there is neither.
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
    use serde_json::Value;

    use super::*;
    use crate::program::TESTED;

    #[test]
    fn the_writer_of_a_bundle_is_named_by_what_it_owns_last() {
        let entry = |manager: &str, hour: u8, fields: &Value| json!({"manager": manager, "operation": "Update", "time": format!("2024-10-04T{hour:02}:00:00Z"), "fieldsV1": fields});
        let bundle = json!({"f:webhooks": {"k:{\"name\":\"a\"}": {".": {}, "f:clientConfig": {"f:caBundle": {}}}}});
        let webhooks = json!({"f:webhooks": {".": {}, "k:{\"name\":\"a\"}": {"f:rules": {}}}});
        let labels = json!({"f:metadata": {"f:labels": {"f:a": {}}}});
        let writer = |entries: &[Value]| {
            let metadata = json!({"managedFields": entries});
            let found: WebhookConfiguration = serde_json::from_value(json!({ "metadata": metadata })).unwrap();
            found.writer(&TESTED)
        };
        let helm = entry("helm", 1, &webhooks);
        let injector = entry("cert-manager-cainjector", 2, &bundle);
        let own = entry(TESTED.name, 3, &bundle);
        assert_eq!(
            writer(&[helm.clone(), injector, own.clone(), entry("kubectl-label", 4, &labels)]),
            "cert-manager-cainjector"
        );
        assert_eq!(writer(&[helm, entry("argocd-controller", 2, &webhooks), own.clone()]), "argocd-controller");
        assert_eq!(writer(&[own]), "unknown");
    }

    #[tokio::test]
    async fn a_second_loss_within_minutes_is_another_writer_until_it_stops() {
        let api = ApiServer::new(kube::Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        let name = ObjectName::configuration("mutating/gmsa-webhook").unwrap();
        let mut target = Target::new(KeptObject::new(Arc::new(api), TESTED, name));
        let start = Moment::now();
        let mut judge = |minute: u32, lost: Option<&str>| {
            target.judge(lost.map(str::to_owned), start + Duration::from_secs(60) * minute);
            target.contested_by.clone()
        };
        let another = Some("argocd-controller".to_owned());
        assert_eq!(judge(0, Some("helm")), None);
        assert_eq!(judge(11, Some("argocd-controller")), None);
        assert_eq!(judge(12, Some("argocd-controller")), another);
        assert_eq!(judge(13, None), another);
        assert_eq!(judge(22, None), None);
    }

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
