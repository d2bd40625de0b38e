//! Where the pods and pod templates of a manifest are, whatever its kind.
//!
//! A kind of Kubernetes has its template in a known place. In any other object, whatever has a `spec` with a list of `containers` is
//! a pod template: the `Rollout` of Argo, the `Service` of Knative, the `ScaledJob` of KEDA, and objects that carry whole manifests.
//! Invariants: at most [`MAX_TEMPLATES`] of an object are taken; the reader of manifests bounds its depth and its values.

use gmsa_core::admission::workload::template_pointer;
use serde_json::Value;

use super::{
    argo,
    pointer::{Step, pointer},
};

/// The groups of objects that are records of requests, and create nothing.
const RECORDS: [&str; 2] = ["admission.k8s.io", "audit.k8s.io"];

/// The groups, or their ends, of policies, which hold patterns of fields.
const PATTERNS: [&str; 3] = ["kyverno.io", "gatekeeper.sh", "admissionregistration.k8s.io"];

/// The most pod templates of one object that are checked.
const MAX_TEMPLATES: usize = 100;

/// An object with a kind.
#[derive(Clone, Copy)]
pub(super) struct Owner<'d> {
    pub value: &'d Value,
    pub kind: &'d str,
    group: &'d str,
    /// How many steps it is below the document.
    pub depth: usize,
}

impl<'d> Owner<'d> {
    fn of(value: &'d Value, depth: usize) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let group = text("apiVersion")?.split_once('/').map_or("", |(group, _)| group);
        Some(Self { value, kind: text("kind")?, group, depth })
    }

    pub(super) fn is_pod(&self) -> bool {
        self.kind == "Pod" && self.group.is_empty()
    }

    /// The place of its template, where it is a kind of Kubernetes.
    pub(super) fn template(&self) -> Option<&'static str> {
        let Self { kind, group, .. } = self;
        if group.is_empty() { template_pointer(kind) } else { template_pointer(&format!("{kind}.{group}")) }
    }

    /// Whether another object controls it, which is checked itself.
    fn is_controlled(&self) -> bool {
        let owners = self.value.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        owners.into_iter().flatten().any(|owner| owner.get("controller") == Some(&Value::Bool(true)))
    }
}

/// A pod, a pod template, or a step of an Argo workflow.
pub(super) struct Found<'d> {
    pub value: &'d Value,
    /// Its place in the document.
    pub at: String,
    /// The innermost object with a kind that holds it.
    pub owner: Owner<'d>,
    /// The place in the document of everything that is about it.
    pub root: String,
    /// The workflow of a step, and its place.
    pub workflow: Option<(&'d Value, String)>,
}

/// A walk over a document.
#[derive(Default)]
pub(super) struct Search<'d> {
    /// The way from the document to the value at hand.
    path: Vec<Step<'d>>,
    pub found: Vec<Found<'d>>,
    /// How many were left out.
    pub more: usize,
}

impl<'d> Search<'d> {
    pub(super) fn of(document: &'d Value) -> Self {
        let mut search = Self::default();
        if let Some(owner) = Owner::of(document, 0).filter(|owner| !RECORDS.contains(&owner.group)) {
            search.object(document, owner);
        }
        search
    }

    /// Whether no pod is made of this document: a record of a request, a pattern for other objects, or what another object controls.
    pub(super) fn is_of_none(document: &Value) -> bool {
        let is_pattern = |group: &str| PATTERNS.iter().any(|of| group.ends_with(of));
        let is_none =
            |owner: Owner<'_>| RECORDS.contains(&owner.group) || is_pattern(owner.group) || owner.is_controlled();
        Owner::of(document, 0).is_none_or(is_none)
    }

    /// The place of the pod, or the pod template, of a document whose kind is one of Kubernetes.
    pub(super) fn place_of_pod(document: &Value) -> Option<&'static str> {
        let owner = Owner::of(document, 0)?;
        if owner.is_pod() { Some("") } else { owner.template() }
    }

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
            return self.add(value, owner, ["", ""], None);
        }
        if is_owner && owner.is_controlled() {
            return;
        }
        if is_owner && let Some(at) = owner.template() {
            // All fields of a kind of Kubernetes are known, so one that is not is a mistake wherever it stands.
            return value.pointer(at).into_iter().for_each(|pod| self.add(pod, owner, [at, ""], None));
        }
        let containers = value.pointer("/spec/containers").and_then(Value::as_array);
        if containers.is_some_and(|list| list.iter().all(Value::is_object)) {
            return self.add(value, owner, ["", ""], None);
        }
        if owner.group == argo::GROUP && value.get("templates").is_some_and(Value::is_array) {
            for (index, step) in argo::steps(value) {
                let at = format!("/templates/{index}");
                self.add(step, owner, [&at, &at], Some(value));
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

    /// Adds a pod, which is at `at` below the value at hand; everything about it is at `root` below that.
    fn add(&mut self, value: &'d Value, owner: Owner<'d>, [at, root]: [&str; 2], workflow: Option<&'d Value>) {
        if self.found.len() == MAX_TEMPLATES {
            self.more += 1;
            return;
        }
        let here = pointer(&self.path);
        let (at, root) = (format!("{here}{at}"), format!("{here}{root}"));
        self.found.push(Found { value, at, owner, root, workflow: workflow.map(|workflow| (workflow, here)) });
    }
}
