//! Verification of a silent watch: what the API server has is compared with what memory has.
//!
//! Silence is normal: where nothing changes, nothing is sent, and the API server sends no bookmark either unless etcd tells
//! it that it is up to date, which takes ten minutes by default. A watch that is connected but no longer delivers looks the
//! same. A list tells them apart: the number of objects about once a minute, which costs one object, and each name and
//! resource version every ten minutes. That is not done every minute because the metadata of an object brings its
//! `managedFields` along: about 1.2 KB each.
//!
//! What always holds: both lists are consistent reads, never answered from an API server's own memory that may be behind;
//! an event ends the silence, so the caller drops the verification and begins again.

use std::{sync::Arc, time::Duration};

use kube::core::{Request, params::ListParams};
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    Memory, TRUST,
    store::{Store, Version},
    wire::{Metadata, NameAndVersion, Page, WatchError},
};
use crate::{
    apiserver::{ApiServer, backoff::jittered},
    resolver::live::collection,
};

/// The longest silence before the number of objects is verified. Replicas differ by up to half of [`JITTER`].
const SILENCE: Duration = Duration::from_secs(60);
const JITTER: Duration = Duration::from_secs(10);
/// How long after the last comparison of every object the next verification is one again. It comes within another
/// [`SILENCE`], so the comparisons are ten minutes apart at most.
const COMPARE_AFTER: Duration = Duration::from_secs(540);
/// How long the event of a change that a list shows may take to come.
const GRACE: Duration = Duration::from_secs(2);
/// The time for a verification if memory is no longer trusted anyway, as after a long interruption.
const PATIENCE: Duration = Duration::from_secs(15);
/// The longest pause after a verification that failed.
const PAUSE: Duration = Duration::from_secs(2);
/// Objects per page when all of them are compared.
const PAGE: u32 = 500;

#[derive(Clone)]
pub(super) struct Verifier {
    api: Arc<ApiServer>,
    memory: Arc<Memory>,
}

impl Verifier {
    pub fn new(api: Arc<ApiServer>, memory: Arc<Memory>) -> Self {
        Self { api, memory }
    }

    /// Waits until the silence has lasted long enough, then verifies. Tries again while memory is still trusted.
    ///
    /// # Errors
    /// [`WatchError::Stuck`] where the API server has something else and no event comes to say so; otherwise why it could
    /// not be verified.
    pub async fn silence(&self) -> Result<(), WatchError> {
        let (confirmed, compared) = {
            let store = self.memory.store();
            (store.confirmed_at(), store.compared_at())
        };
        if let Some(confirmed) = confirmed {
            sleep_until(confirmed + SILENCE - jittered(JITTER)).await;
        }
        let patience = Instant::now() + PATIENCE;
        let deadline = confirmed.map_or(patience, |confirmed| patience.max(confirmed + TRUST - GRACE));
        let every = compared.is_none_or(|compared| compared.elapsed() >= COMPARE_AFTER);
        loop {
            match self.difference(every, deadline).await {
                Ok(None) => {
                    self.memory.change(if every { Store::confirm } else { Store::confirm_number });
                    return Ok(());
                }
                Ok(Some(difference)) => {
                    self.memory.change(Store::doubt);
                    sleep(GRACE).await;
                    return Err(WatchError::Stuck(difference));
                }
                Err(WatchError::Failed(cause)) => {
                    let pause = jittered(PAUSE);
                    if Instant::now() + pause >= deadline {
                        return Err(WatchError::Failed(format!("a silent watch could not be verified: {cause}")));
                    }
                    sleep(pause).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// What the API server has that memory does not, or the other way round: of `every` object, or of the first one and
    /// the number.
    async fn difference(&self, every: bool, deadline: Instant) -> Result<Option<String>, WatchError> {
        let mut params = ListParams::default().limit(if every { PAGE } else { 1 });
        let mut number = 0;
        loop {
            let page = self.page(&params, deadline).await?;
            let objects = page.items.unwrap_or_default();
            if let Some(changed) = objects.iter().find(|object| !self.has(&object.metadata)) {
                return Ok(Some(format!("credential spec {} has changed", changed.metadata.name)));
            }
            number += objects.len();
            if page.metadata.r#continue.is_empty() {
                break;
            }
            if let Some(remaining) = page.metadata.remaining_item_count.filter(|_| !every) {
                number += remaining;
                break;
            }
            // Without the number of the others, they are counted.
            params = params.limit(PAGE).continue_token(&page.metadata.r#continue);
        }
        let known = self.memory.store().len();
        Ok((number != known).then(|| format!("there are {number} credential specs, {known} are known")))
    }

    async fn page(&self, params: &ListParams, deadline: Instant) -> Result<Page<Metadata>, WatchError> {
        let request =
            Request::new(collection()).list_metadata(params).map_err(|error| WatchError::Failed(error.to_string()))?;
        let body = self.api.call(request, deadline).await?;
        serde_json::from_slice(&body)
            .map_err(|_| WatchError::Failed("the answer is not a list of credential specs' metadata".to_owned()))
    }

    fn has(&self, object: &NameAndVersion) -> bool {
        self.memory.store().has(&object.name, Version::parse(&object.resource_version))
    }
}
