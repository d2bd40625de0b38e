//! `/mutate`: names become contents, and Linux pods get the sidecar, by one JSON Patch (RFC 6902).
//!
//! Invariants: of the slots, only those with a name and no contents are touched, so a patched pod sent again yields no patch; a name that cannot be
//! one decides before anything is looked up.

use std::collections::HashSet;

use super::{
    AllowReason, Denial, Facts, Patch, Review, Settings, SlotDenial, TicketSettings,
    claims::{Claim, Claims},
    operation::Operation,
    patch::PatchWriter,
    pod::{Pod, Slot, SlotKind, SlotRef, slot},
    preconditions::{bound_names, expect_old_pod, expect_pod, spec_name},
    tickets,
};

/// The slots with invalid names, which decide, then those to expand.
pub(super) fn claims(review: &Review, settings: &TicketSettings) -> Result<Claims, Denial> {
    let pod = expect_pod(review)?;
    let on_create = review.operation == Operation::Create;
    let all = if on_create { tickets::claims(pod, settings) } else { Vec::new() };
    if !all.is_empty() {
        return Ok(Claims { all, ..AllowReason::Tickets.into() });
    }
    if pod.is_linux() {
        return Ok(AllowReason::Linux.into());
    }
    if !on_create && review.sub_resource != "ephemeralcontainers" {
        return Ok(AllowReason::NothingToMutate.into());
    }
    let slots: Vec<Slot<'_>> = if on_create { pod.slots().collect() } else { added(review, pod)? };
    if slots.iter().all(|slot| slot.name.is_none()) {
        return Ok(AllowReason::NoGmsa.into());
    }
    bound_names(pod)?;
    let mut claims = Claims::from(AllowReason::AlreadyExpanded);
    let mut unexpanded = Vec::new();
    for slot in slots {
        let Some(name) = slot.name else { continue };
        match Claim::of(&slot, spec_name(name, &SlotRef::from(&slot))) {
            denied @ Claim::Denied(_) => claims.all.push(denied),
            named if slot.contents.is_none() => unexpanded.push(named),
            _ => {}
        }
    }
    if !unexpanded.is_empty() {
        claims.reason = AllowReason::Expanded;
    }
    claims.all.append(&mut unexpanded);
    Ok(claims)
}

/// Adds the contents that the slots name, as far as they are known and fit, and a host name to a pod that uses GMSA without one.
pub(super) fn expand(
    review: &Review,
    claims: &Claims,
    facts: &Facts,
    settings: &Settings,
) -> (Option<Patch>, Vec<SlotDenial>) {
    let (mut patch, mut denials) = (PatchWriter::default(), Vec::new());
    for claim in &claims.all {
        match claim {
            Claim::Denied(denial) => denials.push(denial.clone()),
            Claim::Named { slot, spec, .. } => {
                // The slot has a name, so its `windowsOptions` is there.
                let pointer = format!("{}/gmsaCredentialSpec", slot::pointer(*slot));
                let added = facts.contents(spec).and_then(|contents| patch.add(&pointer, contents.text()));
                denials.extend(added.err().map(|denial| SlotDenial { slot: Some(*slot), denial }));
            }
            Claim::Ticket(spec) => {
                if let (Some(pod), TicketSettings::On(sidecar)) = (&review.object, &settings.tickets) {
                    let injected = tickets::inject(pod, spec, sidecar, &mut patch);
                    denials.extend(injected.err().map(|denial| SlotDenial { slot: None, denial }));
                }
            }
        }
    }
    let uses_gmsa = matches!(claims.reason, AllowReason::Expanded | AllowReason::AlreadyExpanded);
    let lacks_hostname = |pod: &Pod| review.operation == Operation::Create && pod.hostname().is_none();
    if let Some(hostname) = settings.hostname.as_deref().filter(|_| uses_gmsa)
        && review.object.as_ref().is_some_and(lacks_hostname)
    {
        let added = patch.add("/spec/hostname", hostname);
        denials.extend(added.err().map(|denial| SlotDenial { slot: None, denial }));
    }
    (patch.finish(), denials)
}

/// The ephemeral containers that the old object does not have.
fn added<'r>(review: &'r Review, pod: &'r Pod) -> Result<Vec<Slot<'r>>, Denial> {
    let old = expect_old_pod(review)?;
    let ephemeral = |slot: &Slot<'_>| slot.kind == SlotKind::EphemeralContainer;
    let known: HashSet<&str> = old.slots().filter(ephemeral).map(|slot| slot.owner).collect();
    Ok(pod.slots().filter(ephemeral).filter(|slot| !known.contains(slot.owner)).collect())
}
