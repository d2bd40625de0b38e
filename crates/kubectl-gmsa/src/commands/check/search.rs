//! Finds the pods and pod templates of a manifest of any kind.
//!
//! A kind of Kubernetes has its template in a known place. In any other object, each value that has a `spec` with a list of `containers` is
//! a pod template: the `Rollout` of Argo, the `Service` of Knative, the `ScaledJob` of KEDA, and objects that contain whole manifests.
//! Invariants: at most [`MAX_TEMPLATES`] of an object are checked; the reader of manifests bounds its depth and its values.

use gmsa_cluster::manifests::Document;
use serde_json::Value;

use crate::shared::admission::NewPod;

use super::{
    pointer::{Segment, dotted, pointer},
    template::{CheckedPod, Owner, complete},
};

/// The groups of objects that record requests and create nothing.
const RECORDS: [&str; 2] = ["admission.k8s.io", "audit.k8s.io"];

/// The groups (or their suffixes) of policies, which contain patterns of fields, and changes of pods.
const POLICIES: [&str; 3] = ["kyverno.io", "gatekeeper.sh", "admissionregistration.k8s.io"];

/// The most pod templates that are checked in one object.
const MAX_TEMPLATES: usize = 100;

fn is_policy(group: &str) -> bool {
    POLICIES.iter().any(|of| group.ends_with(of))
}

/// A walk over a document.
pub(super) struct Search<'d> {
    document: &'d Document,
    /// The default namespace.
    namespace: &'d str,
    /// The path from the document to the current value.
    path: Vec<Segment<'d>>,
    /// Pods and pod templates.
    pub pods: Vec<CheckedPod<'d>>,
    /// The number of templates beyond the limit.
    pub more: usize,
}

impl<'d> Search<'d> {
    /// Finds the pods. If there are several templates, each is named by its place.
    pub(super) fn of(document: &'d Document, value: &'d Value, namespace: &'d str) -> Self {
        let mut search = Self { document, namespace, path: Vec::new(), pods: Vec::new(), more: 0 };
        let creates_pods = |owner: &Owner<'_>| !RECORDS.contains(&owner.group) && !is_policy(owner.group);
        if let Some(owner) = Owner::of(value, 0).filter(creates_pods) {
            search.object(value, owner);
        }
        if let [CheckedPod { template: Some(template), .. }] = search.pods.as_mut_slice() {
            "pod template".clone_into(template);
        }
        search
    }

    /// Whether the document has no kind, is a record of a request, or is an object that another one controls.
    pub(super) fn is_of_none(document: &Value) -> bool {
        let is_none = |owner: Owner<'_>| RECORDS.contains(&owner.group) || owner.is_controlled();
        Owner::of(document, 0).is_none_or(is_none)
    }

    /// Whether the document is a policy.
    pub(super) fn is_policy(document: &Value) -> bool {
        Owner::of(document, 0).is_some_and(|owner| is_policy(owner.group))
    }

    /// The place of the pod or the pod template in a document of a Kubernetes kind.
    pub(super) fn place_of_pod(document: &Value) -> Option<&'static str> {
        let owner = Owner::of(document, 0)?;
        if owner.is_pod() { Some("") } else { owner.template() }
    }

    fn below(&mut self, step: Segment<'d>, value: &'d Value, owner: Owner<'d>) {
        self.path.push(step);
        match value {
            Value::Object(_) => self.object(value, Owner::of(value, self.path.len()).unwrap_or(owner)),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, item)| self.below(Segment::Item(index), item, owner));
            }
            _ => {}
        }
        self.path.pop();
    }

    fn object(&mut self, value: &'d Value, owner: Owner<'d>) {
        let is_owner = owner.depth == self.path.len();
        if is_owner && owner.is_pod() {
            return self.add(value, owner, ["", ""]);
        }
        if is_owner && owner.is_controlled() {
            return;
        }
        if is_owner && let Some(at) = owner.template() {
            // All fields of Kubernetes kinds are known, so an unknown field is always a mistake.
            return value.pointer(at).into_iter().for_each(|pod| self.add(pod, owner, [at, ""]));
        }
        let containers = value.pointer("/spec/containers").and_then(Value::as_array);
        if containers.is_some_and(|list| list.iter().all(Value::is_object)) {
            return self.add(value, owner, ["", ""]);
        }
        for (key, value) in value.as_object().into_iter().flatten() {
            // Metadata and status of the owner record the past.
            if !(is_owner && (key == "metadata" || key == "status")) {
                self.below(Segment::Field(key), value, owner);
            }
        }
    }

    /// Adds the pod at `at` below the current value; everything about it is below `root`.
    fn add(&mut self, value: &'d Value, owner: Owner<'d>, [at, root]: [&str; 2]) {
        if self.pods.len() == MAX_TEMPLATES {
            self.more += 1;
            return;
        }
        let here = pointer(&self.path);
        let (at, root) = (format!("{here}{at}"), format!("{here}{root}"));
        let template = (!owner.is_pod()).then(|| format!("pod template {}", dotted(&at)));
        let mut pod = value.clone();
        let text = |pointer: &str| owner.value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        let name = text("/metadata/name").or_else(|| text("/metadata/generateName")).unwrap_or_default();
        let namespace = text("/metadata/namespace").unwrap_or(self.namespace).to_owned();
        let object = format!("{} {namespace}/{name}", owner.kind);
        let misspelling = complete(&mut pod, template.is_some().then_some(name));
        let document = self.document;
        self.pods.push(CheckedPod {
            document,
            owner,
            root,
            at,
            pod: NewPod::new(&namespace, pod),
            namespace,
            object,
            template,
            misspelling,
        });
    }
}
