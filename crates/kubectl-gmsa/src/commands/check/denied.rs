//! The finding about a denial of the webhooks.

use gmsa_core::{
    admission::{
        Denial,
        pod::{Pod, Slot},
    },
    diagnostic::{Diagnostic, Rule},
};

use super::template::CheckedPod;
use crate::shared::{
    rules::{self, Fix, Names},
    world::{World, is_unchecked},
};

pub(super) fn rule(denial: &Denial) -> &'static Rule {
    if is_unchecked(denial) { &rules::NOT_CHECKED } else { denial.rule() }
}

/// The finding about a denial of a slot, or of the pod. `nearest` is the name that may be intended.
pub(super) fn denied(
    checked: &CheckedPod<'_>,
    pod: &Pod,
    (slot, nearest): (Option<&Slot<'_>>, Option<&str>),
    at: &str,
    denial: &Denial,
    world: &World,
) -> Diagnostic {
    let (namespace, rule) = (&checked.namespace, denial.rule());
    let names = Names {
        namespace: Some(namespace),
        service_account: Some(pod.service_account()),
        pod: Some(pod),
        slot,
        nearest,
        ..Names::of_denial(denial)
    };
    let fix = match world.lacking(denial, namespace) {
        Some((_, remedy)) => remedy.text,
        None => rules::fix(rule, &names).and_then(Fix::in_manifest).unwrap_or_else(|| rule.remedy.to_owned()),
    };
    checked.finding(self::rule(denial), at, denial.to_string()).with_fix(fix)
}
