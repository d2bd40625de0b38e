//! Verification of the watch: what the API server has is compared with what memory has.
//!
//! Silence is normal: where nothing changes, nothing is sent, and the API server sends no bookmark either unless etcd tells
//! it that it is up to date, which takes ten minutes by default. A watch that is connected but no longer delivers looks the
//! same. A list tells them apart: the number of objects after a minute of silence, which costs one object, and each name
//! and resource version every ten minutes. That is not done every minute because the metadata of an object brings its
//! `managedFields` along: about 1.2 KB each.
//!
//! Invariants: both lists are consistent reads, never answered from an API server's own memory that may be behind;
//! an event delays the check of the number, never the comparison of each object; memory that is not trusted becomes trusted
//! only by that comparison; a difference names its object, and only an event of that object explains it.

use std::{collections::HashSet, time::Duration};

use gmsa_cluster::apiserver::backoff::jittered;
use gmsa_core::credspec::SpecName;
use kube::core::params::ListParams;
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    Memory, TRUST,
    store::{Store, Version},
    wire::{Object, Page, Part, WatchError},
};

/// The longest silence before the number of objects is verified. Replicas differ by up to half of [`JITTER`].
const SILENCE: Duration = Duration::from_secs(60);
const JITTER: Duration = Duration::from_secs(10);
/// The longest time between two comparisons of each object.
const COMPARE_WITHIN: Duration = Duration::from_secs(600);
/// How long the event of a change that a list shows may take to come.
const GRACE: Duration = Duration::from_secs(2);
/// The time for a verification if memory is no longer trusted anyway, as after a long interruption.
const PATIENCE: Duration = Duration::from_secs(15);
/// The longest pause after a verification that failed.
const PAUSE: Duration = Duration::from_secs(2);
/// Objects per page when all of them are compared.
const PAGE: u32 = 500;

impl Memory {
    /// Waits until memory is due for verification, then verifies it. Retries while memory is still trusted.
    ///
    /// # Errors
    /// [`WatchError::Stuck`] where an object differs and no event of it arrives; otherwise why it could
    /// not be verified.
    pub(super) async fn verify(&self) -> Result<(), WatchError> {
        let (mut each, deadline) = self.due().await;
        loop {
            let requested = Instant::now();
            let pause = match self.difference(&mut each, deadline).await {
                Ok(None) => {
                    self.change(|store| if each { store.compared(requested) } else { store.prolong(requested) });
                    return Ok(());
                }
                Ok(Some(name)) if self.store().is_differing(&name) => {
                    return Err(WatchError::Stuck(format!("credential spec {} has changed", name.as_str())));
                }
                Ok(Some(name)) => {
                    self.change(|store| store.mark_differing(name));
                    GRACE
                }
                Err(WatchError::Failed(cause)) => {
                    let pause = jittered(PAUSE);
                    if Instant::now() + pause >= deadline {
                        self.change(Store::distrust);
                        return Err(WatchError::Failed(format!("the watch could not be verified: {cause}")));
                    }
                    pause
                }
                Err(error) => return Err(error),
            };
            sleep(pause).await;
        }
    }

    /// Waits until memory is due for verification: at once if it is not trusted. Returns whether each object is to be compared,
    /// and when the verification must have ended.
    async fn due(&self) -> (bool, Instant) {
        let early = jittered(JITTER);
        loop {
            let now = Instant::now();
            let Some(verified) = self.store().trusted() else {
                return (true, now + PATIENCE);
            };
            let compare = verified.compared + COMPARE_WITHIN;
            let due = compare.min(verified.confirmed + SILENCE) - early;
            if due <= now {
                let deadline = (verified.confirmed + TRUST).min(compare + SILENCE) - GRACE;
                return (compare <= now + SILENCE, deadline.max(now + PATIENCE));
            }
            // An event may delay it meanwhile.
            sleep_until(due).await;
        }
    }

    /// An object that differs: among `each` of them, or only if their number does.
    async fn difference(&self, each: &mut bool, deadline: Instant) -> Result<Option<SpecName>, WatchError> {
        if !*each && self.is_number_known(deadline).await? {
            return Ok(None);
        }
        *each = true;
        let mut params = ListParams::default().limit(PAGE);
        let mut listed = HashSet::new();
        loop {
            let page = Page::read(&self.api, Part::Metadata, &mut params, deadline).await?;
            for object in page.items.into_iter().flatten() {
                let name = SpecName::parse(&object.name);
                if name.is_some() && !self.has(&object) {
                    return Ok(name);
                }
                listed.insert(object.name);
            }
            if params.continue_token.is_none() {
                let version = Version::parse(&page.metadata.resource_version);
                return Ok(self.store().unlisted(&listed, version).cloned());
            }
        }
    }

    /// Whether the API server has as many objects as memory, and the first one is known.
    async fn is_number_known(&self, deadline: Instant) -> Result<bool, WatchError> {
        let mut params = ListParams::default().limit(1);
        let page = Page::read(&self.api, Part::Metadata, &mut params, deadline).await?;
        let objects = page.items.unwrap_or_default();
        let others = if params.continue_token.is_none() { Some(0) } else { page.metadata.remaining_item_count };
        let number = others.map(|others| objects.len() + others);
        Ok(number == Some(self.store().len()) && objects.iter().all(|object| self.has(object)))
    }

    fn has(&self, object: &Object) -> bool {
        self.store().has(&object.name, Version::parse(&object.resource_version))
    }
}
