//! `/mutate`: names become contents, by one JSON Patch (RFC 6902).
//!
//! What always holds: only slots with a name and no contents are touched, so a patched pod sent again yields no patch.

use std::{borrow::Cow, collections::HashSet};

use super::{
    Denial, Facts, Grounds, MAX_PATCH_BYTES, Needs, Review, bound_names, expect_pod,
    pod::{Pod, Slot, SlotKind},
    review::Operation,
    trusted,
};
use crate::credspec::{SpecName, text};

/// A JSON Patch, as it is written into the answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Patch(Vec<u8>);

impl Patch {
    /// The patch as JSON text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// What is to be done for one review.
#[derive(Debug, Default)]
pub(super) struct Plan<'p> {
    /// The slots to expand, with the credential specs that they name.
    expand: Vec<(Slot<'p>, SpecName)>,
    hostname: bool,
    grounds: Option<Grounds>,
}

pub(super) fn plan<'r>(review: &'r Review<'_>, random_hostname: bool) -> Result<Plan<'r>, Denial> {
    let pod = expect_pod(review)?;
    if pod.is_linux() {
        return Ok(Plan::nothing(Grounds::Linux));
    }
    let on_create = review.operation == Operation::Create;
    if !on_create && review.sub_resource != "ephemeralcontainers" {
        return Ok(Plan::nothing(Grounds::NothingToMutate));
    }
    let slots: Vec<Slot<'_>> = if on_create { pod.slots().collect() } else { added(review, pod)? };
    if slots.iter().all(|slot| slot.name.is_none()) {
        return Ok(Plan::nothing(Grounds::NoGmsa));
    }
    bound_names(pod)?;
    let mut plan = Plan { hostname: random_hostname && on_create && !pod.has_hostname(), ..Plan::default() };
    let mut smallest_patch = 0;
    for slot in slots {
        let Some(name) = slot.name else { continue };
        let name = trusted(name, &slot)?;
        if slot.contents.is_none() {
            smallest_patch += smallest_operation(&slot);
            plan.expand.push((slot, name));
        }
    }
    if smallest_patch > MAX_PATCH_BYTES {
        return Err(Denial::PatchTooLarge);
    }
    Ok(plan)
}

/// The ephemeral containers that the old object does not have.
fn added<'r>(review: &'r Review<'_>, pod: &'r Pod<'_>) -> Result<Vec<Slot<'r>>, Denial> {
    let old = review.old_object.as_ref().ok_or(Denial::NoObject { field: "oldObject", operation: review.operation })?;
    let ephemeral = |slot: &Slot<'_>| slot.kind == SlotKind::EphemeralContainer;
    let known: HashSet<&str> = old.slots().filter(ephemeral).map(|slot| slot.owner).collect();
    Ok(pod.slots().filter(ephemeral).filter(|slot| !known.contains(slot.owner)).collect())
}

impl Plan<'_> {
    fn nothing(grounds: Grounds) -> Self {
        Self { grounds: Some(grounds), ..Self::default() }
    }

    pub(super) fn needs(&self) -> Needs {
        let mut needs = Needs { hostname: self.hostname, ..Needs::default() };
        for (_, name) in &self.expand {
            Needs::add(&mut needs.specs, name);
        }
        needs
    }

    pub(super) fn decide(&self, facts: &Facts) -> Result<(Grounds, Option<Patch>), Denial> {
        if let Some(grounds) = self.grounds {
            return Ok((grounds, None));
        }
        let mut patch = Vec::new();
        for (slot, name) in &self.expand {
            write_add(&mut patch, &path(slot), facts.contents(name)?.quoted())?;
        }
        if let Some(hostname) = facts.hostname.as_deref().filter(|_| self.hostname) {
            write_add(&mut patch, "/spec/hostname", &text::string(hostname))?;
        }
        let grounds = if self.expand.is_empty() { Grounds::AlreadyExpanded } else { Grounds::Expanded };
        if patch.is_empty() {
            return Ok((grounds, None));
        }
        patch.push(b']');
        Ok((grounds, Some(Patch(patch))))
    }
}

const HEAD: &[u8] = br#"{"op":"add","path":""#;
const MIDDLE: &[u8] = br#"","value":"#;

/// The fewest bytes that the operation for a slot takes, its separator included.
fn smallest_operation(slot: &Slot<'_>) -> usize {
    HEAD.len() + path(slot).len() + MIDDLE.len() + "\"{}\"},".len()
}

/// Adds one operation. The path holds only field names and numbers: nothing in it needs an escape.
fn write_add(patch: &mut Vec<u8>, at: &str, quoted_value: &str) -> Result<(), Denial> {
    let separator = if patch.is_empty() { b"[" } else { b"," };
    let parts = [separator, HEAD, at.as_bytes(), MIDDLE, quoted_value.as_bytes(), b"}"];
    // The closing bracket is still to come.
    patch.reserve(parts.iter().map(|part| part.len()).sum::<usize>() + 1);
    for part in parts {
        patch.extend_from_slice(part);
    }
    if patch.len() < MAX_PATCH_BYTES { Ok(()) } else { Err(Denial::PatchTooLarge) }
}

/// Where a slot's contents go. The slot has a name, so its `windowsOptions` is there.
fn path(slot: &Slot<'_>) -> Cow<'static, str> {
    match slot.kind.field() {
        None => Cow::Borrowed("/spec/securityContext/windowsOptions/gmsaCredentialSpec"),
        Some(list) => {
            Cow::Owned(format!("/spec/{list}/{}/securityContext/windowsOptions/gmsaCredentialSpec", slot.index))
        }
    }
}
