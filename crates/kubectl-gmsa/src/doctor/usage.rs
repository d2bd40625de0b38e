//! The credential specs, and the pods that name one.

use std::collections::HashMap;

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1;
use serde::Deserialize as _;
use serde_json::{Value, value::RawValue};

use super::{found, not_checked, some};
use crate::connect::{Cluster, is_missing};
use gmsa_cluster::resolver::live::collection;
use gmsa_core::{
    admission::pod::{Pod, Slot},
    credspec::{Contents, CredentialSpec, is_dns_subdomain, lint},
    diagnostic::{Check, Diagnostic, rules},
};

const SPECS: &str = "credential specs";
const PODS: &str = "pods";

/// Adds the checks. `excluded` are the namespaces that the webhook does not review.
pub(super) async fn look(cluster: &Cluster, excluded: &[String], checks: &mut Vec<Check>) {
    let objects: Vec<Value> = match cluster.list(&collection()).await {
        Ok(objects) => {
            linted(&objects, checks);
            objects
        }
        // Without the custom resource, which has its own check, there are none.
        Err(error) if is_missing(&error) => Vec::new(),
        Err(error) => return checks.push(not_checked(SPECS, &error)),
    };
    let contents = by_name(objects.iter().filter_map(|object| CredentialSpec::deserialize(object).ok()));
    match cluster.list("/api/v1/pods").await {
        Ok(pods) => used(&pods, &contents, excluded, checks),
        Err(error) => checks.push(not_checked(PODS, &error)),
    }
}

/// The contents of credential specs, by name.
pub(crate) fn by_name(specs: impl IntoIterator<Item = CredentialSpec>) -> HashMap<String, Contents> {
    specs.into_iter().filter_map(|spec| Some((spec.metadata.name.clone(), spec.contents()?))).collect()
}

fn linted(objects: &[Value], checks: &mut Vec<Check>) {
    let before = checks.len();
    for object in objects {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let findings = lint::object(object).into_iter();
        checks.extend(findings.map(|finding| Check::found(SPECS, Diagnostic { object: name.to_owned(), ..finding })));
    }
    if objects.is_empty() {
        checks.push(Check::pass(SPECS, "there are none yet: kubectl gmsa credspec new makes one"));
    } else if checks.len() == before {
        checks.push(Check::pass(SPECS, format!("no problems found in {}", objects.len())));
    }
}

/// A pod: as admission reads it, and as the API server describes it.
pub(crate) struct ClusterPod {
    pub admission: Pod,
    pub object: v1::Pod,
}

impl ClusterPod {
    /// Reads the pod that the user named as `NAMESPACE/NAME`, or `NAME` in the namespace of the context.
    pub(crate) async fn find(cluster: &Cluster, named: &str) -> anyhow::Result<(String, String, Self)> {
        let (namespace, name) = named.split_once('/').unwrap_or((&cluster.namespace, named));
        if !is_dns_subdomain(namespace) || !is_dns_subdomain(name) {
            bail!("{named:?} is not NAMESPACE/NAME of a pod");
        }
        let json: Option<Box<RawValue>> = cluster.find(&format!("/api/v1/namespaces/{namespace}/pods/{name}")).await?;
        let json = json.with_context(|| format!("there is no pod {namespace}/{name}"))?;
        let pod = Self::read(&json).context("the pod cannot be parsed")?;
        Ok((namespace.to_owned(), name.to_owned(), pod))
    }

    pub(crate) fn read(json: &RawValue) -> Result<Self, serde_json::Error> {
        Ok(Self { admission: Pod::from_json(json.get())?, object: serde_json::from_str(json.get())? })
    }

    pub(crate) fn phase(&self) -> &str {
        self.object.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
    }
}

/// The state of the slots of one pod.
pub(crate) enum Slots {
    NoGmsa,
    UpToDate,
    /// Names without contents.
    WithoutContents,
    /// Other contents than the credential spec has now.
    Outdated,
}

impl Slots {
    pub(crate) fn of(pod: &Pod, contents: &HashMap<String, Contents>) -> Self {
        let mut state = Self::NoGmsa;
        for slot in pod.slots().filter(Slot::uses_gmsa) {
            let Some(own) = slot.contents else { return Self::WithoutContents };
            let now = slot.name.and_then(|name| contents.get(name));
            if now.is_none_or(|now| own.compare(now).is_err()) {
                state = Self::Outdated;
            } else if matches!(state, Self::NoGmsa) {
                state = Self::UpToDate;
            }
        }
        state
    }
}

fn used(pods: &[Box<RawValue>], contents: &HashMap<String, Contents>, excluded: &[String], checks: &mut Vec<Check>) {
    let (mut up_to_date, mut without_contents, mut outdated, mut unread) = (0_usize, Vec::new(), Vec::new(), 0_usize);
    for json in pods {
        let Ok(pod) = ClusterPod::read(json) else {
            unread += 1;
            continue;
        };
        if matches!(pod.phase(), "Succeeded" | "Failed") {
            continue;
        }
        let metadata = &pod.object.metadata;
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let is_excluded = excluded.iter().any(|name| name == namespace);
        let note = if is_excluded { " (not reviewed by the webhook)" } else { "" };
        let name = format!("{namespace}/{}{note}", metadata.name.as_deref().unwrap_or_default());
        match Slots::of(&pod.admission, contents) {
            Slots::NoGmsa => {}
            Slots::UpToDate => up_to_date += 1,
            Slots::WithoutContents => without_contents.push(name),
            Slots::Outdated => outdated.push(name),
        }
    }
    if !without_contents.is_empty() {
        let (count, names) = (without_contents.len(), some(&without_contents));
        let text = format!("{count} name a credential spec and carry no contents: {names}");
        let fix = "they have no identity: delete them, their controllers create new ones";
        checks.push(Check::found(PODS, Diagnostic::new(&rules::NAME_WITHOUT_CONTENTS, text).with_fix(fix)));
    }
    if !outdated.is_empty() {
        let (count, names) = (outdated.len(), some(&outdated));
        let text = format!("{count} carry other contents than their credential spec has now: {names}");
        checks.push(found(PODS, &rules::CONTENTS_OUTDATED, text));
    }
    if unread > 0 {
        let text = format!("{unread} could not be parsed");
        let fix = "use a newer version of kubectl gmsa";
        checks.push(Check::found(PODS, Diagnostic::new(&rules::NOT_CHECKED, text).with_fix(fix)));
    }
    if without_contents.is_empty() && outdated.is_empty() {
        let text = match up_to_date {
            0 => "none uses GMSA yet".to_owned(),
            1 => "1 uses GMSA, with up-to-date contents".to_owned(),
            count => format!("{count} use GMSA, all with up-to-date contents"),
        };
        checks.push(Check::pass(PODS, text));
    }
}
