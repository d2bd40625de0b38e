//! GMSA's fields and annotations that nothing reads, because they are misspelt or in the wrong place: one search in objects of any kind.
//!
//! Within a pod, or the workload that creates it, each field has one right place. In other objects an operator or another tool may read
//! it: a valid name there is a note, because the pods are not in the manifests.

use gmsa_cluster::manifests::Document;
use gmsa_core::{
    admission::pod::{RANDOM_HOSTNAME, Slot, SlotKind},
    credspec::{
        PLURAL, Verb, is_dns_subdomain,
        lint::suggest_name,
        placeholder::is_token,
        services::{self, Services},
    },
    diagnostic::{Diagnostic, Severity},
    pointer::dotted,
    quote::{NAME as QUOTED, quoted},
};
use serde_json::Value;

use super::template::{self, CheckedPod, Owner, walk};
use crate::shared::{
    annotations,
    rules::{self, instead_of},
};

const NAME: &str = "gmsaCredentialSpecName";
const CONTENTS: &str = "gmsaCredentialSpec";
const OPTIONS: &str = "/securityContext/windowsOptions";

const NO_VALUE: &str =
    "the field has no value, so no credential spec is used: a template renders this where its value is missing";

/// The most findings on one object.
const MAX_FOUND: usize = 100;

/// The annotations of the first version of GMSA, after `pod.` or `CONTAINER.container.`: fields replaced them (KEP-689).
const OLD_ANNOTATIONS: [(&str, &str); 2] = [
    ("alpha.windows.kubernetes.io/gmsa-credential-spec-name", NAME),
    ("alpha.windows.kubernetes.io/gmsa-credential-spec", CONTENTS),
];

/// A key of an object, with its place in the document and its value.
#[derive(Clone, Copy)]
struct ObjectKey<'k> {
    at: &'k str,
    key: &'k str,
    value: &'k Value,
}

