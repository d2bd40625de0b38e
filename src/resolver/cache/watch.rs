//! The watch: lists the credential specs, then follows their events until the process ends.
//!
//! It speaks the list-and-watch protocol itself, because `kube::runtime::watcher` (5.0) does not give what it needs:
//! - it does not report when a watch is connected again after an error: in a quiet cluster memory would never be trusted
//!   again, or always;
//! - it does not report the resource version of a list, without which the result of a concurrent live read cannot be distinguished
//!   from what the list has already seen deleted;
//! - a request to watch that is answered with 410 is repeated with the same version without end, without a new list;
//! - its lists have no deadline and no bound on their size. The size of an event has no bound here either, because
//!   `Client::request_events` reads lines of any length: it is bounded only by the size of an object that the API server
//!   accepts.
//!
//! Invariants: whatever fails, memory is not trusted until the watch is connected again, and each retry waits longer
//! than the one before; after a long interruption memory is not trusted before it is verified; nothing depends on bookmarks:
//! they only move the version from which the next watch continues; where the API server ends a watch, as it does after some
//! minutes, memory stays trusted while the next one begins; objects are turned into contents as they come, and nothing else
//! of them is kept.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use futures::StreamExt as _;
use gmsa_cluster::{
    apiserver::{CallError, backoff::Backoff},
    resolver::live::collection,
};
use gmsa_core::credspec::SpecName;
use kube::core::{
    Request, WatchEvent,
    params::{ListParams, WatchParams},
};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::{
    Memory,
    store::{Entry, Store, Version},
    wire::{Object, Page, Part, WatchError},
};
use crate::metrics::WatchState;

/// Objects per page of a list.
const PAGE: u32 = 250;
/// How long a page of a list, or the head of a watch's answer, may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the events that were missed may take to come in when a watch continues where an earlier one ended.
const CATCHING_UP: Duration = Duration::from_millis(500);
/// A watch that ends sooner has failed: the API server ends a watch after minutes.
const WORKED: Duration = Duration::from_secs(30);
/// The first pause after a failure, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));
/// The first pause after a refused permission, and the longest. The first is short: an API server that has just been started
/// refuses everything until it has read its roles.
const PAUSES_WHILE_REFUSED: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));

pub(super) struct Watch {
    memory: Arc<Memory>,
    ready: Box<dyn Fn() + Send + Sync>,
    /// The resource version to continue from; `None` where a list must come first.
    version: Option<String>,
    state: WatchState,
    backoff: Backoff,
    backoff_while_refused: Backoff,
    /// Whether the last attempt failed.
    failing: bool,
}

