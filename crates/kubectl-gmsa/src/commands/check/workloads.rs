//! The workloads of a cluster as manifests: controllers, and pods without a controller.
//!
//! Invariants: lists are read in pages, and only objects to check are kept of each page; nothing is created; a kind without the right
//! to list it is reported as not checked, and the others are still read.

use std::collections::BTreeMap;

use anyhow::bail;
use gmsa_cluster::manifests::Document;
use gmsa_core::{credspec::is_dns_subdomain, diagnostic::Diagnostic};
use serde_json::Value;

use super::template::Owner;
use crate::shared::{
    kinds::{Kind, controller_in},
    output::{Report, first_five},
    rules,
    world::{World, pods_of},
};

/// An object of a list; `None` if it is not checked.
fn listed(mut object: Value) -> Option<Value> {
    if is_controlled(&object) || has_ended(&object) {
        return None;
    }
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        // A large part of the object that no check reads.
        metadata.remove("managedFields");
        // Its controller is not checked, so the object itself is.
        metadata.remove("ownerReferences");
    }
    Some(object)
}

/// Whether its controller is checked instead: a workload of these kinds, a Pod, or the kubelet for a static pod. An object with 0
/// replicas of another controller is history.
fn is_controlled(object: &Value) -> bool {
    let is_checked = |owner: Owner<'_>| owner.workload().is_some() || owner.is_pod() || owner.kind == "Node";
    let is_known = |owner| Owner::of(owner).is_some_and(is_checked);
    controller_in(object).is_some_and(|owner| is_known(owner) || object.pointer("/spec/replicas") == Some(&0.into()))
}

/// Whether it creates no more pods: a finished Job, or a Pod whose containers have ended.
fn has_ended(object: &Value) -> bool {
    let phase = object.pointer("/status/phase").and_then(Value::as_str);
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let is_done = |condition: &Value| {
        let text = |field: &str| condition.get(field).and_then(Value::as_str).unwrap_or_default();
        matches!(text("type"), "Complete" | "Failed") && text("status") == "True"
    };
    matches!(phase, Some("Succeeded" | "Failed")) || conditions.into_iter().flatten().any(is_done)
}

/// Reads the workloads of a namespace, or of all. Failed reads go to the report.
pub(super) async fn read(world: &World, namespace: Option<&str>, report: &mut Report) -> anyhow::Result<Vec<Document>> {
    if let Some(name) = namespace.filter(|name| name.contains('.') || !is_dns_subdomain(name)) {
        bail!("{name:?} is not the name of a namespace");
    }
    let (mut documents, mut unread) = (Vec::new(), BTreeMap::<(String, bool), Vec<String>>::new());
    let workloads =
        Kind::ALL.map(|kind| (kind.api_version(), kind.as_str(), kind.plural(), kind.collection(namespace)));
    let pods = ("v1".to_owned(), "Pod", "pods".to_owned(), pods_of(namespace));
    for (version, kind, plural, path) in workloads.into_iter().chain([pods]) {
        match world.some_of(&path, listed).await {
            Ok(objects) => {
                documents.extend(objects.iter().map(|object| document(&version, kind, object)));
            }
            Err(error) => {
                let cause = (error.cause.clone(), error.is_forbidden());
                unread.entry(cause).or_default().push(plural);
            }
        }
    }
    // An empty list does not prove that the namespace is missing: listing works without the right to read it.
    if let Some(name) = namespace.filter(|_| documents.is_empty() && unread.is_empty())
        && let Err(error) = world.get::<Value>(&format!("/api/v1/namespaces/{name}")).await
        && error.is_missing()
    {
        bail!("there is no namespace {name:?}");
    }
    report.findings.extend(unread.into_iter().map(|((cause, is_forbidden), plurals)| {
        let place = namespace.map_or(String::new(), |name| format!(" in namespace {name}"));
        let found = Diagnostic::new(&rules::NOT_CHECKED, format!("could not be checked: {cause}"));
        // The only known remedy is a user with the right.
        let fix = is_forbidden.then(|| rules::NOT_CHECKED.remedy.to_owned());
        Diagnostic { object: format!("{}{place}", first_five(&plurals)), fix, ..found }
    }));
    Ok(documents)
}

/// An object as a manifest, at its namespace, kind and name.
fn document(version: &str, kind: &str, object: &Value) -> Document {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let name = format!("{}/{kind}/{}", text("/metadata/namespace"), text("/metadata/name"));
    let mut document = Document::of_api(&name, version, kind, object);
    // An object of the API has no line number.
    document.location.position = None;
    document
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_another_workload_controls_or_has_ended_is_left_out() {
        let owned = |version: &str, kind: &str, controller: bool| json!({"metadata": {"ownerReferences": [{"apiVersion": version, "kind": kind, "controller": controller}]}});
        let mut history = owned("argoproj.io/v1alpha1", "Rollout", true);
        history["spec"] = json!({"replicas": 0});
        let job =
            |condition: &str, status: &str| json!({"status": {"conditions": [{"type": condition, "status": status}]}});
        for (object, is_kept) in [
            (json!({}), true),
            (owned("apps/v1", "Deployment", true), false),
            (owned("apps/v1", "Deployment", false), true),
            (owned("v1", "Node", true), false),
            (owned("argoproj.io/v1alpha1", "Rollout", true), true),
            (owned("example.com/v1", "Deployment", true), true),
            (history, false),
            (json!({"status": {"phase": "Running"}}), true),
            (json!({"status": {"phase": "Succeeded"}}), false),
            (json!({"status": {"phase": "Failed"}}), false),
            (job("Complete", "True"), false),
            (job("Failed", "True"), false),
            (job("Failed", "False"), true),
            (job("Suspended", "True"), true),
        ] {
            assert_eq!(listed(object.clone()).is_some(), is_kept, "{object}");
        }
    }
}
