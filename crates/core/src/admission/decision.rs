//! What is decided about a review.

use super::{AllowReason, Denial, Patch};
use crate::credspec::SpecName;

/// Whether the request is admitted.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The request is admitted, changed by the patch where there is one.
    Allowed(Option<Patch>),
    /// The request is admitted although this denial applies: denials are not enforced.
    WouldDeny {
        /// What an enforcing webhook answers.
        denial: Denial,
        /// The contents that could be filled in.
        patch: Option<Patch>,
    },
    Denied(Denial),
}

impl Verdict {
    /// What the answer changes in the object.
    pub fn patch(&self) -> Option<&Patch> {
        match self {
            Self::Allowed(patch) | Self::WouldDeny { patch, .. } => patch.as_ref(),
            Self::Denied(_) => None,
        }
    }
}

/// What the webhook answers, and what it says about it elsewhere.
#[derive(Debug, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    /// Why: [`AllowReason::as_str`] or [`Denial::reason`].
    pub reason: &'static str,
    /// The credential specs that the decision is about.
    pub specs: Vec<SpecName>,
    /// Lines that `kubectl` shows to the user; each at most 120 characters, or 256 for a denial that is not enforced.
    pub warnings: Vec<String>,
    /// Audit annotations: the API server prefixes the keys with the webhook's name.
    pub audit: Vec<(&'static str, String)>,
    /// A credential spec from a cache whose contents led to the denial: the cache may be behind, so the server reads the
    /// credential spec from the API server and decides again before it gives the answer.
    pub recheck_live: Option<SpecName>,
}

impl Decision {
    pub fn is_allowed(&self) -> bool {
        !matches!(self.verdict, Verdict::Denied(_))
    }
}

/// How a request that is admitted is answered.
#[derive(Debug)]
pub(super) struct Admitted {
    pub reason: AllowReason,
    pub patch: Option<Patch>,
    /// The denials that are not enforced, in the order of the slots.
    pub not_enforced: Vec<Denial>,
}

impl From<AllowReason> for Admitted {
    fn from(reason: AllowReason) -> Self {
        Self { reason, patch: None, not_enforced: Vec::new() }
    }
}
