//! What the slots of a review ask for, in the order in which the contract checks them: what [`mutate`](super::mutate) and
//! [`validate`](super::validate) make of a review before anything is looked up.

use super::{AllowReason, Denial, SlotDenial, Subject, pod::Slot};
use crate::credspec::SpecName;

/// What a slot asks for, or the request as a whole.
#[derive(Debug)]
pub(super) enum Claim<'r> {
    /// Denied before any look-up.
    Denied(SlotDenial),
    /// The slot names a credential spec, by a name that can be one.
    Names(Slot<'r>, SpecName),
}

impl<'r> Claim<'r> {
    /// The claim of a slot: its name, or why that is denied.
    pub fn of(slot: Slot<'r>, named: Result<SpecName, Denial>) -> Self {
        match named {
            Ok(spec) => Self::Names(slot, spec),
            Err(denial) => Self::Denied(SlotDenial::of(&slot, denial)),
        }
    }
}

/// The claims of a review, in the order in which the contract checks them.
#[derive(Debug)]
pub(super) struct Claims<'r> {
    pub all: Vec<Claim<'r>>,
    /// Who wants to use what is named, where that is asked.
    pub subject: Option<Subject>,
    /// Why the request is admitted where nothing denies it.
    pub reason: AllowReason,
}

impl From<AllowReason> for Claims<'_> {
    fn from(reason: AllowReason) -> Self {
        Self { all: Vec::new(), subject: None, reason }
    }
}

impl Claims<'_> {
    /// Adds that the request is denied as a whole.
    pub fn deny(mut self, denial: Denial) -> Self {
        self.all.push(Claim::Denied(SlotDenial { slot: None, denial }));
        self
    }
}
