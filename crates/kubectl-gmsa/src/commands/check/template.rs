//! A pod or a pod template of a manifest, as its controller and the API server complete it, what holds it, and where its parts are in the manifest.

use gmsa_cluster::manifests::Document;
use gmsa_core::{
    admission::{
        advice::{Advice, same_computer::Replicas},
        workload::Kind,
    },
    diagnostic::{Diagnostic, Rule},
};
use serde_json::{Value, json};

use crate::shared::{admission::NewPod, workloads::controller_in};

use super::{
    other_fields::{self, Slip},
    pointer::dotted,
};

/// An object with a kind.
#[derive(Clone, Copy)]
pub(super) struct Owner<'d> {
    pub value: &'d Value,
    pub kind: &'d str,
    pub group: &'d str,
    /// How many steps it is below the document.
    pub depth: usize,
}

impl<'d> Owner<'d> {
    pub(super) fn of(value: &'d Value, depth: usize) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let group = text("apiVersion")?.split_once('/').map_or("", |(group, _)| group);
        Some(Self { value, kind: text("kind")?, group, depth })
    }

    pub(super) fn is_pod(&self) -> bool {
        self.kind == "Pod" && self.group.is_empty()
    }

    /// The workload that it is, where it is one of Kubernetes.
    pub(super) fn workload(&self) -> Option<Kind> {
        Kind::of(self.kind, self.group)
    }

    /// The place of its template, where it is a kind of Kubernetes.
    pub(super) fn template(&self) -> Option<&'static str> {
        self.workload().map(Kind::template)
    }

    /// Whether another object controls it, which is checked itself.
    pub(super) fn is_controlled(&self) -> bool {
        controller_in(self.value).is_some()
    }
}

/// A pod to check, and its place in the manifests.
pub(super) struct CheckedPod<'d> {
    pub document: &'d Document,
    /// The value of the document.
    pub value: &'d Value,
    /// The innermost object with a kind that holds it.
    pub owner: Owner<'d>,
    /// The place in the document of everything that is about the pod.
    pub root: String,
    /// The place of everything about it and the other pods of its workflow.
    pub around: String,
    pub pod: NewPod,
    pub namespace: String,
    /// What reports call it: `Rollout shop/web`.
    pub object: String,
    /// What reports call its pod: nothing where it has a name of its own.
    pub template: Option<String>,
    /// Parts of the pod and where each is in the document, as JSON Pointers: the innermost first, the pod itself last.
    pub places: Vec<(String, String)>,
    /// The fields of the pod that are misspelt in the document.
    pub slips: Vec<Slip>,
}

/// Completes a pod as its controller, which is named so, and the API server do. Gives the fields that were misspelt.
pub(super) fn complete(pod: &mut Value, controller: Option<&str>) -> Vec<Slip> {
    if let (Some(name), Some(pod)) = (controller, pod.as_object_mut()) {
        let metadata = pod.entry("metadata").or_insert_with(|| json!({}));
        if !metadata.is_object() {
            *metadata = json!({});
        }
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.remove("name");
            metadata.insert("generateName".to_owned(), Value::from(format!("{name}-")));
        }
    }
    let slips = other_fields::correct(pod);
    default_service_account_name(pod);
    slips
}

/// Copies the deprecated `serviceAccount` to `serviceAccountName` where that is empty, as kube-apiserver does before it calls
/// a webhook.
fn default_service_account_name(pod: &mut Value) {
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let is_empty = |value: &Value| value.is_null() || value == "";
    if spec.get("serviceAccountName").is_none_or(is_empty)
        && let Some(name) = spec.get("serviceAccount").filter(|name| !is_empty(name)).cloned()
    {
        spec.insert("serviceAccountName".to_owned(), name);
    }
}

impl CheckedPod<'_> {
    /// Whether the document is the pod.
    pub(super) fn is_document(&self) -> bool {
        self.template.is_none() && self.owner.depth == 0
    }

    /// Whether its kind is one of Kubernetes.
    pub(super) fn is_of_kubernetes(&self) -> bool {
        self.owner.is_pod() || self.owner.template().is_some()
    }

    /// Whether the API server has stored it already.
    pub(super) fn exists(&self) -> bool {
        self.template.is_none() && self.pod.json.pointer("/metadata/uid").is_some()
    }

    /// How many pods its workload has, where that says so.
    pub(super) fn count(&self) -> Option<u64> {
        self.owner.value.pointer("/spec/replicas").and_then(Value::as_u64)
    }

    /// What the names of its pods follow from, where a workload of Kubernetes creates them.
    pub(super) fn replicas(&self) -> Option<Replicas<'_>> {
        let kind = self.owner.workload()?;
        let value = self.owner.value;
        let name = value.pointer("/metadata/name").and_then(Value::as_str)?;
        let first = value.pointer("/spec/ordinals/start").and_then(Value::as_u64).unwrap_or(0);
        Some(Replicas { kind, name, count: self.count(), first })
    }

    /// A text of the pod, where it is there and not empty.
    pub(super) fn text(&self, pointer: &str) -> Option<&str> {
        self.pod.json.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// The place in the document of a part of the workload that creates the pod, where that part is there.
    pub(super) fn of_workload(&self, pointer: &str) -> Option<String> {
        self.owner.template().filter(|_| self.owner.value.pointer(pointer).is_some())?;
        Some(format!("{}{pointer}", self.root))
    }

    /// The place in the document of a part of the pod.
    pub(super) fn place(&self, pointer: &str) -> String {
        let written = |at: String, slip: &Slip| slip.written(&at).unwrap_or(at);
        let pointer = &self.slips.iter().rev().fold(pointer.to_owned(), written);
        let below = |part: &str| pointer.strip_prefix(part).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let found = self.places.iter().find_map(|(part, place)| Some(format!("{place}{}", below(part)?)));
        found.unwrap_or_else(|| pointer.clone())
    }

    /// A finding about a part of the pod.
    pub(super) fn finding(&self, rule: &'static Rule, pointer: &str, message: impl Into<String>) -> Diagnostic {
        self.finding_at(rule, &self.place(pointer), message)
    }

    /// Advice about a place in the document.
    pub(super) fn advised_at(&self, place: &str, advice: Advice) -> Diagnostic {
        let finding = self.finding_at(advice.rule, place, advice.text);
        Diagnostic { fix: advice.fix.map(str::to_owned), ..finding.with_severity(advice.severity) }
    }

    /// A finding about a place in the document.
    pub(super) fn finding_at(&self, rule: &'static Rule, place: &str, message: impl Into<String>) -> Diagnostic {
        Diagnostic { object: self.object.clone(), field: dotted(place), ..Diagnostic::new(rule, message) }
            .at(self.document.location_of(place))
    }
}
