//! A slot: one place in a Pod that can carry `securityContext.windowsOptions`, which is the pod itself and every container
//! of every kind. The head of `pod.rs` lists what a new kind of slot touches; `SlotKind::field` is there
//! too, because no other file names the lists of containers.

use std::fmt;

use crate::quote::Quoted;

/// What kind of place a slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlotKind {
    Pod,
    Container,
    /// An entry of `spec.initContainers`, sidecars included.
    InitContainer,
    EphemeralContainer,
}

impl fmt::Display for SlotKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pod => "pod",
            Self::Container => "container",
            Self::InitContainer => "init container",
            Self::EphemeralContainer => "ephemeral container",
        })
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
}

impl Slot<'_> {
    /// The place of its `windowsOptions` in the Pod, as a JSON Pointer (RFC 6901).
    pub fn pointer(&self) -> String {
        match self.kind.field() {
            None => "/spec/securityContext/windowsOptions".to_owned(),
            Some(list) => format!("/spec/{list}/{}/securityContext/windowsOptions", self.index),
        }
    }

    /// Whether it names a credential spec or carries contents.
    pub fn uses_gmsa(&self) -> bool {
        self.name.is_some() || self.contents.is_some()
    }
}

/// A slot as a message names it: `container "web"`. The name comes from a pod: it is quoted, and cut where it is longer
/// than any valid name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotRef {
    kind: SlotKind,
    owner: Quoted,
}

impl From<&Slot<'_>> for SlotRef {
    fn from(slot: &Slot<'_>) -> Self {
        Self { kind: slot.kind, owner: Quoted::new(slot.owner) }
    }
}

impl fmt::Display for SlotRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.owner)
    }
}
