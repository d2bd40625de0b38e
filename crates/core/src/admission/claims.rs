//! The claims of a review: what its slots ask for, before anything is looked up.

use super::{AllowReason, Denial, ServiceAccount, SlotDenial, pod::SlotKind};
use crate::credspec::{SpecName, Verb};

/// The request of one slot, of one token, or of the review as a whole.
#[derive(Debug)]
pub(super) enum Claim {
    /// Denied before any look-up.
    Denied(SlotDenial),
    /// The slot at this position names a credential spec, by a name that can be one. `/validate` denies a name without contents, after `use`: so
    /// it asks for `use` alone.
    Named { slot: (SlotKind, usize), spec: SpecName, needs_contents: bool },
    /// The pod has or gets a token for tickets of a credential spec, or for a keytab, by the verb.
    Token(Verb, SpecName),
}

impl From<Denial> for Claim {
    fn from(denial: Denial) -> Self {
        Self::Denied(SlotDenial { slot: None, denial })
    }
}

/// The claims of a review, in the order in which they decide: see [`Denial`](super::denial).
#[derive(Debug)]
pub(super) struct SpecClaims {
    /// The positions of slots are in the order of [`Pod::slots`](super::pod::Pod::slots).
    pub all: Vec<Claim>,
    /// The service account that wants to use what is named, where that is checked.
    pub service_account: Option<ServiceAccount>,
    /// Why the request is admitted where nothing denies it.
    pub reason: AllowReason,
}

impl From<AllowReason> for SpecClaims {
    fn from(reason: AllowReason) -> Self {
        Self { all: Vec::new(), service_account: None, reason }
    }
}
