//! Placeholders in a pod: one finding for all of them, instead of the findings that follow from them.

use gmsa_core::{
    admission::{
        Denial, SlotDenial,
        pod::{Pod, Slot},
    },
    credspec::{
        Verb,
        placeholder::{is_placeholder, is_token},
    },
    diagnostic::Diagnostic,
    pointer::dotted,
};

use super::template::{CheckedPod, annotation};
use crate::shared::{
    output::first_five,
    rules::{self, instead_of},
};

/// The fields outside the slots that are searched for placeholders, besides the annotations.
const FIELDS: [&str; 4] =
    ["/spec/serviceAccountName", "/spec/runtimeClassName", "/spec/hostname", "/spec/nodeSelector/kubernetes.io~1os"];

/// The placeholders of a pod.
pub(super) struct Placeholders {
    /// The places in the pod, each with its value.
    found: Vec<(String, String)>,
}

impl Placeholders {
    /// Finds the placeholders. A name that looks like one counts only if its slot is denied.
    pub(super) fn of(checked: &CheckedPod<'_>, pod: &Pod, denials: &[SlotDenial]) -> Self {
        let is_refused = |slot: &Slot<'_>| {
            let mut own = denials.iter().filter(|found| found.slot == Some(slot.position()));
            own.any(|found| matches!(found.denial, Denial::SpecMissing(_) | Denial::InvalidSpecName { .. }))
        };
        let mut found = Vec::new();
        for slot in pod.slots() {
            let name = slot.name.filter(|name| is_token(name) || (is_placeholder(name) && is_refused(&slot)));
            found.extend(name.map(|name| (format!("{}/gmsaCredentialSpecName", slot.pointer()), name.to_owned())));
            let image = slot.kind.field().map(|list| format!("/spec/{list}/{}/image", slot.index));
            found.extend(image.and_then(|at| token(checked, at)));
        }
        let annotations = Verb::ALL.map(|verb| annotation(verb.product().annotation));
        let fields = FIELDS.into_iter().map(str::to_owned).chain(annotations);
        found.extend(fields.filter_map(|at| token(checked, at)));
        Self { found }
    }

    /// Whether a finding about this place follows from a placeholder.
    pub(super) fn explain(&self, at: &str) -> bool {
        self.found.iter().any(|(place, _)| place == at)
    }

    pub(super) fn finding(&self, checked: &CheckedPod<'_>) -> Option<Diagnostic> {
        let (first, value) = self.found.first()?;
        let names: Vec<String> =
            self.found.iter().map(|(at, _)| dotted(at).trim_start_matches("spec.").to_owned()).collect();
        let message = match names.as_slice() {
            [_] => format!("{value:?} is still a placeholder"),
            all => format!("{} values are still placeholders: {}", all.len(), first_five(all)),
        };
        let fix = instead_of(value).in_manifest().unwrap_or_default();
        Some(checked.finding(&rules::PLACEHOLDER, first, message).with_fix(fix))
    }
}

fn token(checked: &CheckedPod<'_>, at: String) -> Option<(String, String)> {
    let value = checked.text(&at).filter(|value| is_token(value))?.to_owned();
    Some((at, value))
}
