//! The pods and pod templates of a manifest, whatever its kind.
//!
//! A kind of Kubernetes has its template in a known place. In any other object, whatever has a `spec` with a list of `containers` is
//! a pod template: the `Rollout` of Argo, the `Service` of Knative, the `ScaledJob` of KEDA, and objects that carry whole manifests.
//! Invariants: at most [`MAX_TEMPLATES`] of an object are taken; the reader of manifests bounds its depth and its values.

use gmsa_cluster::manifests::Document;
use gmsa_core::{
    admission::workload::template_pointer,
    diagnostic::{Diagnostic, Location, Position, Rule},
};
use serde_json::{Map, Value, json};

use super::{
    argo,
    pointer::{Step, dotted, pointer},
};

/// The most pod templates of one object that are checked.
const MAX_TEMPLATES: usize = 100;

/// A pod to check, and its place in the manifests.
pub(super) struct CheckedPod<'d> {
    pub document: &'d Document,
    /// The innermost object with a kind that holds the pod.
    owner: Owner<'d>,
    /// The place in the document of everything that is about the pod.
    pub root: String,
    pub pod: Value,
    pub namespace: String,
    /// What reports call it: `Rollout shop/web`.
    pub object: String,
    /// What reports call its pod: nothing where it has a name of its own.
    pub template: Option<String>,
    /// Parts of the pod and where each is in the document, as JSON Pointers: the innermost first, the pod itself last.
    places: Vec<(String, String)>,
}

/// An object with a kind.
#[derive(Clone, Copy)]
pub(super) struct Owner<'d> {
    pub value: &'d Value,
    kind: &'d str,
    group: &'d str,
    /// How many steps it is below the document.
    depth: usize,
}

impl<'d> Owner<'d> {
    fn of(value: &'d Value, depth: usize) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let group = text("apiVersion")?.split_once('/').map_or("", |(group, _)| group);
        Some(Self { value, kind: text("kind")?, group, depth })
    }

    fn is_pod(&self) -> bool {
        self.kind == "Pod" && self.group.is_empty()
    }

    /// The place of its template, where it is a kind of Kubernetes.
    fn template(&self) -> Option<&'static str> {
        let Self { kind, group, .. } = self;
        if group.is_empty() { template_pointer(kind) } else { template_pointer(&format!("{kind}.{group}")) }
    }

    /// Whether another object controls it, which is checked itself.
    fn is_controlled(&self) -> bool {
        let owners = self.value.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        owners.into_iter().flatten().any(|owner| owner.get("controller") == Some(&Value::Bool(true)))
    }
}

/// The pods of a document. Objects without a namespace are in `namespace`.
pub(super) fn pods<'d>(document: &'d Document, namespace: &'d str) -> Search<'d> {
    let mut search = Search { document, namespace, path: Vec::new(), found: Vec::new(), more: 0 };
    if let Some(owner) = Owner::of(&document.value, 0) {
        search.object(&document.value, owner);
    }
    if search.found.len() > 1 {
        for pod in &mut search.found {
            if pod.template.is_some() {
                pod.template = Some(format!("pod template {}", dotted(&pod.place(""))));
            }
        }
    }
    search
}

/// A walk over a document.
pub(super) struct Search<'d> {
    document: &'d Document,
    namespace: &'d str,
    /// The way from the document to the value at hand.
    path: Vec<Step<'d>>,
    pub found: Vec<CheckedPod<'d>>,
    /// How many were left out.
    pub more: usize,
}