/// The intended field or annotation of a key.
#[derive(Clone, Copy)]
enum Meant<'k> {
    Field(&'static str),
    /// An annotation that a field has replaced, and its container.
    OldAnnotation(&'static str, Option<&'k str>),
    /// An annotation of this project.
    Annotation(&'static str),
}

/// Finds them in an object with these pods.
pub(super) fn findings(
    document: &Document,
    object: &Value,
    pods: &[CheckedPod<'_>],
    namespace: &str,
) -> Vec<Diagnostic> {
    let owner = Owner::of(object).filter(|owner| owner.is_searched() && !owner.is_controlled());
    let others = owner.map(|owner| {
        let namespace = owner.text("/metadata/namespace").unwrap_or(namespace);
        let title = format!("{} {namespace}/{}", owner.kind, owner.text("/metadata/name").unwrap_or_default());
        OtherObject { document, title, right: owner.pod().map(|pod| dotted(&format!("{pod}/spec{OPTIONS}/{NAME}"))) }
    });
    let is_pod = pods.iter().any(|pod| pod.root.is_empty());
    let mut found = Vec::new();
    walk(object, &mut String::new(), &mut |at, key, value| {
        // In other kinds, metadata and status record the past.
        let is_record = matches!(at, "/metadata" | "/status") && !is_pod;
        if is_record || found.len() == MAX_FOUND {
            return false;
        }
        let parent = parent(at);
        let Some(meant) = Meant::of(parent, key) else {
            if let (Some(object), true) = (&others, are_annotations(key)) {
                found.extend(object.annotations_in_text(at, value));
            }
            // Keys that users choose, and annotations, whose values are texts.
            return !matches!(key, "matchLabels" | "nodeSelector") && !matches!(parent, "annotations" | "labels");
        };
        let pod = pods.iter().find(|pod| at.strip_prefix(&*pod.root).is_some_and(|rest| rest.starts_with('/')));
        if let Some(checked) = pod {
            found.extend(in_pod(checked, &ObjectKey { at, key, value }, meant));
            return false;
        }
        found.extend(others.as_ref().and_then(|object| object.finding(&ObjectKey { at, key, value }, meant)));
        // A schema has an object in the place of the field.
        value.is_object()
    });
    found
}

/// The last key but one of a place.
fn parent(at: &str) -> &str {
    at.rsplit('/').nth(1).unwrap_or_default()
}

impl<'k> Meant<'k> {
    fn of(parent: &str, key: &'k str) -> Option<Self> {
        match parent {
            _ if are_annotations(parent) => {
                let of_version_1 = OLD_ANNOTATIONS.iter().find_map(|(end, field)| {
                    let start = key.strip_suffix(end)?;
                    Some(Self::OldAnnotation(field, start.strip_suffix(".container.")))
                });
                let field = || field(key).map(|field| Self::OldAnnotation(field, None));
                of_version_1.or_else(|| annotations::meant(key).map(Self::Annotation)).or_else(field)
            }
            "labels" => annotations::meant(key).map(Self::Annotation),
            "metadata" => field(key).map(Self::Field).or_else(|| annotations::meant(key).map(Self::Annotation)),
            // `windowsOptions` has few fields, so any key about credentials is the intended field.
            "windowsOptions" => {
                let lower = key.to_ascii_lowercase();
                let is_misspelling = lower.contains("gmsa") || lower.contains("cred");
                field(key).or(is_misspelling.then_some(NAME)).map(Self::Field)
            }
            _ => field(key).map(Self::Field),
        }
    }
}

/// Whether a field holds annotations: `annotations`, `podAnnotations`, `task_annotations`.
fn are_annotations(field: &str) -> bool {
    field.to_ascii_lowercase().ends_with("annotations")
}

/// The intended field of a key, which may be misspelt: `gmsaCredentialSpecname`, `gmsa_cred_spec_name`.
fn field(key: &str) -> Option<&'static str> {
    // A much longer key is another word.
    if key.len() > 2 * NAME.len() || !key.starts_with(['g', 'G', '-', '_']) {
        return None;
    }
    let bare: String = key.chars().filter(|c| !matches!(c, '-' | '_')).map(|c| c.to_ascii_lowercase()).collect();
    let (kind, name) = bare.strip_prefix("gmsa")?.split_once("spec")?;
    match (kind, name) {
        ("credential" | "credentials" | "cred" | "creds", "" | "s") => Some(CONTENTS),
        ("credential" | "credentials" | "cred" | "creds", "name" | "names" | "sname") => Some(NAME),
        _ => None,
    }
}

/// The finding within a pod, or the workload that creates it.
fn in_pod(checked: &CheckedPod<'_>, found: &ObjectKey<'_>, meant: Meant<'_>) -> Option<Diagnostic> {
    let (pod, ObjectKey { at, value, .. }) = (checked.pod.pod()?, *found);
    let (field, replaced) = match meant {
        Meant::Annotation(own) => return annotation(checked, found, own),
        Meant::Field(field) => (field, None),
        Meant::OldAnnotation(field, container) => (field, Some(container)),
    };
    let finding = |message: &str| checked.finding_at(&rules::IGNORED_FIELD, at, message);
    if field == NAME && value.is_null() {
        return Some(finding(NO_VALUE).with_severity(Severity::Warning).with_fix(format!("{field}: NAME")));
    }
    if pod.slots().any(|slot| checked.place(&format!("{}/{field}", slot.pointer())) == at) {
        return None;
    }
    // A name in a misplaced field for contents is that of a credential spec.
    let field = if value.as_str().is_some_and(is_dns_subdomain) { NAME } else { field };
    let is_around = |slot: &Slot<'_>| {
        let around = || checked.place(slot.pointer().strip_suffix(OPTIONS).unwrap_or_default());
        let is_below = || at.strip_prefix(&*around()).is_some_and(|rest| rest.starts_with('/'));
        slot.kind != SlotKind::Pod && replaced.flatten().map_or_else(is_below, |name| slot.owner == name)
    };
    let slot = pod.slots().find(is_around).or_else(|| pod.slots().next())?;
    let right = dotted(&checked.place(&format!("{}/{field}", slot.pointer())));
    let message = match replaced {
        Some(_) => format!("Kubernetes ignores this annotation: the field {right} has replaced it"),
        None => format!("Kubernetes ignores this field: its place is {right}"),
    };
    // An old annotation is harmless if the field is set.
    if replaced.is_some() && slot.uses_gmsa() {
        return Some(finding(&message).with_severity(Severity::Note).with_fix("remove the annotation"));
    }
    let name = value.as_str().filter(|name| field == NAME && is_dns_subdomain(name)).unwrap_or("NAME");
    Some(finding(&message).with_fix(format!("securityContext:\n  windowsOptions:\n    {NAME}: {name}")))
}

