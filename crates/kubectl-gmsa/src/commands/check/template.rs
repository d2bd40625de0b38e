//! A pod or pod template of a manifest, completed as its controller and the API server do, with its owner and the places of its parts.

use gmsa_cluster::manifests::Document;
use gmsa_core::{
    admission::{
        advice::{Advice, same_computer::Replicas},
        workload::Kind,
    },
    diagnostic::{Diagnostic, Rule},
};
use serde_json::{Value, json};

use crate::shared::{admission::NewPod, kinds::controller_in};

use super::{
    other_fields::{self, Misspelling},
    pointer::dotted,
};

/// An object with a kind.
#[derive(Clone, Copy)]
pub(super) struct Owner<'d> {
    pub value: &'d Value,
    pub kind: &'d str,
    pub group: &'d str,
    /// Its depth below the document.
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

    /// Its kind, if it is a workload of Kubernetes.
    pub(super) fn workload(&self) -> Option<Kind> {
        Kind::of(self.kind, self.group)
    }

    /// The place of its template, if it is a workload of Kubernetes.
    pub(super) fn template(&self) -> Option<&'static str> {
        self.workload().map(Kind::template)
    }

    /// Whether another object controls it. That object is checked instead.
    pub(super) fn is_controlled(&self) -> bool {
        controller_in(self.value).is_some()
    }
}

/// A pod to check, and its place in the manifests.
pub(super) struct CheckedPod<'d> {
    pub document: &'d Document,
    /// The value of the document.
    pub value: &'d Value,
    /// The innermost enclosing object with a kind.
    pub owner: Owner<'d>,
    /// The place in the document that contains everything about the pod.
    pub root: String,
    /// The place that contains everything about all pods of its workflow.
    pub around: String,
    pub pod: NewPod,
    pub namespace: String,
    /// Its name in reports: `Rollout shop/web`.
    pub object: String,
    /// The name of its template in reports; `None` for a pod.
    pub template: Option<String>,
    /// Parts of the pod and the place of each in the document, as JSON Pointers: the innermost first, the pod itself last.
    pub places: Vec<(String, String)>,
    /// The fields of the pod that are misspelt in the document.
    pub misspellings: Vec<Misspelling>,
}

/// Completes a pod as its controller (with this name) and the API server do. Returns the misspelt fields.
pub(super) fn complete(pod: &mut Value, controller: Option<&str>) -> Vec<Misspelling> {
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
    let misspellings = other_fields::correct(pod);
    default_service_account_name(pod);
    misspellings
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

    /// The replicas of its workload, if set.
    pub(super) fn count(&self) -> Option<u64> {
        self.owner.value.pointer("/spec/replicas").and_then(Value::as_u64)
    }

    /// The data that determines the pod names, if a workload of Kubernetes creates the pods.
    pub(super) fn replicas(&self) -> Option<Replicas<'_>> {
        let kind = self.owner.workload()?;
        let value = self.owner.value;
        let name = value.pointer("/metadata/name").and_then(Value::as_str)?;
        let first = value.pointer("/spec/ordinals/start").and_then(Value::as_u64).unwrap_or(0);
        Some(Replicas { kind, name, count: self.count(), first })
    }

    /// A non-empty text of the pod.
    pub(super) fn text(&self, pointer: &str) -> Option<&str> {
        self.pod.json.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// The place in the document of a part of the workload, if that part exists.
    pub(super) fn of_workload(&self, pointer: &str) -> Option<String> {
        self.owner.template().filter(|_| self.owner.value.pointer(pointer).is_some())?;
        Some(format!("{}{pointer}", self.root))
    }

    /// The place in the document of a part of the pod.
    pub(super) fn place(&self, pointer: &str) -> String {
        let written = |at: String, misspelling: &Misspelling| misspelling.written(&at).unwrap_or(at);
        let pointer = &self.misspellings.iter().rev().fold(pointer.to_owned(), written);
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
