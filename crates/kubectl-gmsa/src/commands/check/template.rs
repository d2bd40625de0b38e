//! The pods and pod templates of a manifest of any kind, completed as their controller and the API server do, with the places of their parts.
//!
//! A kind of Kubernetes has its template in a known place. In any other object, each value that has a `spec` with a list of `containers` is
//! a pod template: the `Rollout` of Argo, the `Service` of Knative, the `ScaledJob` of KEDA, and objects that contain whole manifests.
//! Invariants: at most [`MAX_TEMPLATES`] of an object are checked; the reader of manifests bounds its depth and its values.

use std::borrow::Cow;

use gmsa_cluster::manifests::Document;
use gmsa_core::{
    admission::{
        advice::{Advice, same_computer::Replicas},
        workload::Kind,
    },
    diagnostic::{Diagnostic, Rule},
    pointer::{dotted, escape},
};
use serde_json::Value;

use crate::shared::{admission::NewPod, kinds::controller_in, output::ReportRow};

/// The groups of objects that record requests and create nothing.
const RECORDS: [&str; 2] = ["admission.k8s.io", "audit.k8s.io"];

/// The groups (or their suffixes) of policies, which contain patterns of fields, and changes of pods.
const POLICIES: [&str; 3] = ["kyverno.io", "gatekeeper.sh", "admissionregistration.k8s.io"];

/// An object with a kind.
#[derive(Clone, Copy)]
pub(super) struct Owner<'d> {
    pub value: &'d Value,
    pub kind: &'d str,
    pub group: &'d str,
    /// The length of its place in the document.
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

    /// Whether it records a request, and creates nothing.
    pub(super) fn is_record(&self) -> bool {
        RECORDS.contains(&self.group)
    }

    pub(super) fn is_policy(&self) -> bool {
        POLICIES.iter().any(|of| self.group.ends_with(of))
    }

    /// Its kind, if it is a workload of Kubernetes.
    pub(super) fn workload(&self) -> Option<Kind> {
        Kind::of(self.kind, self.group)
    }

    /// The place of its template, if it is a workload of Kubernetes.
    pub(super) fn template(&self) -> Option<&'static str> {
        self.workload().map(Kind::template)
    }

    /// A text that is not empty.
    pub(super) fn text(&self, pointer: &str) -> Option<&'d str> {
        self.value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
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

/// Renames a misspelt field for the service account. Then copies the deprecated `serviceAccount` to `serviceAccountName` where that is
/// empty, as kube-apiserver does before it calls a webhook.
fn correct_service_account(pod: &mut Value) -> Option<Misspelling> {
    const FIELDS: [&str; 2] = ["serviceAccountName", "serviceAccount"];
    let spec = pod.get_mut("spec")?.as_object_mut()?;
    let mut keys = spec.keys().filter(|key| !FIELDS.contains(&&***key));
    let misspelling = keys.find_map(|key| {
        let field = FIELDS.into_iter().find(|field| is_misspelling(key, field))?;
        Some(Misspelling { key: key.clone(), field })
    });
    if let Some(Misspelling { key, field }) = &misspelling
        && let Some(value) = spec.remove(key)
    {
        spec.entry(*field).or_insert(value);
    }
    let [name, deprecated] = FIELDS.map(|field| spec.get(field).filter(|name| !name.is_null() && *name != ""));
    if let (None, Some(name)) = (name, deprecated.cloned()) {
        spec.insert(FIELDS[0].to_owned(), name);
    }
    misspelling
}

/// Whether a key is this field in another case, or with at most one wrong letter in six.
fn is_misspelling(key: &str, field: &str) -> bool {
    let bare = |text: &str| text.replace(['-', '_'], "").to_ascii_lowercase();
    // A much longer key is another word.
    key.len() < 2 * field.len() && strsim::osa_distance(&bare(key), &bare(field)) <= field.len() / 6
}

impl Misspelling {
    /// The place in the pod.
    pub(super) fn pointer(&self) -> String {
        format!("/spec/{}", escape(&self.key))
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
        let options = format!("/securityContext/windowsOptions/{field}");
        let owner = at.strip_prefix(&*self.at).and_then(|at| at.strip_suffix(&*options)).unwrap_or_default();
        let steps: Vec<&str> = owner.split('/').collect();
        matches!(*steps, ["", "spec"] | ["", "spec", "containers" | "initContainers" | "ephemeralContainers", _])
    }

    /// A finding about a part of the pod.
    pub(super) fn finding(&self, rule: &'static Rule, pointer: &str, message: impl Into<String>) -> Diagnostic {
        self.finding_at(rule, &self.place(pointer), message)
    }

    /// A finding about a place in the document.
    pub(super) fn finding_at(&self, rule: &'static Rule, place: &str, message: impl Into<String>) -> Diagnostic {
        self.placed(place, Diagnostic::new(rule, message))
    }

