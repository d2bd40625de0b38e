//! What a replica has done to the certificates so far: for metrics and for readiness.
//!
//! What always holds: counts only rise, and what is ready stays ready.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use super::plan::Step;
use crate::tls::Pass;

/// What has happened so far, for metrics and for readiness.
#[derive(Debug, Default)]
pub struct Progress {
    ready: watch::Sender<bool>,
    filled: AtomicU64,
    rebuilt: AtomicU64,
    renewed: AtomicU64,
    rotated: AtomicU64,
    bundles_written: AtomicU64,
    failed: AtomicU64,
}

/// How often this replica has done what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// It filled the empty Secret.
    pub filled: u64,
    /// It rebuilt a Secret that was damaged or edited, or whose authority had expired.
    pub rebuilt: u64,
    /// It renewed the serving certificate.
    pub renewed: u64,
    /// It had a new authority sign.
    pub rotated: u64,
    /// It wrote a webhook configuration.
    pub bundles_written: u64,
    /// A round came to no good end.
    pub failed: u64,
}

impl Progress {
    /// How often what has been done.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counts {
            filled: get(&self.filled),
            rebuilt: get(&self.rebuilt),
            renewed: get(&self.renewed),
            rotated: get(&self.rotated),
            bundles_written: get(&self.bundles_written),
            failed: get(&self.failed),
        }
    }

    /// Whether a certificate is served that every configuration trusts. Once true it stays true.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        *self.ready.borrow()
    }

    /// Waits until a certificate is served that every configuration trusts.
    pub async fn until_ready(&self) {
        // The sender lives in here: waiting cannot fail.
        let _ = self.ready.subscribe().wait_for(|ready| *ready).await;
    }

    pub(super) fn ready(&self) {
        self.ready.send_replace(true);
    }

    pub(super) fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn passed(&self, pass: &Pass) {
        self.bundles_written.fetch_add(pass.written, Ordering::Relaxed);
        self.failed.fetch_add(pass.failed, Ordering::Relaxed);
    }

    pub(super) fn count(&self, step: Step) {
        let counter = match step {
            Step::Fill => &self.filled,
            Step::Rebuild | Step::Restart => &self.rebuilt,
            Step::Reissue => &self.renewed,
            Step::Promote => &self.rotated,
            Step::Announce | Step::Forget => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
