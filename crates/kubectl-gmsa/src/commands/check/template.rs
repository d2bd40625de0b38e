//! The pods and pod templates of a manifest of any kind, completed as their controller and the API server do, with the places of their parts.
//!
//! A kind of Kubernetes has its template in a known place. In any other object, each value that has a `spec` with a list of `containers` is
//! a pod template: the `Rollout` of Argo, the `Service` of Knative, the `ScaledJob` of KEDA, and objects that contain whole manifests.
//! Invariants: at most [`MAX_TEMPLATES`] of an object are checked; the reader of manifests bounds its depth and its values.

use std::borrow::Cow;

use gmsa_cluster::manifests::Document;
use gmsa_core::{
    admission::{advice::same_computer::Replicas, workload::Kind},
    diagnostic::{Diagnostic, Rule},
    pointer::{dotted, escape},
};
use serde_json::Value;

use crate::shared::{admission::NewPod, kinds::controller_in, output::ReportRow};

/// The groups (or their suffixes) of objects that are not searched, because they create no pods: they record requests, or are policies,
/// which contain patterns of fields.
const NOT_SEARCHED: [&str; 5] =
    ["admission.k8s.io", "audit.k8s.io", "admissionregistration.k8s.io", "kyverno.io", "gatekeeper.sh"];

/// An object with a kind.
#[derive(Clone, Copy)]
pub(super) struct Owner<'d> {
    pub value: &'d Value,
    pub kind: &'d str,
    pub group: &'d str,
}

impl<'d> Owner<'d> {
    pub(super) fn of(value: &'d Value) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let group = text("apiVersion")?.split_once('/').map_or("", |(group, _)| group);
        Some(Self { value, kind: text("kind")?, group })
    }

    pub(super) fn is_pod(&self) -> bool {
        self.kind == "Pod" && self.group.is_empty()
    }

    /// Whether pods and fields are searched in it.
    pub(super) fn is_searched(&self) -> bool {
        !NOT_SEARCHED.iter().any(|group| self.group.ends_with(group))
    }

    /// Its kind, if it is a workload of Kubernetes.
    pub(super) fn workload(&self) -> Option<Kind> {
        Kind::of(self.kind, self.group)
    }

    /// The place of the pod in it, if its kind is one of Kubernetes.
    pub(super) fn pod(&self) -> Option<&'static str> {
        if self.is_pod() { Some("") } else { self.workload().map(|kind| kind.facts().template) }
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
    /// The place in the pod.
    pub pointer: String,
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
        Some((key.clone(), field))
    });
    if let Some((key, field)) = &misspelling
        && let Some(value) = spec.remove(key)
    {
        spec.entry(*field).or_insert(value);
    }
    let [name, deprecated] = FIELDS.map(|field| spec.get(field).filter(|name| !name.is_null() && *name != ""));
    if let (None, Some(name)) = (name, deprecated.cloned()) {
        spec.insert(FIELDS[0].to_owned(), name);
    }
    misspelling.map(|(key, field)| Misspelling { pointer: format!("/spec/{}", escape(&key)), field })
}

/// Whether a key is this field in another case, or with at most one wrong letter in six.
fn is_misspelling(key: &str, field: &str) -> bool {
    let bare = |text: &str| text.replace(['-', '_'], "").to_ascii_lowercase();
    // A much longer key is another word.
    key.len() < 2 * field.len() && strsim::osa_distance(&bare(key), &bare(field)) <= field.len() / 6
}

impl<'d> CheckedPod<'d> {
    /// The pod at `way` below `root`, the place of the value that contains everything about it.
    fn of(document: &'d Document, owner: Owner<'d>, root: &str, way: &str, mut pod: Value, namespace: &str) -> Self {
        let (root, at) = (root.to_owned(), format!("{root}{way}"));
        let name = owner.text("/metadata/name").or_else(|| owner.text("/metadata/generateName")).unwrap_or_default();
        let namespace = owner.text("/metadata/namespace").unwrap_or(namespace).to_owned();
        let object = format!("{} {namespace}/{name}", owner.kind);
        let misspelling = correct_service_account(&mut pod);
        let (pod, template) = if owner.is_pod() {
            (NewPod::new(&namespace, pod), None)
        } else {
            (NewPod::of_template(&namespace, pod, name), Some(format!("pod template {}", dotted(&at))))
        };
        Self { document, owner, root, at, pod, namespace, object, template, misspelling }
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
        self.owner.workload().filter(|_| self.owner.value.pointer(pointer).is_some())?;
        Some(format!("{}{pointer}", self.root))
    }

