//! `/validate`: a new slot is authorised and carries its credential spec's contents; an old one is as it was.
//!
//! Invariants: slots are checked in the order in which [`Pod::slots`] gives them, and where denials are enforced the first one
//! decides; a slot is allowed only by a fact that says so.

use std::collections::{HashMap, HashSet};

use super::{
    AllowReason, Denial, Facts, Review, ServiceAccount, SlotDenial,
    advice::advise,
    case::{Assessment, Case},
    claims::{Claim, SpecClaims},
    operation::Operation,
    pod::{Pod, Slot, SlotKind},
    preconditions::{expect_few_names, expect_old_pod, expect_pod, spec_name},
    warning::Warnings,
};
use crate::{
    credspec::{MAX_CONTENTS_BYTES, SpecName, Verb, compare::ExpectedContents},
    json::MAX_TEXT,
};

/// The changes of an update, which are denied, and the new slots.
pub(super) fn claims(review: &Review) -> Result<SpecClaims, Denial> {
    let pod = expect_pod(review)?;
    let mut claims = SpecClaims::from(AllowReason::NoGmsa);
    // An update cannot change a pod's volumes, and an ephemeral container brings none: a token is authorized once.
    let mut tokens: Vec<(Verb, &str)> = Vec::new();
    let mut slots: Vec<Slot<'_>> = if review.operation == Operation::Create {
        tokens.extend(pod.tokens());
        pod.slots().collect()
    } else {
        claims.reason = AllowReason::Unchanged;
        added_slots(expect_old_pod(review)?, pod, &mut claims)
    };
    slots.retain(Slot::uses_gmsa);
    if slots.is_empty() && tokens.is_empty() {
        return Ok(claims);
    }
    if let Err(denial) = expect_few_names(pod) {
        claims.all.push(denial.into());
        return Ok(claims);
    }
    claims.reason = AllowReason::Authorized;
    let account = ServiceAccount::of(review, pod);
    for slot in slots {
        let name = slot.name.ok_or_else(|| Denial::ContentsWithoutName(slot.to_string()));
        let spec = name.and_then(|name| spec_name(name, || slot.to_string()));
        let spec = spec.and_then(|spec| account.as_ref().map(|_| spec).map_err(Denial::clone));
        claims.all.push(match spec {
            // A name without contents is denied: what the contents should be does not matter.
            Ok(spec) => Claim::Named { slot: slot.position(), spec, needs_contents: slot.contents.is_some() },
            Err(denial) => Claim::Denied(SlotDenial::of(&slot, denial)),
        });
    }
    for (verb, token) in tokens {
        let spec = spec_name(token, || verb.product().audience_place());
        let spec = spec.and_then(|spec| account.as_ref().map(|_| spec).map_err(Denial::clone));
        claims.all.push(spec.map_or_else(Claim::from, |spec| Claim::Token(verb, spec)));
    }
    claims.service_account = account.ok();
    Ok(claims)
}

/// Checks each claim: it is denied already, or the facts decide.
pub(super) fn check(case: &Case) -> Assessment {
    let Case { review, claims, facts, .. } = case;
    let service_account = review.object.as_ref().map_or("", Pod::service_account);
    let mut checked = Checked { service_account, facts, expected: HashMap::new() };
    let mut slots = review.object.iter().flat_map(Pod::slots);
    let mut denials = Vec::new();
    for claim in &claims.all {
        match claim {
            Claim::Denied(denial) => denials.push(denial.clone()),
            Claim::Token(verb, spec) => {
                let denied = facts.may(service_account, *verb, spec).err();
                denials.extend(denied.map(|denial| SlotDenial { slot: None, denial }));
            }
            Claim::Named { slot, spec, .. } => {
                let slot = Slot::at(*slot, &mut slots);
                denials.extend(checked.slot(&slot, spec).err().map(|denial| SlotDenial::of(&slot, denial)));
            }
        }
    }
    // Only here the pod is as it will be stored.
    let created = review.object.as_ref().filter(|_| review.operation == Operation::Create);
    let mut warnings = Warnings::default();
    warnings.extend(created.map(advise).unwrap_or_default());
    Assessment { denials, patch: None, warnings: warnings.into_lines(), reason: claims.reason }
}

/// The facts that slots are checked against.
struct Checked<'f> {
    service_account: &'f str,
    facts: &'f Facts,
    /// The contents that were compared already: they are parsed once for all slots.
    expected: HashMap<&'f SpecName, ExpectedContents<'f>>,
}

impl<'f> Checked<'f> {
    fn slot(&mut self, slot: &Slot<'_>, spec: &'f SpecName) -> Result<(), Denial> {
        self.facts.may(self.service_account, Verb::Use, spec)?;
        let Some(own) = slot.contents else {
            return Err(Denial::NameWithoutContents { slot: slot.to_string(), spec: spec.clone() });
        };
        let contents = self.facts.contents(spec)?;
        let expected = self.expected.entry(spec).or_insert_with(|| ExpectedContents::new(contents));
        expected.compare(own).map_err(|difference| Denial::ContentsDiffer {
            slot: slot.to_string(),
            spec: spec.clone(),
            difference,
        })
    }
}

/// The slots that the old object does not have; a change to any of its slots becomes a denied claim. Slots pair by kind and name: an index
/// shifts when a container is put in front.
fn added_slots<'r>(old: &Pod, new: &'r Pod, claims: &mut SpecClaims) -> Vec<Slot<'r>> {
    // The pod itself is one slot, under any name.
    let key = |kind: SlotKind, owner| if kind == SlotKind::Pod { (kind, "") } else { (kind, owner) };
    let before: HashMap<_, Slot<'_>> = old.slots().map(|slot| (key(slot.kind, slot.owner), slot)).collect();
    let mut seen = HashSet::with_capacity(before.len());
    let mut added = Vec::new();
    let denied = |slot: &Slot<'_>, denial| Claim::Denied(SlotDenial::of(slot, denial));
    for slot in new.slots() {
        match before.get(&key(slot.kind, slot.owner)) {
            None => added.push(slot),
            Some(was) => {
                seen.insert(key(was.kind, was.owner));
                claims.all.extend(changed(was, Some(&slot)).map(|denial| denied(&slot, denial)));
            }
        }
    }
    for was in old.slots().filter(|was| !seen.contains(&key(was.kind, was.owner))) {
        claims.all.extend(changed(&was, None).map(|denial| denied(&was, denial)));
    }
    added
}

/// The denial of a slot that has changed. Text longer than the API server stores counts as changed.
fn changed(was: &Slot<'_>, now: Option<&Slot<'_>>) -> Option<Denial> {
    let (name, contents) = now.map_or((None, None), |now| (now.name, now.contents));
    let same_name = was.name == name && was.name.is_none_or(|name| name.len() <= MAX_TEXT);
    let same_contents =
        was.contents == contents && was.contents.is_none_or(|contents| contents.len() <= MAX_CONTENTS_BYTES);
    let what = match (same_name, same_contents) {
        (true, true) => return None,
        (false, true) => "name",
        (true, false) => "contents",
        (false, false) => "name and contents",
    };
    Some(Denial::Modified { what, slot: was.to_string() })
}
