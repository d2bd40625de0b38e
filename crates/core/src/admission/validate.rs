//! `/validate`: a new slot is authorised and carries its credential spec's contents; an old one is as it was.
//!
//! Invariants: slots are checked in the order in which [`Pod::slots`] gives them, and where denials are enforced the first one
//! decides; a slot is allowed only by a fact that says so.

use std::collections::{HashMap, HashSet};

use super::{
    AllowReason, Denial, Review, Subject,
    inquiry::{Inquiry, Stop},
    operation::Operation,
    pod::{Pod, Slot, SlotKind, SlotRef},
    preconditions::{bound_names, expect_old_pod, expect_pod, spec_name},
};
use crate::{
    credspec::{Contents, MAX_CONTENTS_BYTES, SpecName},
    json::MAX_TEXT,
};

pub(super) fn decide(review: &Review, inquiry: &mut Inquiry<'_>) -> Result<AllowReason, Stop> {
    let pod = expect_pod(review)?;
    let (mut slots, reason) = if review.operation == Operation::Create {
        (pod.slots().collect(), AllowReason::NoGmsa)
    } else {
        (unchanged(expect_old_pod(review)?, pod, inquiry)?, AllowReason::Unchanged)
    };
    slots.retain(Slot::uses_gmsa);
    if slots.is_empty() {
        return Ok(reason);
    }
    bound_names(pod)?;
    let subject = Subject::of(review, pod);
    // Contents are compared last, once: what they need is asked for before.
    for (slot, found) in inquiry.each(slots, |inquiry, slot| check(slot, &subject, inquiry))? {
        let compared = found.and_then(|Found { own, spec, contents }| {
            let difference = inquiry.compare(own, &spec, contents);
            difference.map_err(|difference| Denial::ContentsDiffer { slot: SlotRef::from(&slot), spec, difference })
        });
        compared.or_else(|denial| inquiry.deny(Some(&slot), denial))?;
    }
    Ok(AllowReason::Authorized)
}

/// Refuses a change to any slot of the old object, and returns the slots that the old object does not have. Slots pair
/// by kind and name: an index shifts when a container is put in front.
fn unchanged<'r>(old: &Pod, new: &'r Pod, inquiry: &mut Inquiry<'_>) -> Result<Vec<Slot<'r>>, Denial> {
    // The pod itself is one slot, under any name.
    let key = |kind: SlotKind, owner| if kind == SlotKind::Pod { (kind, "") } else { (kind, owner) };
    let before: HashMap<_, Slot<'_>> = old.slots().map(|slot| (key(slot.kind, slot.owner), slot)).collect();
    let mut seen = HashSet::with_capacity(before.len());
    let mut added = Vec::new();
    for slot in new.slots() {
        match before.get(&key(slot.kind, slot.owner)) {
            None => added.push(slot),
            Some(was) => {
                seen.insert(key(was.kind, was.owner));
                refuse_change(was, Some(&slot)).or_else(|denial| inquiry.deny(Some(&slot), denial))?;
            }
        }
    }
    for was in old.slots().filter(|was| !seen.contains(&key(was.kind, was.owner))) {
        refuse_change(&was, None).or_else(|denial| inquiry.deny(Some(&was), denial))?;
    }
    Ok(added)
}

/// Refuses a slot that is not as it was. What is longer than the API server stores counts as changed.
fn refuse_change(was: &Slot<'_>, now: Option<&Slot<'_>>) -> Result<(), Denial> {
    let (name, contents) = now.map_or((None, None), |now| (now.name, now.contents));
    let same_name = was.name == name && was.name.is_none_or(|name| name.len() <= MAX_TEXT);
    let same_contents =
        was.contents == contents && was.contents.is_none_or(|contents| contents.len() <= MAX_CONTENTS_BYTES);
    let what = match (same_name, same_contents) {
        (true, true) => return Ok(()),
        (false, true) => "name",
        (true, false) => "contents",
        (false, false) => "name and contents",
    };
    Err(Denial::Modified { what, slot: SlotRef::from(was) })
}

/// What a slot carries, and what it must be equal to.
struct Found<'s, 'f> {
    own: &'s str,
    spec: SpecName,
    contents: &'f Contents,
}

fn check<'s, 'f>(
    slot: &Slot<'s>,
    subject: &Result<Subject, Denial>,
    inquiry: &mut Inquiry<'f>,
) -> Result<Found<'s, 'f>, Stop> {
    let name = slot.name.ok_or_else(|| Denial::ContentsWithoutName(SlotRef::from(slot)))?;
    let spec = spec_name(name, slot)?;
    let subject = subject.as_ref().map_err(Denial::clone)?;
    // Both are asked for at once; a name without contents is denied, so those of its credential spec do not matter.
    let may_use = inquiry.may_use(subject, &spec);
    let found = slot.contents.map(|own| (own, inquiry.contents(&spec)));
    may_use?;
    let (own, contents) =
        found.ok_or_else(|| Denial::NameWithoutContents { slot: SlotRef::from(slot), spec: spec.clone() })?;
    Ok(Found { own, contents: contents?, spec })
}