    /// A finding of others, about a place in the document.
    pub(super) fn placed(&self, place: &str, found: Diagnostic) -> Diagnostic {
        Diagnostic { object: self.object.clone(), field: dotted(place), ..found }.at(self.document.location_of(place))
    }

    /// Advice about a place in the document.
    pub(super) fn advised_at(&self, place: &str, Advice { rule, severity, text, fix, .. }: Advice) -> Diagnostic {
        self.finding_at(rule, place, text).with_severity(severity).fixed(fix.map(str::to_owned))
    }

    /// What becomes of a credential spec that the pod names here.
    pub(super) fn row(
        &self,
        pointer: &str,
        slot: String,
        spec: Option<&str>,
        admitted: bool,
        result: String,
    ) -> ReportRow {
        let location = self.document.location_of(&self.place(pointer));
        let (line, file) = (location.line(), location.file);
        ReportRow {
            file,
            line,
            object: self.object.clone(),
            slot,
            credential_spec: spec.map(str::to_owned),
            admitted,
            result,
        }
    }
}

/// The most pod templates that are checked in one object.
const MAX_TEMPLATES: usize = 100;

/// A walk over a document.
pub(super) struct Search<'d> {
    document: &'d Document,
    /// The default namespace.
    namespace: &'d str,
    /// The place of the current value.
    here: String,
    /// Pods and pod templates.
    pub pods: Vec<CheckedPod<'d>>,
    /// The number of templates beyond the limit.
    pub more: usize,
}

impl<'d> Search<'d> {
    /// Finds the pods. If there are several templates, each is named by its place.
    pub(super) fn of(document: &'d Document, value: &'d Value, namespace: &'d str) -> Self {
        let mut search = Self { document, namespace, here: String::new(), pods: Vec::new(), more: 0 };
        if let Some(owner) = Owner::of(value, 0).filter(|owner| !owner.is_record() && !owner.is_policy()) {
            search.within(value, owner);
        }
        if let [CheckedPod { template: Some(template), .. }] = search.pods.as_mut_slice() {
            "pod template".clone_into(template);
        }
        search
    }

    fn within(&mut self, value: &'d Value, around: Owner<'d>) {
        let depth = self.here.len();
        let owner = Owner::of(value, depth).unwrap_or(around);
        let is_owner = owner.depth == depth;
        if is_owner && owner.is_pod() {
            return self.add(value.clone(), owner, "");
        }
        if is_owner && owner.is_controlled() {
            return;
        }
        if is_owner && let Some(at) = owner.template() {
            // All fields of Kubernetes kinds are known, so an unknown field is always a mistake.
            return value.pointer(at).into_iter().for_each(|pod| self.add(pod.clone(), owner, at));
        }
        let containers = value.pointer("/spec/containers").and_then(Value::as_array);
        if containers.is_some_and(|list| list.iter().all(Value::is_object)) {
            return self.add(value.clone(), owner, "");
        }
        for (key, part) in parts(value) {
            // Metadata and status of the owner record the past.
            if !(is_owner && (key == "metadata" || key == "status")) {
                self.here.extend(["/", &escape(&key)]);
                self.within(part, owner);
                self.here.truncate(depth);
            }
        }
    }

    /// Adds the pod at `at` below the current value, which contains everything about it.
    fn add(&mut self, mut pod: Value, owner: Owner<'d>, at: &str) {
        if self.pods.len() == MAX_TEMPLATES {
            self.more += 1;
            return;
        }
        let root = self.here.clone();
        let at = format!("{root}{at}");
        let name = owner.text("/metadata/name").or_else(|| owner.text("/metadata/generateName")).unwrap_or_default();
        let namespace = owner.text("/metadata/namespace").unwrap_or(self.namespace).to_owned();
        let object = format!("{} {namespace}/{name}", owner.kind);
        let misspelling = correct_service_account(&mut pod);
        let (pod, template) = if owner.is_pod() {
            (NewPod::new(&namespace, pod), None)
        } else {
            (NewPod::of_template(&namespace, pod, name), Some(format!("pod template {}", dotted(&at))))
        };
        let document = self.document;
        self.pods.push(CheckedPod { document, owner, root, at, pod, namespace, object, template, misspelling });
    }
}

/// The fields of an object, or the items of a list, each with its key.
fn parts(value: &Value) -> impl Iterator<Item = (Cow<'_, str>, &Value)> {
    let fields = value.as_object().into_iter().flatten().map(|(key, field)| (Cow::Borrowed(&**key), field));
    let items = value.as_array().into_iter().flatten().enumerate();
    fields.chain(items.map(|(index, item)| (Cow::Owned(index.to_string()), item)))
}

/// Visits each part below the value at a place, with its place and its key. Descends into a part if `visit` returns true.
pub(super) fn walk(value: &Value, at: &mut String, visit: &mut impl FnMut(&str, &str, &Value) -> bool) {
    let depth = at.len();
    for (key, part) in parts(value) {
        at.extend(["/", &escape(&key)]);
        if visit(at, &key, part) {
            walk(part, at, visit);
        }
        at.truncate(depth);
    }
}