/// The finding on an annotation or a label that is misspelt, or that nothing reads where it is: on a Deployment, not on its pod template.
fn annotation(
    checked: &CheckedPod<'_>,
    &ObjectKey { at, key, value }: &ObjectKey<'_>,
    own: &str,
) -> Option<Diagnostic> {
    let pod = checked.pod.pod()?;
    let text = value.as_str().unwrap_or("NAME");
    if own == services::ANNOTATION {
        let message = format!("nothing reads this: a credential spec has the annotation {own}, a pod does not");
        // Services have no character that a shell reads between these quotes.
        let services = Services::parse(text).map_or_else(|_| "SERVICES".to_owned(), |services| services.to_string());
        let fix = format!("kubectl annotate {PLURAL} NAME {own}='{services}'");
        return Some(checked.finding_at(&rules::IGNORED_FIELD, at, message).with_fix(fix));
    }
    let is_asked = || pod.asks().any(|(verb, _)| verb.product().annotation == own);
    let is_set = if own == RANDOM_HOSTNAME { pod.asks_for_random_hostname() } else { is_asked() };
    let right = checked.place(&template::annotation(own));
    // `advice::ignored` reports the annotation for a random host name if it is spelt correctly.
    if key == RANDOM_HOSTNAME || is_set || at == right || value.is_object() || value.is_array() {
        return None;
    }
    let message = format!("nothing reads this: {} is meant", dotted(&right));
    let fix = format!("metadata:\n  annotations:\n    {own}: {text:?}");
    Some(checked.finding_at(&rules::IGNORED_FIELD, at, message).with_fix(fix))
}

/// An object, outside of the pods in it.
struct OtherObject<'d> {
    document: &'d Document,
    /// Its name in reports.
    title: String,
    /// The place of the field, in a kind of Kubernetes.
    right: Option<String>,
}

