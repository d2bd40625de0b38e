//! The webhooks' decision about one pod of a manifest, and the findings about its denials.

use std::slice;

use super::{context::CheckContext, placeholders::Placeholders, template::CheckedPod};
use crate::shared::{
    admission::Reviewed,
    names,
    rules::{self, Fix, Names},
    world::is_unchecked,
};
use gmsa_core::{
    admission::{
        Denial, SlotDenial,
        pod::{Pod, Slot},
    },
    diagnostic::{Diagnostic, Rule},
};

/// A pod, and what the webhooks decide about it.
pub(super) struct Decided<'p> {
    pub checked: &'p CheckedPod<'p>,
    pub pod: &'p Pod,
    pub context: &'p CheckContext,
    pub denials: Vec<SlotDenial>,
    pub reviewed: Reviewed,
    /// Whether its namespace is being deleted.
    pub is_ending: bool,
    pub placeholders: Placeholders,
}

/// The rule of a denial: a failed look-up denies nothing.
pub(super) fn reported_rule(denial: &Denial) -> &'static Rule {
    if is_unchecked(denial) { &rules::NOT_CHECKED } else { denial.rule() }
}

/// The result in a report for a denied slot or annotation.
pub(super) fn refused(denial: &Denial) -> String {
    if is_unchecked(denial) { UNCHECKED.to_owned() } else { format!("refused, {}: {}", denial.code(), denial.reason()) }
}

pub(super) const UNCHECKED: &str = "could not be checked";

impl Decided<'_> {
    /// The denials of a slot, or of the pod.
    pub(super) fn denials_of(&self, slot: Option<&Slot<'_>>) -> impl Iterator<Item = &Denial> {
        let position = slot.map(Slot::position);
        self.denials.iter().filter(move |found| found.slot == position).map(|found| &found.denial)
    }

    /// The finding about a denial of a slot, or of the pod.
    pub(super) async fn denied(&self, slot: Option<&Slot<'_>>, at: &str, denial: &Denial) -> Diagnostic {
        let Self { checked, pod, context, .. } = self;
        let (namespace, rule) = (&checked.namespace, denial.rule());
        if let (Denial::SpecMissing(spec), Some(file)) = (denial, context.unread_file(Some(denial))) {
            let text = format!("cred spec {spec} is in no file that could be read: it may be in {file}");
            return checked.finding(&rules::NOT_CHECKED, at, text);
        }
        let nearest = names::nearest_spec(&context.world, slice::from_ref(denial)).await;
        let names = Names { slot, nearest: nearest.as_deref(), ..Names::of_denied(denial, pod, namespace) };
        let fix = match context.world.unread_fact(denial, namespace) {
            Some((_, remedy)) => remedy.text,
            None => rules::fix(rule, &names).and_then(Fix::in_manifest).unwrap_or_else(|| rule.remedy.to_owned()),
        };
        checked.finding(reported_rule(denial), at, denial.to_string()).with_fix(fix)
    }
}
