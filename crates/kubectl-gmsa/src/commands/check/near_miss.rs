//! Fields and annotations that are meant for GMSA and that Kubernetes ignores: misspelt, or in the wrong place.

use crate::shared::rules;
use gmsa_core::{
    admission::pod::{Pod, SlotKind},
    credspec::is_dns_subdomain,
    diagnostic::{Diagnostic, Severity},
};
use serde_json::Value;

use super::{
    misspelt::Slip,
    pointer::{Step, dotted, pointer},
    template::CheckedPod,
};

pub(super) const NAME: &str = "gmsaCredentialSpecName";
const CONTENTS: &str = "gmsaCredentialSpec";

pub(super) const NO_VALUE: &str =
    "the field has no value, so no credential spec is used: a template renders this where its value is missing";

/// The most near misses of one pod that are reported.
const MAX_FOUND: usize = 100;

/// The annotations of the first version of GMSA, after `pod.` or `CONTAINER.container.`: fields replaced them (KEP-689).
const ANNOTATIONS: [(&str, &str); 2] = [
    ("alpha.windows.kubernetes.io/gmsa-credential-spec-name", NAME),
    ("alpha.windows.kubernetes.io/gmsa-credential-spec", CONTENTS),
];

/// Where a pod, or one of its containers, takes `windowsOptions`.
struct Place {
    kind: SlotKind,
    /// The name of the container.
    owner: String,
    /// The place of the pod or the container in the document.
    around: String,
    /// That of its `windowsOptions`.
    options: String,
    is_set: bool,
}

/// What was misspelt, with what is meant.
pub(super) fn slips(checked: &CheckedPod<'_>) -> Vec<Diagnostic> {
    let finding = |Slip { at, field }: &Slip| {
        let message = format!(
            "Kubernetes does not know this field: {field} is meant, and the rest is checked as if it were written"
        );
        let value = at.rsplit_once('/').map(|(around, _)| format!("{around}/{field}")).unwrap_or_default();
        let value = checked.pod.pointer(&value).and_then(Value::as_str);
        let fix = value.map_or_else(|| format!("name it {field}"), |value| format!("{field}: {value}"));
        checked.finding(&rules::IGNORED_FIELD, at, message).with_fix(fix)
    };
    checked.slips.iter().map(finding).collect()
}

/// A walk over what is about a pod.
struct Search<'v> {
    root: &'v str,
    places: &'v [Place],
    path: Vec<Step<'v>>,
    found: Vec<Found<'v>>,
}

struct Found<'v> {
    at: String,
    value: &'v Value,
    /// What is meant.
    field: &'static str,
    place: &'v Place,
    is_annotation: bool,
}

/// Finds the near misses of a pod.
pub(super) fn findings(checked: &CheckedPod<'_>, pod: &Pod) -> Vec<Diagnostic> {
    const OPTIONS: &str = "/securityContext/windowsOptions";
    let places: Vec<Place> = pod
        .slots()
        .map(|slot| {
            let around = slot.pointer();
            let around = checked.place(around.strip_suffix(OPTIONS).unwrap_or_default());
            let (options, is_set) = (checked.place(&slot.pointer()), slot.uses_gmsa());
            Place { kind: slot.kind, owner: slot.owner.to_owned(), around, options, is_set }
        })
        .collect();
    let Some(value) = checked.document.value.pointer(&checked.root) else { return Vec::new() };
    let mut search = Search { root: &checked.root, places: &places, path: Vec::new(), found: Vec::new() };
    search.any(value);
    // A slip around it says the same.
    let is_of_slip =
        |found: &&Found<'_>| checked.slips.iter().any(|slip| found.at.starts_with(&checked.place(&slip.at)));
    search.found.iter().filter(|found| !is_of_slip(found)).map(|found| report(checked, found)).collect()
}

