//! `doctor --bundle`: what a support case needs, in one file of JSON.
//!
//! Invariants: of each object only the fields that are named here are taken, so no credential spec's contents, Secret, token, value of
//! an environment variable or annotation gets in; texts that programs wrote freely (messages, logs, metrics) are scrubbed of what
//! looks like one. Only its user can read the file, and no file is overwritten. What may not be read is listed in `notRead`.

use std::{
    collections::BTreeMap,
    io::{self, Write as _},
    path::Path,
};

use anyhow::{Context as _, bail};
use gmsa_core::{
    admission::pod::Slot,
    causes,
    credspec::lint,
    diagnostic::{Check, Diagnostic},
    quote::one_line,
};
use serde_json::{Value, json, value::RawValue};

use super::usage::SPECS;
use crate::shared::{
    connection::Cluster,
    new_file,
    output::{Filter, checks_json},
    pods::ClusterPod,
    rules,
    webhook::is_of_gmsa,
};
use gmsa_cluster::resolver::live::collection;

mod replicas;
mod scrub;

/// The most pods that are listed.
const MAX_PODS: usize = 1000;

/// Fails early where the file cannot be a new one.
pub(super) fn check_path(file: &Path) -> anyhow::Result<()> {
    if file.symlink_metadata().is_ok() {
        bail!("{} exists: --bundle overwrites no file", file.display());
    }
    Ok(())
}

/// Gathers everything, and writes the file.
pub(super) async fn write(cluster: &Cluster, checks: &[Check], filter: &Filter, file: &Path) -> anyhow::Result<()> {
    let mut gathered = Gathered { cluster, not_read: Vec::new() };
    let webhooks = gathered.webhooks().await;
    let namespaces = replicas::of_services(&mut gathered, &webhooks).await;
    let shown: Vec<Value> = webhooks.iter().map(webhook).collect();
    let specs = gathered.specs().await;
    let pods = gathered.pods().await;
    let without_contents: Vec<Check> = checks.iter().cloned().map(without_contents).collect();
    let doctor: Value = serde_json::from_str(&checks_json(&without_contents, filter)?)?;
    let mut bundle = json!({
        "version": 1,
        "plugin": env!("CARGO_PKG_VERSION"),
        "doctor": doctor,
        "webhookConfigurations": shown,
        "replicas": namespaces,
        "credentialSpecs": specs,
        "pods": pods,
        "notRead": gathered.not_read,
    });
    scrub::all(&mut bundle);
    let text = serde_json::to_string_pretty(&bundle)? + "\n";
    new_file::save(file, text.as_bytes()).with_context(|| format!("cannot write {}", file.display()))?;
    writeln!(io::stderr(), "{} written: read it before you send it to anybody", file.display())?;
    Ok(())
}

/// Reads, and notes what may not be read.
struct Gathered<'c> {
    cluster: &'c Cluster,
    not_read: Vec<String>,
}

