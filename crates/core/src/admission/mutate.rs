//! `/mutate`: names become contents, by one JSON Patch (RFC 6902).
//!
//! What always holds: only slots with a name and no contents are touched, so a patched pod sent again yields no patch.

use std::{borrow::Cow, collections::HashSet};

use super::{
    Admitted, Denial, Enforcement, Facts, Grounds, MAX_PATCH_BYTES, Needs, Review, bound_names, expect_pod,
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
pub(super) struct Expansion<'p> {
    /// The slots to expand, with the credential specs that they name.
    slots: Vec<(Slot<'p>, SpecName)>,
    /// What is refused whatever the facts are, in the order of the slots.
    refused: Vec<Denial>,
    hostname: bool,
    grounds: Option<Grounds>,
}

pub(super) fn plan<'r>(review: &'r Review<'_>, random_hostname: bool) -> Result<Expansion<'r>, Denial> {
    let pod = expect_pod(review)?;
    if pod.is_linux() {
        return Ok(Expansion::nothing(Grounds::Linux));
    }
    let on_create = review.operation == Operation::Create;
    if !on_create && review.sub_resource != "ephemeralcontainers" {
        return Ok(Expansion::nothing(Grounds::NothingToMutate));
    }
    let slots: Vec<Slot<'_>> = if on_create { pod.slots().collect() } else { added(review, pod)? };
    if slots.iter().all(|slot| slot.name.is_none()) {
        return Ok(Expansion::nothing(Grounds::NoGmsa));
    }
    bound_names(pod)?;
    let hostname = random_hostname && on_create && !pod.has_hostname();
    let mut expansion = Expansion { hostname, ..Expansion::default() };
    let mut smallest_patch = 0;
    for slot in slots {
        let Some(name) = slot.name else { continue };
        match trusted(name, &slot) {
            Err(denial) => expansion.refused.push(denial),
            Ok(name) if slot.contents.is_none() => {
                smallest_patch += smallest_operation(&slot);
                expansion.slots.push((slot, name));
            }
            Ok(_) => {}
        }
    }
    if smallest_patch > MAX_PATCH_BYTES && expansion.refused.is_empty() {
        return Err(Denial::PatchTooLarge);
    }
    Ok(expansion)
}

/// The ephemeral containers that the old object does not have.
fn added<'r>(review: &'r Review<'_>, pod: &'r Pod<'_>) -> Result<Vec<Slot<'r>>, Denial> {
    let old = review.old_object.as_ref().ok_or(Denial::NoObject { field: "oldObject", operation: review.operation })?;
    let ephemeral = |slot: &Slot<'_>| slot.kind == SlotKind::EphemeralContainer;
    let known: HashSet<&str> = old.slots().filter(ephemeral).map(|slot| slot.owner).collect();
    Ok(pod.slots().filter(ephemeral).filter(|slot| !known.contains(slot.owner)).collect())
}

impl Expansion<'_> {
    fn nothing(grounds: Grounds) -> Self {
        Self { grounds: Some(grounds), ..Self::default() }
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
        if let Some(grounds) = self.grounds {
            return Ok(grounds.into());
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
        let mut patch = Operations::default();
        for (slot, name) in &self.slots {
            let added = facts.contents(name).and_then(|contents| patch.add(&path(slot), contents.quoted()));
            added.or_else(&mut pass)?;
        }
        if let Some(hostname) = facts.hostname.as_deref().filter(|_| self.hostname) {
            patch.add("/spec/hostname", &text::string(hostname)).or_else(&mut pass)?;
        }
        let grounds = if self.slots.is_empty() { Grounds::AlreadyExpanded } else { Grounds::Expanded };
        Ok(Admitted { grounds, patch: patch.finish(), not_enforced })
    }
}

const HEAD: &[u8] = br#"{"op":"add","path":""#;
const MIDDLE: &[u8] = br#"","value":"#;

/// The fewest bytes that the operation for a slot takes, its separator included.
fn smallest_operation(slot: &Slot<'_>) -> usize {
    HEAD.len() + path(slot).len() + MIDDLE.len() + "\"{}\"},".len()
}

/// The operations of a patch, without its closing bracket.
#[derive(Default)]
struct Operations(Vec<u8>);

impl Operations {
    /// Adds one operation, or none where the patch gets too large. The path holds only field names and numbers: nothing in
    /// it needs an escape.
    fn add(&mut self, at: &str, quoted_value: &str) -> Result<(), Denial> {
        let separator = if self.0.is_empty() { b"[" } else { b"," };
        let parts = [separator, HEAD, at.as_bytes(), MIDDLE, quoted_value.as_bytes(), b"}"];
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if self.0.len() + length >= MAX_PATCH_BYTES {
            return Err(Denial::PatchTooLarge);
        }
        self.0.reserve(length + 1);
        for part in parts {
            self.0.extend_from_slice(part);
        }
        Ok(())
    }

    fn finish(mut self) -> Option<Patch> {
        if self.0.is_empty() {
            return None;
        }
        self.0.push(b']');
        Some(Patch(self.0))
    }
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
