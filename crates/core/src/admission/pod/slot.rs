//! A slot: one place in a Pod that can carry `securityContext.windowsOptions`, which is the pod itself and every container
//! of every kind. The head of `pod.rs` lists what a new kind of slot touches; `SlotKind::field` is there
//! too, because it alone names the lists of containers.

use std::fmt;

use super::{
    slot_of,
    tickets::{SIDECAR, SidecarFields},
};
use crate::quote::{NAME, quoted};

word_enum! {
    /// The kind of a slot.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum SlotKind {
        Pod = "pod",
        Container = "container",
        /// An entry of `spec.initContainers`, sidecars included.
        InitContainer = "init container",
        EphemeralContainer = "ephemeral container",
    }
}

/// The `windowsOptions` of the slot at this position, as a JSON Pointer (RFC 6901) into the Pod.
pub(in crate::admission) fn pointer((kind, index): (SlotKind, usize)) -> String {
    match kind.field() {
        None => "/spec/securityContext/windowsOptions".to_owned(),
        Some(list) => format!("/spec/{list}/{index}/securityContext/windowsOptions"),
    }
}

/// One place in a Pod that can carry GMSA settings. An absent field and JSON null are `None`; an empty string is a value.
#[derive(Clone, Copy, Debug)]
pub struct Slot<'p> {
    pub kind: SlotKind,
    /// Its position in the list of its kind; 0 for the pod itself.
    pub index: usize,
    /// The container's name, or the pod's name, or where that is not given yet its generateName. Not validated.
    pub owner: &'p str,
    /// `windowsOptions.gmsaCredentialSpecName`. Not validated.
    pub name: Option<&'p str>,
    /// `windowsOptions.gmsaCredentialSpec`, cut where it is longer than the API server accepts. Not validated.
    pub contents: Option<&'p str>,
    /// `windowsOptions.runAsUserName`. Not validated.
    pub run_as_user: Option<&'p str>,
    pub host_process: Option<bool>,
    /// The container's fields about tickets.
    pub tickets: SidecarFields,
}

impl Slot<'_> {
    /// Advances a walk over slots to the slot at a position. A slot that is not there has no contents, which is denied.
    pub fn at((kind, index): (SlotKind, usize), walk: &mut impl Iterator<Item = Self>) -> Self {
        walk.find(|slot| slot.position() == (kind, index)).unwrap_or_else(|| slot_of(kind, index, "", None))
    }

    /// Its `windowsOptions` as a JSON Pointer (RFC 6901) into the Pod.
    pub fn pointer(&self) -> String {
        pointer(self.position())
    }

    /// Its kind, and its position in the list of that kind, by which it is found.
    pub fn position(&self) -> (SlotKind, usize) {
        (self.kind, self.index)
    }

    /// Whether it has options that Windows alone reads.
    pub fn has_windows_options(&self) -> bool {
        self.uses_gmsa() || self.run_as_user.is_some() || self.host_process.is_some()
    }

    /// Whether it is the sidecar for tickets, injected or written by hand.
    pub fn is_sidecar(&self) -> bool {
        self.kind == SlotKind::InitContainer && self.owner == SIDECAR && self.tickets.is_for_sidecar()
    }

    /// Whether it names a credential spec or carries contents.
    pub fn uses_gmsa(&self) -> bool {
        self.name.is_some() || self.contents.is_some()
    }
}

/// As a message names it: `container "web"`. The name comes from a pod: it is quoted, and cut where it is longer than any valid name.
impl fmt::Display for Slot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, quoted(self.owner, NAME))
    }
}