impl Gathered<'_> {
    async fn list<T: serde::de::DeserializeOwned>(&mut self, path: &str) -> Vec<T> {
        let read = self.cluster.list(path).await;
        self.noted(path, read).unwrap_or_default()
    }

    fn noted<T>(&mut self, path: &str, read: anyhow::Result<T>) -> Option<T> {
        read.map_err(|error| self.not_read.push(format!("{path}: {}", one_line(&causes::chain(error.as_ref()))))).ok()
    }

    /// The webhook configurations for GMSA, each with its kind.
    async fn webhooks(&mut self) -> Vec<(&'static str, Value)> {
        let mut found = Vec::new();
        for (kind, plural) in [
            ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
            ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
        ] {
            let listed: Vec<Value> = self.list(&format!("/apis/admissionregistration.k8s.io/v1/{plural}")).await;
            let is_ours = |configuration: &Value| {
                let names = each(configuration, "/webhooks").map(|webhook| text(webhook, "/name"));
                names.chain([text(configuration, "/metadata/name")]).any(is_of_gmsa)
            };
            found.extend(listed.into_iter().filter(is_ours).map(|configuration| (kind, configuration)));
        }
        found
    }

    /// The credential specs by name, with the rules that they break and where. Messages quote values.
    async fn specs(&mut self) -> Vec<Value> {
        let listed: Vec<Value> = self.list(&collection()).await;
        let finding = |found: Diagnostic| {
            let Diagnostic { rule, severity, field, .. } = blank(found);
            json!({"rule": rule.id, "level": severity.as_str(), "field": field})
        };
        let spec = |spec: &Value| {
            let findings: Vec<Value> = lint::object(spec).into_iter().map(finding).collect();
            json!({"name": text(spec, "/metadata/name"), "findings": findings})
        };
        listed.iter().map(spec).collect()
    }

    /// The pods that use GMSA, with what owns them and the names of their credential specs.
    async fn pods(&mut self) -> Vec<Value> {
        let listed: Vec<Box<RawValue>> = self.list("/api/v1/pods").await;
        let read = listed.iter().filter_map(|json| ClusterPod::read(json).ok());
        let shown = read.filter_map(|pod| {
            let used: Vec<&str> = pod.admission.slots().filter(Slot::uses_gmsa).filter_map(|slot| slot.name).collect();
            let owners = pod.object.metadata.owner_references.iter().flatten();
            let owner = owners.into_iter().next().map(|owner| format!("{} {}", owner.kind, owner.name));
            let (namespace, name) = pod.place();
            let is_user = pod.admission.slots().any(|slot| Slot::uses_gmsa(&slot));
            is_user.then(|| json!({"namespace": namespace, "name": name, "owner": owner, "phase": pod.phase(), "credentialSpecs": used}))
        });
        shown.take(MAX_PODS).collect()
    }
}

/// A check without what the linter quotes of a credential spec.
fn without_contents(check: Check) -> Check {
    let Check { about, result } = check;
    let is_of_specs = about == SPECS;
    Check { about, result: result.map_err(|found| if is_of_specs { blank(found) } else { found }) }
}

/// A finding of the linter without what it quotes: a value, or the name of a field that is not one of a credential spec.
fn blank(found: Diagnostic) -> Diagnostic {
    let field = if *found.rule == rules::UNKNOWN_KEY { String::new() } else { found.field };
    Diagnostic { message: found.rule.title.to_owned(), fix: None, field, ..found }
}

fn webhook((kind, configuration): &(&'static str, Value)) -> Value {
    const FIELDS: [&str; 11] = [
        "name",
        "failurePolicy",
        "matchPolicy",
        "sideEffects",
        "timeoutSeconds",
        "admissionReviewVersions",
        "reinvocationPolicy",
        "rules",
        "namespaceSelector",
        "objectSelector",
        "matchConditions",
    ];
    let webhooks = each(configuration, "/webhooks").map(|webhook| {
        let mut shown = only(webhook, &FIELDS);
        let client = webhook.get("clientConfig").unwrap_or(&Value::Null);
        shown.insert(
            "service",
            only(client.get("service").unwrap_or(&Value::Null), &["namespace", "name", "path", "port"]).into_value(),
        );
        // A URL may hold a token.
        shown.insert("hasUrl", client.get("url").is_some().into());
        shown.insert("caBundleLength", text(client, "/caBundle").len().into());
        shown.into_value()
    });
    json!({"kind": kind, "name": text(configuration, "/metadata/name"), "webhooks": webhooks.collect::<Vec<_>>()})
}

/// Some fields of an object.
struct Only<'v>(BTreeMap<&'v str, Value>);

fn only<'v>(object: &Value, fields: &[&'v str]) -> Only<'v> {
    Only(fields.iter().filter_map(|field| Some((*field, object.get(field)?.clone()))).collect())
}

impl<'v> Only<'v> {
    fn insert(&mut self, field: &'v str, value: Value) {
        self.0.insert(field, value);
    }

    fn into_value(self) -> Value {
        self.0.into_iter().map(|(field, value)| (field.to_owned(), value)).collect()
    }
}

fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

fn each<'v>(object: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}
