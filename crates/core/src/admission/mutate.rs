//! `/mutate`: names become contents, by one JSON Patch (RFC 6902).
//!
//! Invariants: only slots with a name and no contents are touched, so a patched pod sent again yields no patch; a name that cannot be
//! one decides before anything is looked up.

use std::collections::HashSet;

use super::{
    AllowReason, Denial, Review,
    inquiry::{Admitted, Inquiry, Stop},
    operation::Operation,
    patch::PatchWriter,
    pod::{Pod, Slot, SlotKind},
    preconditions::{bound_names, expect_old_pod, expect_pod, spec_name},
};

pub(super) fn decide(review: &Review, inquiry: &mut Inquiry<'_>) -> Result<Admitted, Stop> {
    let pod = expect_pod(review)?;
    if pod.is_linux() {
        return Ok(AllowReason::Linux.into());
    }
    let on_create = review.operation == Operation::Create;
    if !on_create && review.sub_resource != "ephemeralcontainers" {
        return Ok(AllowReason::NothingToMutate.into());
    }
    let slots: Vec<Slot<'_>> = if on_create { pod.slots().collect() } else { added(review, pod)? };
    if slots.iter().all(|slot| slot.name.is_none()) {
        return Ok(AllowReason::NoGmsa.into());
    }
    bound_names(pod)?;
    let mut unexpanded = Vec::new();
    for slot in slots {
        let Some(name) = slot.name else { continue };
        match spec_name(name, &slot) {
            Err(denial) => inquiry.deny(Some(&slot), denial)?,
            Ok(name) if slot.contents.is_none() => unexpanded.push((slot, name)),
            Ok(_) => {}
        }
    }
    let reason = if unexpanded.is_empty() { AllowReason::AlreadyExpanded } else { AllowReason::Expanded };
    let found = inquiry.each(unexpanded, |inquiry, (_, name)| inquiry.contents(name))?;
    let mut patch = PatchWriter::default();
    for ((slot, _), contents) in found {
        // The slot has a name, so its `windowsOptions` is there.
        let pointer = format!("{}/gmsaCredentialSpec", slot.pointer());
        let added = contents.and_then(|contents| patch.add(&pointer, contents.text()));
        added.or_else(|denial| inquiry.deny(Some(&slot), denial))?;
    }
    if let Some(hostname) = inquiry.facts.hostname.as_deref().filter(|_| on_create && pod.hostname().is_none()) {
        patch.add("/spec/hostname", hostname).or_else(|denial| inquiry.deny(None, denial))?;
    }
    Ok(Admitted { reason, patch: patch.finish() })
}

/// The ephemeral containers that the old object does not have.
fn added<'r>(review: &'r Review, pod: &'r Pod) -> Result<Vec<Slot<'r>>, Denial> {
    let old = expect_old_pod(review)?;
    let ephemeral = |slot: &Slot<'_>| slot.kind == SlotKind::EphemeralContainer;
    let known: HashSet<&str> = old.slots().filter(ephemeral).map(|slot| slot.owner).collect();
    Ok(pod.slots().filter(ephemeral).filter(|slot| !known.contains(slot.owner)).collect())
}
