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

use super::pointer::{Segment, dotted, pointer};

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
    /// The innermost enclosing object with a kind.
    pub owner: Owner<'d>,
    /// The place in the document that contains everything about the pod.
    pub root: String,
    /// The place of the pod itself.
    pub at: String,
    pub pod: NewPod,
    pub namespace: String,
    /// Its name in reports: `Rollout shop/web`.
    pub object: String,
    /// The name of its template in reports; `None` for a pod.
    pub template: Option<String>,
    /// Its misspelt service account.
    pub misspelling: Option<Misspelling>,
}

/// A misspelt field for the service account. It is corrected before the decision: otherwise `serviceaccountName` would be reported as
/// a missing grant, and the fix would grant the credential spec to `default`.
pub(super) struct Misspelling {
    /// The key as it is written.
    pub key: String,
    pub field: &'static str,
}

/// Completes a pod as its controller (with this name) and the API server do. Returns the misspelt service account.
pub(super) fn complete(pod: &mut Value, controller: Option<&str>) -> Option<Misspelling> {
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
    let misspelling = correct_service_account(pod);
    default_service_account_name(pod);
    misspelling
}

/// Renames a misspelt field for the service account.
fn correct_service_account(pod: &mut Value) -> Option<Misspelling> {
    const FIELDS: [&str; 2] = ["serviceAccountName", "serviceAccount"];
    let spec = pod.get_mut("spec")?.as_object_mut()?;
    let mut keys = spec.keys().filter(|key| !FIELDS.contains(&&***key));
    let (key, field) = keys.find_map(|key| {
        let field = FIELDS.into_iter().find(|field| is_misspelling(key, field))?;
        Some((key.clone(), field))
    })?;
    let value = spec.remove(&key)?;
    spec.entry(field).or_insert(value);
    Some(Misspelling { key, field })
}

/// Whether a key is this field in another case, or with at most one wrong letter in six.
fn is_misspelling(key: &str, field: &str) -> bool {
    let bare = |text: &str| text.replace(['-', '_'], "").to_ascii_lowercase();
    // A much longer key is another word.
    key.len() < 2 * field.len() && strsim::osa_distance(&bare(key), &bare(field)) <= field.len() / 6
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

impl Misspelling {
    /// The place in the pod.
    pub(super) fn pointer(&self) -> String {
        format!("/spec{}", pointer(&[Segment::Field(&self.key)]))
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
        let written = self
            .misspelling
            .as_ref()
            .filter(|misspelling| pointer.strip_prefix("/spec/").is_some_and(|field| field == misspelling.field));
        match written {
            Some(misspelling) => self.place(&misspelling.pointer()),
            None => format!("{}{pointer}", self.at),
        }
    }

    /// Whether a place in the document is this field of the pod's or a container's `windowsOptions`.
    pub(super) fn is_slot_field(&self, at: &str, field: &str) -> bool {
        let steps: Vec<&str> = at.strip_prefix(&*self.at).unwrap_or_default().split('/').collect();
        let ["", "spec", steps @ ..] = steps.as_slice() else { return false };
        let of_container = match steps {
            ["containers" | "initContainers" | "ephemeralContainers", _, steps @ ..] => Some(steps),
            _ => None,
        };
        of_container.unwrap_or(steps) == ["securityContext", "windowsOptions", field]
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
