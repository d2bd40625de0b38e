//! `/mutate`: names become contents, and Linux pods get the sidecar, by one JSON Patch (RFC 6902).
//!
//! Invariants: of the slots, only those with a name and no contents are touched, so a patched pod sent again yields no patch; an invalid name is
//! denied before anything is looked up.

use std::collections::HashSet;

use super::{
    AllowReason, Denial, Review, SlotDenial, TicketSettings,
    advice::advise_tickets,
    case::{Assessment, Case},
    claims::{Claim, SpecClaims},
    operation::Operation,
    patch::PatchWriter,
    pod::{Pod, Slot, SlotKind, slot},
    preconditions::{expect_few_names, expect_old_pod, expect_pod, spec_name},
    tickets,
    warning::Warnings,
};

/// The slots with invalid names, which decide, then those to expand.
pub(super) fn claims(review: &Review, settings: &TicketSettings) -> Result<SpecClaims, Denial> {
    let pod = expect_pod(review)?;
    let on_create = review.operation == Operation::Create;
    let all = if on_create { tickets::claims(pod, settings) } else { Vec::new() };
    if !all.is_empty() {
        return Ok(SpecClaims { all, ..AllowReason::Tickets.into() });
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
    expect_few_names(pod)?;
    let mut claims = SpecClaims::from(AllowReason::AlreadyExpanded);
    let mut unexpanded = Vec::new();
    for slot in slots {
        let Some(name) = slot.name else { continue };
        match spec_name(name, || slot.to_string()) {
            Err(denial) => claims.all.push(Claim::Denied(SlotDenial::of(&slot, denial))),
            Ok(spec) if slot.contents.is_none() => {
                unexpanded.push(Claim::Named { slot: slot.position(), spec, needs_contents: true });
            }
            Ok(_) => {}
        }
    }
    if !unexpanded.is_empty() {
        claims.reason = AllowReason::Expanded;
    }
    claims.all.append(&mut unexpanded);
    Ok(claims)
}

/// Adds the contents that the slots name, as far as they are known and fit, and a host name to a pod that uses GMSA without one.
pub(super) fn expand(case: &Case) -> Assessment {
    let Case { review, settings, claims, facts, .. } = case;
    let created = review.object.as_ref().filter(|_| review.operation == Operation::Create);
    let (mut patch, mut denials, mut asked) = (PatchWriter::default(), Vec::new(), Vec::new());
    for claim in &claims.all {
        match claim {
            Claim::Denied(denial) => denials.push(denial.clone()),
            Claim::Named { slot, spec, .. } => {
                // The slot has a name, so its `windowsOptions` is there.
                let pointer = format!("{}/gmsaCredentialSpec", slot::pointer(*slot));
                let added = facts.contents(spec).and_then(|contents| patch.add(&pointer, contents.text()));
                denials.extend(added.err().map(|denial| SlotDenial { slot: Some(*slot), denial }));
            }
            Claim::Token(verb, spec) => asked.push((*verb, spec)),
        }
    }
    if let ([_, ..], Some(pod), TicketSettings::On(sidecar)) = (&*asked, created, &settings.tickets) {
        let injected = tickets::inject(pod, &asked, sidecar, &mut patch);
        denials.extend(injected.err().map(|denial| SlotDenial { slot: None, denial }));
    }
    let uses_gmsa = matches!(claims.reason, AllowReason::Expanded | AllowReason::AlreadyExpanded);
    if let Some(hostname) = settings.hostname.as_deref().filter(|_| uses_gmsa)
        && created.is_some_and(|pod| pod.hostname().is_none())
    {
        let added = patch.add("/spec/hostname", hostname);
        denials.extend(added.err().map(|denial| SlotDenial { slot: None, denial }));
    }
    let mut warnings = Warnings::default();
    if let Some(pod) = created {
        warnings.extend(advise_tickets(pod, matches!(settings.tickets, TicketSettings::On(_))));
    }
    Assessment { denials, patch: patch.finish(), warnings: warnings.into_lines(), reason: claims.reason }
}

/// The ephemeral containers that the old object does not have.
fn added<'r>(review: &'r Review, pod: &'r Pod) -> Result<Vec<Slot<'r>>, Denial> {
    let old = expect_old_pod(review)?;
    let ephemeral = |slot: &Slot<'_>| slot.kind == SlotKind::EphemeralContainer;
    let known: HashSet<&str> = old.slots().filter(ephemeral).map(|slot| slot.owner).collect();
    Ok(pod.slots().filter(ephemeral).filter(|slot| !known.contains(slot.owner)).collect())
}