fn report(checked: &CheckedPod<'_>, found: &Found<'_>) -> Diagnostic {
    let Found { at, value, field, place, is_annotation } = found;
    let right = dotted(&format!("{}/{field}", place.options));
    if value.is_null() {
        let found = checked.finding_at(&rules::IGNORED_FIELD, at, NO_VALUE).with_severity(Severity::Warning);
        return found.with_fix(format!("{field}: NAME"));
    }
    let message = if *is_annotation {
        format!("Kubernetes ignores this annotation: the field {right} has replaced it")
    } else {
        format!("Kubernetes ignores this field: its place is {right}")
    };
    // An old annotation beside the field does no harm.
    let is_harmless = *is_annotation && place.is_set;
    let severity = if is_harmless { Severity::Note } else { rules::IGNORED_FIELD.severity };
    let finding = checked.finding_at(&rules::IGNORED_FIELD, at, message).with_severity(severity);
    if is_harmless {
        return finding.with_fix("remove the annotation");
    }
    let name = value.as_str().filter(|name| *field == NAME && is_dns_subdomain(name)).unwrap_or("NAME");
    finding.with_fix(format!("securityContext:\n  windowsOptions:\n    {NAME}: {name}"))
}

impl<'v> Search<'v> {
    fn any(&mut self, value: &'v Value) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    self.path.push(Step::Field(key));
                    self.field(key, value);
                    self.path.pop();
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.path.push(Step::Item(index));
                    self.any(item);
                    self.path.pop();
                }
            }
            _ => {}
        }
    }

    fn field(&mut self, key: &'v str, value: &'v Value) {
        match key {
            // Keys that people choose.
            "labels" | "matchLabels" | "nodeSelector" => {}
            "annotations" => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    self.path.push(Step::Field(key));
                    self.annotation(key, value);
                    self.path.pop();
                }
            }
            _ => match meant(key).or_else(|| self.is_slip_in_options(key).then_some(NAME)) {
                Some(field) => self.add(field, None, value, false),
                None => self.any(value),
            },
        }
    }

    /// Whether the key at hand is in `windowsOptions`, whose fields are few, and is about credentials.
    fn is_slip_in_options(&self, key: &str) -> bool {
        let is_option = matches!(self.path.as_slice(), [.., Step::Field("windowsOptions"), _]);
        let key = key.to_ascii_lowercase();
        is_option && (key.contains("gmsa") || key.contains("cred"))
    }

    fn annotation(&mut self, key: &str, value: &'v Value) {
        for (end, field) in ANNOTATIONS {
            if let Some(start) = key.strip_suffix(end) {
                return self.add(field, start.strip_suffix(".container."), value, true);
            }
        }
        if let Some(field) = meant(key) {
            self.add(field, None, value, true);
        }
    }

    /// Adds the value at hand, unless it is where it belongs. An annotation may be about a `container`.
    fn add(&mut self, field: &'static str, container: Option<&str>, value: &'v Value, is_annotation: bool) {
        if self.found.len() == MAX_FOUND {
            return;
        }
        let at = format!("{}{}", self.root, pointer(&self.path));
        let is_right =
            |place: &Place| at.strip_prefix(&*place.options).is_some_and(|rest| rest.strip_prefix('/') == Some(field));
        let is_empty_name = field == NAME && value.is_null();
        if !is_empty_name && self.places.iter().any(is_right) {
            return;
        }
        let is_around = |place: &&Place| {
            let is_below = || at.strip_prefix(&*place.around).is_some_and(|rest| rest.starts_with('/'));
            place.kind != SlotKind::Pod && container.map_or_else(is_below, |name| place.owner == name)
        };
        let place = self.places.iter().find(is_around).or_else(|| self.places.first());
        self.found.extend(place.map(|place| Found { at, value, field, place, is_annotation }));
    }
}

/// The field that a key is meant to be, however it is written: `gmsaCredentialSpecname`, `gmsa_cred_spec_name`.
pub(super) fn meant(key: &str) -> Option<&'static str> {
    // A key that is longer is no slip.
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