impl Watch {
    pub fn new(memory: Arc<Memory>, ready: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            memory,
            ready: Box::new(ready),
            version: None,
            state: WatchState::Starting,
            backoff: Backoff::new(PAUSES.0, PAUSES.1),
            backoff_while_refused: Backoff::new(PAUSES_WHILE_REFUSED.0, PAUSES_WHILE_REFUSED.1),
            failing: false,
        }
    }

    pub async fn run(mut self) -> Infallible {
        self.memory.metrics.watch_state(self.state);
        loop {
            if let Err(error) = self.follow().await {
                self.memory.change(|store| store.connected(false));
                let pause = self.judge(error);
                sleep(pause).await;
            }
        }
    }

    /// Lists where that is needed, then watches until the watch ends.
    async fn follow(&mut self) -> Result<(), WatchError> {
        if let Some(version) = self.version.clone() {
            return self.watch(&version, CATCHING_UP).await;
        }
        let version = self.list().await?;
        self.version = Some(version.clone());
        self.watch(&version, Duration::ZERO).await
    }

    /// Reads all objects, page by page, and gives the version that the list was made at.
    async fn list(&self) -> Result<String, WatchError> {
        let requested = Instant::now();
        let mut specs: Vec<(SpecName, Entry)> = Vec::new();
        let mut params = ListParams::default().limit(PAGE);
        loop {
            let deadline = Instant::now() + PATIENCE;
            let page = Page::read(&self.memory.api, Part::Whole, &mut params, deadline).await?;
            specs.extend(page.items.into_iter().flatten().filter_map(|object| self.keep(object)));
            if params.continue_token.is_none() {
                let version = page.metadata.resource_version;
                if version.is_empty() {
                    return Err(WatchError::Failed("the list has no resource version".to_owned()));
                }
                self.memory.replace(requested, Version::parse(&version), specs);
                return Ok(version);
            }
        }
    }

    /// What memory keeps of an object. Contents that it holds already are not held twice while a new list comes in.
    fn keep(&self, object: Object) -> Option<(SpecName, Entry)> {
        let name = SpecName::parse(&object.name)?;
        let known = self.memory.store().last_known(&name).and_then(|known| known.contents.clone());
        let contents = known.filter(|known| object.contents.as_ref() == Some(known)).or(object.contents);
        let entry = Entry { version: Version::parse(&object.resource_version), contents };
        Some((name, entry))
    }

    /// Follows the events after `version`. Memory is trusted again once they have had the time `behind` to come in:
    /// until then an event does not prolong trust.
    async fn watch(&mut self, version: &str, behind: Duration) -> Result<(), WatchError> {
        let request = Request::new(collection())
            .watch(&WatchParams::default(), version)
            .map_err(|error| WatchError::Failed(error.to_string()))?;
        let answer = timeout(PATIENCE, self.memory.api.client().request_events::<Object>(request)).await;
        let mut events = pin!(answer.map_err(|_| CallError::TimedOut(PATIENCE))??);
        let began = Instant::now();
        while let Ok(event) = timeout_at(began + behind, events.next()).await {
            let Some(event) = event else {
                return Err(WatchError::Failed("the watch ended as soon as it had begun".to_owned()));
            };
            self.take(event?)?;
        }
        self.memory.change(|store| store.connected(true));
        self.synced();
        let memory = Arc::clone(&self.memory);
        let mut verification = pin!(memory.verify());
        loop {
            tokio::select! {
                biased;
                event = events.next() => match event {
                    Some(event) => {
                        if self.take(event?)? {
                            self.memory.change(|store| store.prolong(Instant::now()));
                        }
                    }
                    None if began.elapsed() >= WORKED => {
                        self.backoff.reset();
                        return Ok(());
                    }
                    None => return Err(WatchError::Failed("the watch ended early".to_owned())),
                },
                outcome = &mut verification => {
                    outcome?;
                    self.synced();
                    verification.set(memory.verify());
                }
            }
        }
    }

    /// Returns whether an object has changed: a bookmark does not show that changes are delivered.
    fn take(&mut self, event: WatchEvent<Object>) -> Result<bool, WatchError> {
        let is_change = !matches!(event, WatchEvent::Bookmark(_));
        let version = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                let version = object.resource_version.clone();
                if let Some((name, entry)) = self.keep(object) {
                    self.memory.event(&name.clone(), |store| store.apply(name, entry));
                }
                version
            }
            WatchEvent::Deleted(object) => {
                if let Some(name) = SpecName::parse(&object.name) {
                    let version = Version::parse(&object.resource_version);
                    self.memory.event(&name, |store| store.remove(&name, version));
                }
                object.resource_version
            }
            WatchEvent::Bookmark(bookmark) => bookmark.metadata.resource_version,
            WatchEvent::Error(status) => return Err(status.into()),
        };
        if version.is_empty() {
            return Err(WatchError::Failed("an event has no resource version".to_owned()));
        }
        self.version = Some(version);
        self.memory.metrics.watch_event(std::time::SystemTime::now());
        self.backoff.reset();
        self.synced();
        Ok(is_change)
    }

    /// The watch is connected, delivered something, or was verified. After a long interruption it must be verified first.
    fn synced(&mut self) {
        if !self.memory.store().is_trusted() {
            return;
        }
        self.failing = false;
        self.backoff_while_refused.reset();
        if self.enter(WatchState::Synced) {
            tracing::info!(specs = self.memory.store().len(), "credential specs are answered from memory");
        }
        (self.ready)();
    }

    /// What the failure of a list or a watch means, and how long to wait before the next.
    fn judge(&mut self, error: WatchError) -> Duration {
        let is_news = !std::mem::replace(&mut self.failing, true);
        match error {
            WatchError::Refused(cause) => {
                if self.live() {
                    tracing::warn!(
                        cause,
                        "credential specs may not be listed and watched: each is read when it is needed"
                    );
                }
                return self.backoff_while_refused.pause();
            }
            WatchError::NoDefinition => {
                if self.live() {
                    tracing::error!("the CustomResourceDefinition of GMSACredentialSpec is not installed");
                }
            }
            WatchError::Expired => {
                self.stale();
                self.version = None;
                tracing::debug!("the watch of credential specs has expired: they are listed again");
            }
            WatchError::Stuck(difference) => {
                self.stale();
                self.version = None;
                self.memory.metrics.watch_stuck();
                tracing::warn!(difference, "the watch of credential specs withheld changes: they are listed again");
                return Duration::ZERO;
            }
            WatchError::Failed(cause) => {
                self.stale();
                if is_news {
                    tracing::warn!(cause, "the watch of credential specs failed: each is read when it is needed");
                } else {
                    tracing::debug!(cause, "the watch of credential specs failed again");
                }
            }
        }
        self.backoff.pause()
    }

    /// There is no watch at the moment. If there was a list, the API server answers: credential specs are read from it.
    fn stale(&mut self) {
        if self.version.is_some() {
            (self.ready)();
            self.enter(WatchState::Stale);
        }
    }

    /// There is no watch, and there will be none soon. Returns whether that is new.
    fn live(&mut self) -> bool {
        self.version = None;
        self.memory.change(Store::give_up);
        (self.ready)();
        self.enter(WatchState::Live)
    }

    /// Returns whether the state has changed.
    fn enter(&mut self, state: WatchState) -> bool {
        let is_new = self.state != state;
        if is_new {
            self.state = state;
            self.memory.metrics.watch_state(state);
        }
        is_new
    }
}
