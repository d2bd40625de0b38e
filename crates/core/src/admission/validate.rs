//! `/validate`: a new slot is authorised and carries its credential spec's contents; an old one is as it was.
//!
//! Invariants: slots are checked in the order in which [`Pod::slots`] gives them, and the first denial decides; a slot
//! is allowed only by a fact that says so.

use std::collections::{HashMap, HashSet};

use super::{
    AllowReason, Denial, Facts, Failure, Needs, Review, Subject, UseFact,
    operation::Operation,
    pod::{Pod, Slot, SlotKind, SlotRef},
    preconditions::{bound_names, expect_pod, spec_name},
};
use crate::{
    credspec::{MAX_CONTENTS_BYTES, SpecName, compare::compare},
    json::MAX_TEXT,
};

/// What a review asks for.
#[derive(Debug)]
pub(super) struct Checks<'r> {
    /// Set where there is a slot to check.
    subject: Option<Subject>,
    /// The slots with a name, up to and including the first that is denied whatever the facts are.
    named: Vec<(Slot<'r>, SpecName)>,
    /// The denial that remains if all of `named` pass.
    then: Result<AllowReason, Denial>,
}

pub(super) fn plan(review: &Review) -> Result<Checks<'_>, Denial> {
    let pod = expect_pod(review)?;
    let (slots, reason): (Vec<Slot<'_>>, _) = if review.operation == Operation::Create {
        (pod.slots().collect(), AllowReason::NoGmsa)
    } else {
        let old =
            review.old_object.as_ref().ok_or(Denial::NoObject { field: "oldObject", operation: review.operation })?;
        (unchanged(old, pod)?, AllowReason::Unchanged)
    };
    let mut checks = Checks { subject: None, named: Vec::new(), then: Ok(reason) };
    if slots.iter().all(|slot| slot.name.is_none() && slot.contents.is_none()) {
        return Ok(checks);
    }
    bound_names(pod)?;
    checks.then = Ok(AllowReason::Authorized);
    for slot in slots {
        let name = match (slot.name, slot.contents) {
            (None, None) => continue,
            (None, Some(_)) => Err(Denial::ContentsWithoutName(SlotRef::from(&slot))),
            (Some(name), _) => spec_name(name, &slot),
        };
        match name {
            Err(denial) => {
                checks.then = Err(denial);
                break;
            }
            Ok(name) => {
                let expanded = slot.contents.is_some();
                checks.named.push((slot, name));
                if !expanded {
                    break;
                }
            }
        }
    }
    if !checks.named.is_empty() {
        checks.subject = Some(Subject::of(review, pod)?);
    }
    Ok(checks)
}

/// Refuses a change to any slot of the old object, and returns the slots that the old object does not have. Slots pair
/// by kind and name: an index shifts when a container is put in front.
fn unchanged<'r>(old: &Pod, new: &'r Pod) -> Result<Vec<Slot<'r>>, Denial> {
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
                refuse_change(was, Some(&slot))?;
            }
        }
    }
    for was in old.slots().filter(|was| !seen.contains(&key(was.kind, was.owner))) {
        refuse_change(&was, None)?;
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

impl Checks<'_> {
    pub(super) fn needs(&self) -> Needs {
        let mut needs = Needs { subject: self.subject.clone(), ..Needs::default() };
        for (slot, name) in &self.named {
            Needs::add(&mut needs.uses, name);
            if slot.contents.is_some() {
                Needs::add(&mut needs.specs, name);
            }
        }
        needs
    }

    pub(super) fn decide(&self, facts: &Facts) -> Result<AllowReason, Denial> {
        if let Some(subject) = &self.subject {
            for (slot, name) in &self.named {
                check(slot, name, subject, facts)?;
            }
        }
        self.then.clone()
    }
}

fn check(slot: &Slot<'_>, spec: &SpecName, subject: &Subject, facts: &Facts) -> Result<(), Denial> {
    let service_account = || subject.service_account.as_ref().to_owned();
    match facts.may_use(spec) {
        Some(UseFact::Allowed) => {}
        Some(UseFact::Denied { reason }) => {
            return Err(Denial::NotAuthorized {
                service_account: service_account(),
                spec: spec.clone(),
                reason: reason.clone(),
            });
        }
        unknown => {
            let failure = match unknown {
                Some(UseFact::Failed(failure)) => failure.clone(),
                _ => Failure::not_asked(),
            };
            return Err(Denial::AuthorizationFailed {
                service_account: service_account(),
                spec: spec.clone(),
                failure,
            });
        }
    }
    let Some(own) = slot.contents else {
        return Err(Denial::NameWithoutContents { slot: SlotRef::from(slot), spec: spec.clone() });
    };
    let contents = facts.contents(spec)?;
    compare(own, contents).map_err(|difference| Denial::ContentsDiffer {
        slot: SlotRef::from(slot),
        spec: spec.clone(),
        difference,
    })
}