impl<'d> Search<'d> {
    fn below(&mut self, step: Step<'d>, value: &'d Value, owner: Owner<'d>) {
        self.path.push(step);
        match value {
            Value::Object(_) => self.object(value, Owner::of(value, self.path.len()).unwrap_or(owner)),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, item)| self.below(Step::Item(index), item, owner));
            }
            _ => {}
        }
        self.path.pop();
    }

    fn object(&mut self, value: &'d Value, owner: Owner<'d>) {
        let is_owner = owner.depth == self.path.len();
        if is_owner && owner.is_pod() {
            return self.template(value, owner, "");
        }
        if is_owner && owner.is_controlled() {
            return;
        }
        if is_owner && let Some(template) = owner.template() {
            return value.pointer(template).into_iter().for_each(|pod| self.template(pod, owner, template));
        }
        if value
            .pointer("/spec/containers")
            .and_then(Value::as_array)
            .is_some_and(|list| list.iter().all(Value::is_object))
        {
            return self.template(value, owner, "");
        }
        if owner.group == argo::GROUP && value.get("templates").is_some_and(Value::is_array) {
            for (pod, root, places) in argo::templates(value, &pointer(&self.path)) {
                self.add(pod, owner, root, places);
            }
            return;
        }
        for (key, value) in value.as_object().into_iter().flatten() {
            // Beside the owner's own fields there are records of what was.
            if !(is_owner && (key == "metadata" || key == "status")) {
                self.below(Step::Field(key), value, owner);
            }
        }
    }

    /// Adds the pod at `below` the value at hand.
    fn template(&mut self, pod: &Value, owner: Owner<'d>, below: &str) {
        if self.found.len() == MAX_TEMPLATES {
            self.more += 1;
            return;
        }
        let at = pointer(&self.path);
        // All fields of a kind of Kubernetes are known, so one that is not is a mistake wherever it stands.
        let root = if owner.depth == self.path.len() && owner.template().is_some() {
            at.clone()
        } else {
            format!("{at}{below}")
        };
        self.add(pod.clone(), owner, root, vec![(String::new(), at + below)]);
    }

    fn add(&mut self, mut pod: Value, owner: Owner<'d>, root: String, places: Vec<(String, String)>) {
        if self.found.len() == MAX_TEMPLATES {
            self.more += 1;
            return;
        }
        let text = |pointer: &str| owner.value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        let name = text("/metadata/name").or_else(|| text("/metadata/generateName")).unwrap_or_default();
        let namespace = text("/metadata/namespace").unwrap_or(self.namespace).to_owned();
        if !owner.is_pod()
            && let Some(pod) = pod.as_object_mut()
        {
            name_pod(pod, name);
        }
        default_service_account_name(&mut pod);
        self.found.push(CheckedPod {
            document: self.document,
            owner,
            root,
            pod,
            object: format!("{} {namespace}/{name}", owner.kind),
            namespace,
            template: (!owner.is_pod()).then(|| "pod template".to_owned()),
            places,
        });
    }
}

/// Names a pod as its controller does.
fn name_pod(pod: &mut Map<String, Value>, owner: &str) {
    let metadata = pod.entry("metadata").or_insert_with(|| json!({}));
    if !metadata.is_object() {
        *metadata = json!({});
    }
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.remove("name");
        metadata.insert("generateName".to_owned(), Value::from(format!("{owner}-")));
    }
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
        self.template.is_none() && self.pod.pointer("/metadata/uid").is_some()
    }

    pub(super) fn replicas(&self) -> Option<u64> {
        self.owner.value.pointer("/spec/replicas").and_then(Value::as_u64)
    }

    /// A text of the pod, where it is there and not empty.
    pub(super) fn text(&self, pointer: &str) -> Option<&str> {
        self.pod.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// The place in the document of a part of the pod.
    pub(super) fn place(&self, pointer: &str) -> String {
        let below = |part: &str| pointer.strip_prefix(part).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let found = self.places.iter().find_map(|(part, place)| Some(format!("{place}{}", below(part)?)));
        found.unwrap_or_else(|| pointer.to_owned())
    }

    pub(super) fn line(&self, pointer: &str) -> u64 {
        self.document.line_of(&self.place(pointer))
    }

    /// A finding about a part of the pod.
    pub(super) fn finding(&self, rule: &'static Rule, pointer: &str, message: impl Into<String>) -> Diagnostic {
        self.finding_at(rule, &self.place(pointer), message)
    }

    /// A finding about a place in the document.
    pub(super) fn finding_at(&self, rule: &'static Rule, place: &str, message: impl Into<String>) -> Diagnostic {
        let Location { file, position } = self.document.location.clone();
        let position = position.map(|position| Position { line: self.document.line_of(place), ..position });
        Diagnostic { object: self.object.clone(), field: dotted(place), ..Diagnostic::new(rule, message) }
            .at(Location { file, position })
    }
}
