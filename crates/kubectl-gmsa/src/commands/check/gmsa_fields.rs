//! Fields and annotations for GMSA that Kubernetes ignores, because they are misspelt or in the wrong place.

use crate::shared::{annotations, rules};
use gmsa_core::{
    admission::pod::{Pod, RANDOM_HOSTNAME, SlotKind, tickets},
    credspec::{
        PLURAL, is_dns_subdomain,
        services::{self, Services},
    },
    diagnostic::{Diagnostic, Severity},
};
use serde_json::Value;

use super::{
    pointer::{Segment, dotted, pointer, walk},
    template::CheckedPod,
};

pub(super) const NAME: &str = "gmsaCredentialSpecName";
const CONTENTS: &str = "gmsaCredentialSpec";

pub(super) const NO_VALUE: &str =
    "the field has no value, so no credential spec is used: a template renders this where its value is missing";

/// The most near misses that are reported for one pod.
const MAX_FOUND: usize = 100;

/// The annotations of the first version of GMSA, after `pod.` or `CONTAINER.container.`: fields replaced them (KEP-689).
const ANNOTATIONS: [(&str, &str); 2] = [
    ("alpha.windows.kubernetes.io/gmsa-credential-spec-name", NAME),
    ("alpha.windows.kubernetes.io/gmsa-credential-spec", CONTENTS),
];

/// The place of `windowsOptions` for a pod or a container.
struct OptionsPlace {
    kind: SlotKind,
    /// The name of the container.
    owner: String,
    /// The place of the pod or the container in the document.
    around: String,
    /// The place of its `windowsOptions`.
    options: String,
    is_set: bool,
}

/// Finds the near misses of a pod.
pub(super) fn findings(checked: &CheckedPod<'_>, pod: &Pod) -> Vec<Diagnostic> {
    const OPTIONS: &str = "/securityContext/windowsOptions";
    let places: Vec<OptionsPlace> = pod
        .slots()
        .map(|slot| {
            let around = slot.pointer();
            let around = checked.place(around.strip_suffix(OPTIONS).unwrap_or_default());
            let (options, is_set) = (checked.place(&slot.pointer()), slot.uses_gmsa());
            OptionsPlace { kind: slot.kind, owner: slot.owner.to_owned(), around, options, is_set }
        })
        .collect();
    let Some(value) = checked.value.pointer(&checked.root) else { return Vec::new() };
    let mut found = Vec::new();
    walk(value, &mut Vec::new(), &mut |path, key, value| {
        let Some((field, is_annotation, container)) = judge(path, key) else {
            let of_tickets = misplaced(checked, pod, path, value).filter(|_| found.len() < MAX_FOUND);
            found.extend(of_tickets);
            // Keys that users choose, and annotations, whose values are texts.
            let is_chosen = matches!(key, "matchLabels" | "nodeSelector");
            return !is_chosen && !matches!(path, [.., Segment::Field("annotations" | "labels"), _]);
        };
        let at = format!("{}{}", checked.root, pointer(path));
        let is_right = |place: &OptionsPlace| {
            at.strip_prefix(&*place.options).is_some_and(|rest| rest.strip_prefix('/') == Some(field))
        };
        let is_empty_name = field == NAME && value.is_null();
        if found.len() == MAX_FOUND || !is_empty_name && places.iter().any(is_right) {
            return false;
        }
        let is_around = |place: &&OptionsPlace| {
            let is_below = || at.strip_prefix(&*place.around).is_some_and(|rest| rest.starts_with('/'));
            place.kind != SlotKind::Pod && container.map_or_else(is_below, |name| place.owner == name)
        };
        // The misspelling around it is reported already.
        let is_of_misspelling =
            checked.misspellings.iter().any(|misspelling| at.starts_with(&checked.place(&misspelling.at)));
        let place = places.iter().find(is_around).or_else(|| places.first()).filter(|_| !is_of_misspelling);
        found.extend(place.map(|place| report(checked, (&at, value), (field, is_annotation), place)));
        false
    });
    found
}

