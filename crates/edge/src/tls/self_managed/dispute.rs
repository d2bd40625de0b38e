//! Notices that another replica replaces what this one writes, and makes this one wait.
//!
//! Pure: the time is a value. Invariant: what another writer has just written and this replica finds wrong at first sight is replaced at most
//! once in [`REPLACE_PAUSE`]. What becomes wrong later, such as a certificate that is due, and what this replica wrote itself are no dispute.

use std::time::Duration;

use super::plan::Change;
use crate::clock::Moment;

/// The time between two replacements of what others wrote: what is served stays in use meanwhile.
pub(super) const REPLACE_PAUSE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Dispute {
    /// The version of the Secret that was seen last, and whether another writer wrote it and it was wrong at first sight.
    seen: String,
    is_disputed: bool,
    /// When this replica replaced such a version last, and whether it has waited since.
    replaced: Option<Moment>,
    was_held_back: bool,
}

impl Dispute {
    /// Whether the change that a version of the Secret needs must wait.
    pub(super) fn holds_back(&mut self, version: &str, change: Option<Change>, now: Moment) -> bool {
        let replaces = matches!(change, Some(Change::Rebuild | Change::Reissue));
        if self.seen != version {
            version.clone_into(&mut self.seen);
            self.is_disputed = replaces;
        }
        replaces && self.is_disputed && self.replaced.is_some_and(|at| now.running_since(&at) < REPLACE_PAUSE)
    }

    /// Whether this is asked for the first time since this replica replaced what another one wrote.
    pub(super) fn is_new(&mut self) -> bool {
        !std::mem::replace(&mut self.was_held_back, true)
    }

    /// This replica replaced one version by another.
    pub(super) fn wrote(&mut self, version: &str, new: String, now: Moment) {
        if self.is_disputed && self.seen == version {
            (self.replaced, self.was_held_back) = (Some(now), false);
        }
        (self.seen, self.is_disputed) = (new, false);
    }
}