impl OtherObject<'_> {
    /// The finding on a name for pods that another program creates. Elsewhere, a misspelt field may be a field of that program.
    fn finding(&self, &ObjectKey { at, key, value }: &ObjectKey<'_>, meant: Meant<'_>) -> Option<Diagnostic> {
        let own = match meant {
            Meant::Field(_) if key == NAME || parent(at) == "windowsOptions" => NAME,
            Meant::Annotation(own) if Verb::ALL.iter().any(|verb| verb.product().annotation == own) => own,
            _ => return None,
        };
        let found = match value {
            Value::Object(_) => return None,
            Value::Null => {
                let found = Diagnostic::new(&rules::IGNORED_FIELD, NO_VALUE).with_severity(Severity::Warning);
                found.with_fix(format!("{own}: NAME"))
            }
            Value::String(name) => self.named((own, key), name),
            _ => Diagnostic::new(&rules::INVALID_SPEC_NAME, "the API server would refuse the pod: expected a string"),
        };
        Some(Diagnostic { object: self.title.clone(), field: dotted(at), ..found }.at(self.document.location_of(at)))
    }

    /// The findings on annotations that are a text of YAML, as operators made with Ansible take them.
    fn annotations_in_text(&self, at: &str, text: &Value) -> Vec<Diagnostic> {
        let text = text.as_str().filter(|text| text.contains("gmsa"));
        let all: Value = text.and_then(|text| serde_saphyr::from_str(text).ok()).unwrap_or_default();
        let finding = |(key, value): (&String, &Value)| {
            self.finding(&ObjectKey { at, key, value }, Meant::Annotation(annotations::meant(key)?))
        };
        all.as_object().into_iter().flatten().filter_map(finding).collect()
    }

    /// The finding on a name in the field or annotation `key`, by which `own` is meant.
    fn named(&self, (own, key): (&str, &str), name: &str) -> Diagnostic {
        if let Some(right) = self.right.as_ref().filter(|_| own == NAME) {
            let message = format!("Kubernetes ignores this field: its place is {right}");
            return Diagnostic::new(&rules::IGNORED_FIELD, message);
        }
        if key != own {
            let found = Diagnostic::new(&rules::IGNORED_FIELD, format!("this field is ignored: {own} is meant"));
            return found.with_fix(format!("{own}: {name}"));
        }
        let found = if is_token(name) {
            Diagnostic::new(&rules::PLACEHOLDER, format!("{name:?} is still a placeholder"))
        } else if is_dns_subdomain(name) {
            let message = format!("credential spec {name}, for pods that an operator makes: they are not in this file");
            return Diagnostic::new(&rules::OPERATOR_PODS, message);
        } else {
            let message = format!("{} is not a lower-case DNS subdomain", quoted(name, QUOTED));
            Diagnostic::new(&rules::INVALID_SPEC_NAME, message)
        };
        let annotation = || Some(format!("{own}: {}", suggest_name(name)));
        found.fixed(if own == NAME { instead_of(name).in_manifest() } else { annotation() })
    }
}

/// The finding on a misspelt service account, with the intended field.
pub(super) fn misspelt(checked: &CheckedPod<'_>) -> Option<Diagnostic> {
    let misspelling = checked.misspelling.as_ref()?;
    let field = misspelling.field;
    let message =
        format!("Kubernetes does not know this field: {field} is meant, and the rest is checked as if it were written");
    // A line break would begin a field of its own.
    let value = checked.text(&format!("/spec/{field}")).filter(|value| !value.contains(char::is_control));
    let fix = value.map_or_else(|| format!("name it {field}"), |value| format!("{field}: {value}"));
    Some(checked.finding(&rules::IGNORED_FIELD, &misspelling.pointer, message).with_fix(fix))
}

/// The finding on `os: linux` beside `windowsOptions`, which the API server refuses (`ValidatePodSpec` of kube-apiserver).
pub(super) fn linux_with_options(checked: &CheckedPod<'_>) -> Option<Diagnostic> {
    let at = "/spec/os/name";
    let text = "the API server would refuse the pod: a pod of Linux may have no windowsOptions";
    checked.text(at).filter(|os| *os == "linux")?;
    let mut parts = checked.pod.containers().map(|(_, container)| container).chain([checked.pod.root().below("spec")]);
    let is_wrong = parts.any(|part| part.has("securityContext/windowsOptions"));
    is_wrong.then(|| checked.finding(&rules::NOT_A_POD, at, text).with_fix("name: windows"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_field_is_told_from_another_word() {
        for (key, expected) in [
            ("gmsaCredentialSpecName", Some(NAME)),
            ("gmsaCredentialSpecname", Some(NAME)),
            ("GMSACredentialSpecName", Some(NAME)),
            ("gmsaCredSpecName", Some(NAME)),
            ("gmsa-credential-spec-name", Some(NAME)),
            ("gmsaCredentialSpec", Some(CONTENTS)),
            ("gmsa_credspec", Some(CONTENTS)),
            ("gmsa", None),
            ("gmsaCredentialSpecNamespace", None),
            ("credentialSpecName", None),
            ("f:gmsaCredentialSpecName", None),
        ] {
            assert_eq!(field(key), expected, "{key}");
        }
    }
}