/// The finding on an annotation or a label that is misspelt, or that nothing reads where it is: on a Deployment, not on its pod template.
fn misplaced(checked: &CheckedPod<'_>, pod: &Pod, path: &[Segment<'_>], value: &Value) -> Option<Diagnostic> {
    let [.., Segment::Field(parent), Segment::Field(key)] = path else { return None };
    // `hostnames` reports the annotation for a random host name where it is spelt right.
    let own = annotations::meant(key)
        .filter(|_| *key != RANDOM_HOSTNAME && matches!(*parent, "annotations" | "labels" | "metadata"))?;
    let is_set = if own == tickets::ANNOTATION { pod.tickets().is_some() } else { pod.asks_for_random_hostname() };
    let at = format!("{}{}", checked.root, pointer(path));
    let text = value.as_str().unwrap_or("NAME");
    if own == services::ANNOTATION {
        let message = format!("nothing reads this: a credential spec has the annotation {own}, a pod does not");
        // Services have no character that a shell reads between these quotes.
        let services = Services::parse(text).map_or_else(|_| "SERVICES".to_owned(), |services| services.to_string());
        let fix = format!("kubectl annotate {PLURAL} NAME {own}='{services}'");
        return Some(checked.finding_at(&rules::IGNORED_FIELD, &at, message).with_fix(fix));
    }
    let right = checked.place(&format!("/metadata/annotations/{}", own.replace('/', "~1")));
    if is_set || at == right || value.is_object() || value.is_array() {
        return None;
    }
    let message = format!("nothing reads this: {} is meant", dotted(&right));
    let fix = format!("metadata:\n  annotations:\n    {own}: {text:?}");
    Some(checked.finding_at(&rules::IGNORED_FIELD, &at, message).with_fix(fix))
}

/// Reports a field or an annotation in the wrong place.
fn report(
    checked: &CheckedPod<'_>,
    (at, value): (&str, &Value),
    (field, is_annotation): (&str, bool),
    place: &OptionsPlace,
) -> Diagnostic {
    let right = dotted(&format!("{}/{field}", place.options));
    if value.is_null() {
        let found = checked.finding_at(&rules::IGNORED_FIELD, at, NO_VALUE).with_severity(Severity::Warning);
        return found.with_fix(format!("{field}: NAME"));
    }
    let message = if is_annotation {
        format!("Kubernetes ignores this annotation: the field {right} has replaced it")
    } else {
        format!("Kubernetes ignores this field: its place is {right}")
    };
    // An old annotation is harmless if the field is set.
    let is_harmless = is_annotation && place.is_set;
    let severity = if is_harmless { Severity::Note } else { rules::IGNORED_FIELD.severity };
    let finding = checked.finding_at(&rules::IGNORED_FIELD, at, message).with_severity(severity);
    if is_harmless {
        return finding.with_fix("remove the annotation");
    }
    let name = value.as_str().filter(|name| field == NAME && is_dns_subdomain(name)).unwrap_or("NAME");
    finding.with_fix(format!("securityContext:\n  windowsOptions:\n    {NAME}: {name}"))
}

/// The intended field, whether it is an annotation, and the annotation's container; `None` for any other field.
fn judge<'k>(path: &[Segment<'_>], key: &'k str) -> Option<(&'static str, bool, Option<&'k str>)> {
    match path {
        [.., Segment::Field("labels"), _] => None,
        [.., Segment::Field("annotations"), _] => {
            let of_version_1 = ANNOTATIONS.iter().find_map(|(end, field)| {
                let start = key.strip_suffix(end)?;
                Some((*field, true, start.strip_suffix(".container.")))
            });
            of_version_1.or_else(|| Some((meant(key)?, true, None)))
        }
        // `windowsOptions` has few fields, so any key about credentials is the intended field.
        [.., Segment::Field("windowsOptions"), _] => {
            let lower = key.to_ascii_lowercase();
            let is_misspelling = lower.contains("gmsa") || lower.contains("cred");
            meant(key).or(is_misspelling.then_some(NAME)).map(|field| (field, false, None))
        }
        _ => meant(key).map(|field| (field, false, None)),
    }
}

/// The intended field of a misspelt key: `gmsaCredentialSpecname`, `gmsa_cred_spec_name`.
pub(super) fn meant(key: &str) -> Option<&'static str> {
    // A much longer key is another word.
    if key.len() > 2 * NAME.len() {
        return None;
    }
    let bare: String = key.chars().filter(|c| !matches!(c, '-' | '_')).map(|c| c.to_ascii_lowercase()).collect();
    let bare = bare.strip_prefix("gmsa")?;
    let (kind, name) = bare.split_once("spec")?;
    match (kind, name) {
        ("credential" | "credentials" | "cred" | "creds", "" | "s") => Some(CONTENTS),
        ("credential" | "credentials" | "cred" | "creds", "name" | "names" | "sname") => Some(NAME),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_from_another_word() {
        for (key, field) in [
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
            assert_eq!(meant(key), field, "{key}");
        }
    }
}