    /// The place in the document of a part of the pod.
    pub(super) fn place(&self, pointer: &str) -> String {
        match &self.misspelling {
            Some(known) if pointer.strip_prefix("/spec/") == Some(known.field) => self.place(&known.pointer),
            _ => format!("{}{pointer}", self.at),
        }
    }

    /// A finding about a part of the pod.
    pub(super) fn finding(&self, rule: &'static Rule, pointer: &str, message: impl Into<String>) -> Diagnostic {
        self.placed(pointer, Diagnostic::new(rule, message))
    }

    /// The same for a finding that exists already.
    pub(super) fn placed(&self, pointer: &str, found: Diagnostic) -> Diagnostic {
        self.placed_at(&self.place(pointer), found)
    }

    /// A finding about a place in the document.
    pub(super) fn finding_at(&self, rule: &'static Rule, place: &str, message: impl Into<String>) -> Diagnostic {
        self.placed_at(place, Diagnostic::new(rule, message))
    }

    /// A finding that exists already, about a place in the document.
    pub(super) fn placed_at(&self, place: &str, found: Diagnostic) -> Diagnostic {
        Diagnostic { object: self.object.clone(), field: dotted(place), ..found }.at(self.document.location_of(place))
    }

    /// The row of a credential spec that the pod names here; the caller sets its result.
    pub(super) fn row(&self, pointer: &str, slot: String, spec: Option<&str>) -> ReportRow {
        let location = self.document.location_of(&self.place(pointer));
        let (line, object, credential_spec) = (location.line(), self.object.clone(), spec.map(str::to_owned));
        ReportRow { file: location.file, line, object, slot, credential_spec, admitted: false, result: String::new() }
    }
}

/// The most pod templates that are checked in one object.
const MAX_TEMPLATES: usize = 100;

/// The pods in a document, and the number of templates beyond the limit.
pub(super) fn pods<'d>(document: &'d Document, value: &'d Value, namespace: &str) -> (Vec<CheckedPod<'d>>, usize) {
    let (mut pods, mut more) = (Vec::new(), 0);
    if let Some(owner) = Owner::of(value).filter(Owner::is_searched) {
        find(value, owner, &mut String::new(), &mut |owner, root, way, pod| match pods.len() {
            MAX_TEMPLATES => more += 1,
            _ => pods.push(CheckedPod::of(document, owner, root, way, pod.clone(), namespace)),
        });
    }
    if let [CheckedPod { template: Some(name), .. }] = pods.as_mut_slice() {
        // The only template of an object needs no place in its name.
        "pod template".clone_into(name);
    }
    (pods, more)
}

/// Shows each pod and pod template in a value: the innermost enclosing object with a kind, the place of the value that contains everything
/// about the pod, and the way from there to the pod.
fn find<'d>(
    value: &'d Value,
    around: Owner<'d>,
    here: &mut String,
    found: &mut impl FnMut(Owner<'d>, &str, &str, &'d Value),
) {
    let (own, depth) = (Owner::of(value), here.len());
    let owner = own.unwrap_or(around);
    if own.is_some_and(|own| own.is_controlled() && !own.is_pod()) {
        return;
    }
    // All fields of Kubernetes kinds are known, so an unknown field is always a mistake.
    let of_kind = own.and_then(|own| own.pod());
    let containers = value.pointer("/spec/containers").and_then(Value::as_array);
    let is_pod = containers.is_some_and(|list| list.iter().all(Value::is_object));
    if let Some(way) = of_kind.or(is_pod.then_some("")) {
        return value.pointer(way).into_iter().for_each(|pod| found(owner, here, way, pod));
    }
    for (key, part) in parts(value) {
        // Metadata and status of the owner record the past.
        if own.is_none() || !matches!(&*key, "metadata" | "status") {
            here.extend(["/", &escape(&key)]);
            find(part, owner, here, found);
            here.truncate(depth);
        }
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

/// The place of an annotation in an object.
pub(super) fn annotation(key: &str) -> String {
    format!("/metadata/annotations/{}", escape(key))
}
