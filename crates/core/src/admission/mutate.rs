//! `/mutate`: names become contents, by one JSON Patch (RFC 6902).
//!
//! Invariants: only slots with a name and no contents are touched, so a patched pod sent again yields no patch.

use std::collections::HashSet;

use super::{
    AllowReason, Denial, Enforcement, Facts, Needs, Review,
    decision::Admitted,
    operation::Operation,
    patch::PatchWriter,
    pod::{Pod, Slot, SlotKind},
    preconditions::{bound_names, expect_pod, spec_name},
};
use crate::credspec::SpecName;

/// What to do for one review.
#[derive(Debug, Default)]
pub(super) struct Expansion<'p> {
    /// The slots to expand, with the credential specs that they name.
    slots: Vec<(Slot<'p>, SpecName)>,
    /// The denials that depend on no fact, in the order of the slots.
    refused: Vec<Denial>,
    hostname: bool,
    reason: Option<AllowReason>,
}

pub(super) fn plan(review: &Review, random_hostname: bool) -> Result<Expansion<'_>, Denial> {
    let pod = expect_pod(review)?;
    if pod.is_linux() {
        return Ok(Expansion::nothing(AllowReason::Linux));
    }
    let on_create = review.operation == Operation::Create;
    if !on_create && review.sub_resource != "ephemeralcontainers" {
        return Ok(Expansion::nothing(AllowReason::NothingToMutate));
    }
    let slots: Vec<Slot<'_>> = if on_create { pod.slots().collect() } else { added(review, pod)? };
    if slots.iter().all(|slot| slot.name.is_none()) {
        return Ok(Expansion::nothing(AllowReason::NoGmsa));
    }
    bound_names(pod)?;
    let hostname = random_hostname && on_create && pod.hostname().is_none();
    let mut expansion = Expansion { hostname, ..Expansion::default() };
    for slot in slots {
        let Some(name) = slot.name else { continue };
        match spec_name(name, &slot) {
            Err(denial) => expansion.refused.push(denial),
            Ok(name) if slot.contents.is_none() => {
                expansion.slots.push((slot, name));
            }
            Ok(_) => {}
        }
    }
    Ok(expansion)
}

/// The ephemeral containers that the old object does not have.
fn added<'r>(review: &'r Review, pod: &'r Pod) -> Result<Vec<Slot<'r>>, Denial> {
    let old = review.old_object.as_ref().ok_or(Denial::NoObject { field: "oldObject", operation: review.operation })?;
    let ephemeral = |slot: &Slot<'_>| slot.kind == SlotKind::EphemeralContainer;
    let known: HashSet<&str> = old.slots().filter(ephemeral).map(|slot| slot.owner).collect();
    Ok(pod.slots().filter(ephemeral).filter(|slot| !known.contains(slot.owner)).collect())
}

impl Expansion<'_> {
    fn nothing(reason: AllowReason) -> Self {
        Self { reason: Some(reason), ..Self::default() }
    }

    pub(super) fn needs(&self, enforcement: Enforcement) -> Needs {
        let mut needs = Needs::default();
        if enforcement == Enforcement::Enforce && !self.refused.is_empty() {
            return needs;
        }
        needs.hostname = self.hostname;
        for (_, name) in &self.slots {
            Needs::add(&mut needs.specs, name);
        }
        needs
    }

    pub(super) fn decide(&self, facts: &Facts, enforcement: Enforcement) -> Result<Admitted, Denial> {
        if let Some(reason) = self.reason {
            return Ok(reason.into());
        }
        let mut not_enforced = Vec::new();
        let mut pass = |denial: Denial| {
            if !enforcement.allows(&denial) {
                return Err(denial);
            }
            not_enforced.push(denial);
            Ok(())
        };
        for denial in &self.refused {
            pass(denial.clone())?;
        }
        let mut patch = PatchWriter::default();
        for (slot, name) in &self.slots {
            // The slot has a name, so its `windowsOptions` is there.
            let pointer = format!("{}/gmsaCredentialSpec", slot.pointer());
            let added = facts.contents(name).and_then(|contents| patch.add(&pointer, contents.text()));
            added.or_else(&mut pass)?;
        }
        if let Some(hostname) = facts.hostname.as_deref().filter(|_| self.hostname) {
            patch.add("/spec/hostname", hostname).or_else(&mut pass)?;
        }
        let reason = if self.slots.is_empty() { AllowReason::AlreadyExpanded } else { AllowReason::Expanded };
        Ok(Admitted { reason, patch: patch.finish(), not_enforced })
    }
}
