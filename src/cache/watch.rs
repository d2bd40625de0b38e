//! The watch: lists the credential specs, then follows their events until the process ends.
//!
//! It speaks the list-and-watch protocol itself: `kube::runtime::watcher` (5.0) reads answers and lines of any length, its pages
//! do not shrink, nothing ends its request to watch, and it does not say when a watch is connected again after a failure.
//!
//! Invariants: memory answers while the watch is healthy. Each watch is asked to end within a minute and continues where the one
//! before ended; one that does not end hangs, and what was missed is listed again. A consistent list replaces all
//! entries every ten minutes, and before the first watch that begins a minute or more after a failure. An answer, a line and a list have limits, in bytes and in time.

use std::{convert::Infallible, sync::Arc, time::Duration};

use futures::TryStreamExt as _;
use gmsa_cluster::{
    apiserver::{CallError, jittered, read_answer},
    resolver::live::{SpecObject, collection},
};
use gmsa_core::{admission::SpecFact, credspec::SpecName};
use gmsa_edge::clock::Moment;
use http_body_util::BodyExt as _;
use kube::{
    client::Body,
    core::{
        ListMeta, Request, Status,
        params::{ListParams, WatchParams},
    },
};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _},
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_util::io::StreamReader;

use super::{
    Memory,
    store::{OLDEST, Store, Version},
};
use crate::{limits::MAX_PAGE, metrics::WatchState};

/// Objects per page of a list, unless they are large.
const PAGE: u32 = 250;
/// How long a list may take.
pub(crate) const LIST_LIMIT: Duration = Duration::from_secs(60);
/// The longest time between two lists; replicas differ by up to half of the jitter.
pub(crate) const LIST_EVERY: Duration = Duration::from_secs(600);
const JITTER: Duration = Duration::from_secs(60);
/// How long the head of a watch's answer may take.
pub(crate) const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The seconds that a watch is asked to last at most, and how much later it must have ended.
pub(crate) const TERM: Duration = Duration::from_secs(56);
pub(crate) const GRACE: Duration = Duration::from_secs(5);
/// Contents become no older: a list, the head of the watch after it and that watch have hung as long as each may.
const _: () =
    assert!(LIST_LIMIT.as_secs() + HEAD_TIMEOUT.as_secs() + TERM.as_secs() + GRACE.as_secs() <= OLDEST.as_secs());
/// A watch that ends sooner has failed.
const WORKED: Duration = Duration::from_secs(20);
/// The first pause after a failure, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));
/// The first pause after a refused permission, and the longest. The first is short: an API server that has just been started
/// refuses everything until it has read its roles.
const PAUSES_WHILE_REFUSED: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));

/// Why the watch failed.
#[derive(Debug)]
struct WatchError {
    /// The status of the API server's answer, or `GONE` where the watch cannot say what was missed; 0 otherwise.
    code: u16,
    cause: String,
}

/// Not permitted: it stays so until an administrator grants it.
const REFUSED: u16 = 403;
/// The `CustomResourceDefinition` is not installed.
const NO_DEFINITION: u16 = 404;
/// The watch cannot say what was missed: a list must follow.
const GONE: u16 = 410;

impl WatchError {
    fn new(cause: &str) -> Self {
        Self { code: 0, cause: cause.to_owned() }
    }
}

impl From<CallError> for WatchError {
    fn from(error: CallError) -> Self {
        Self { code: error.code().unwrap_or_default(), cause: error.to_string() }
    }
}

#[derive(Deserialize)]
struct Page<'a> {
    metadata: ListMeta,
    #[serde(borrow)]
    items: Option<Vec<SpecObject<'a>>>,
}

#[derive(Deserialize)]
struct WatchEvent<'a> {
    r#type: String,
    #[serde(borrow)]
    object: &'a RawValue,
}

pub(super) struct Watch {
    memory: Arc<Memory>,
    ready: Box<dyn Fn() + Send + Sync>,
    /// The resource version to continue from; `None` where a list must come first.
    version: Option<String>,
    list_due: Instant,
    state: WatchState,
    /// Failures since a watch worked.
    failures: u32,
    /// Refused permissions since both were granted. They are counted apart: an API server that comes back after many failures refuses
    /// everything for a moment, and the pause after that is short.
    refusals: u32,
    /// Whether the API server has ever answered.
    answered: bool,
}

impl Watch {
    pub fn new(memory: Arc<Memory>, ready: Box<dyn Fn() + Send + Sync>) -> Self {
        Self {
            memory,
            ready,
            version: None,
            list_due: Instant::now(),
            state: WatchState::Starting,
            failures: 0,
            refusals: 0,
            answered: false,
        }
    }

    pub async fn run(mut self) -> Infallible {
        self.memory.metrics.watch_state(self.state);
        loop {
            if let Err(error) = self.follow().await {
                self.memory.change(|store| store.synced = None);
                sleep(self.judge(error)).await;
            }
        }
    }

    /// Lists where that is due, then watches until the watch ends.
    async fn follow(&mut self) -> Result<(), WatchError> {
        let follows_from = Moment::now();
        let known = self.version.take().filter(|_| Instant::now() < self.list_due);
        let version = match known {
            Some(version) => version,
            None => timeout(LIST_LIMIT, self.list()).await.map_err(|_| CallError::TimedOut(LIST_LIMIT))??,
        };
        self.version = Some(version.clone());
        let term = jittered(TERM);
        let params = WatchParams::default().timeout(u32::try_from(term.as_secs()).unwrap_or_default());
        let request = Request::new(collection()).watch(&params, &version);
        let body = timeout(HEAD_TIMEOUT, self.send(request)).await.map_err(|_| CallError::TimedOut(HEAD_TIMEOUT))??;
        let began = Instant::now();
        // There is a list, and the watch after it is connected: both are permitted.
        self.refusals = 0;
        self.memory.change(|store| store.synced = Some(follows_from));
        if self.enter(WatchState::Synced) {
            tracing::info!(specs = self.memory.store.read().held, "credential specs are answered from memory");
        }
        (self.ready)();
        let hangs = |_| WatchError { code: GONE, ..WatchError::new("the watch did not end when it was asked to") };
        timeout_at(began + term + GRACE, self.take_all(body)).await.map_err(hangs)??;
        let ended = Moment::now();
        // Otherwise it ended while the machine was suspended.
        if ended.longest_since(&follows_from) <= OLDEST {
            self.memory.change(|store| store.synced = Some(ended));
        }
        if began.elapsed() < WORKED {
            return Err(WatchError::new("the watch ended early"));
        }
        self.failures = 0;
        Ok(())
    }

    /// Sends a request, and gives the body of its answer if it is a success.
    async fn send(
        &mut self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Body, WatchError> {
        let request = request.map_err(|error| WatchError::new(&error.to_string()))?.map(Body::from);
        let answer = self.memory.api.watch_client().send(request).await.map_err(CallError::Unreachable)?;
        self.answered = true;
        let (head, body) = answer.into_parts();
        if head.status.is_success() {
            return Ok(body);
        }
        let body = read_answer(body, MAX_PAGE, None).await?;
        let status = serde_json::from_slice(&body).ok().map(Box::new);
        Err(CallError::Refused { code: head.status, status, retry_after: None }.into())
    }

    /// Reads all objects, page by page, and gives the version that the list was made at.
    async fn list(&mut self) -> Result<String, WatchError> {
        // Checked only when a watch ends, so the length of one watch is subtracted.
        self.list_due = Instant::now() + LIST_EVERY - TERM - jittered(JITTER);
        self.memory.change(Store::begin_list);
        let (mut limit, mut params) = (PAGE, ListParams::default());
        let began = Instant::now();
        loop {
            // A long list may take a minute: until then credential specs are read one by one.
            if self.answered && began.elapsed() > HEAD_TIMEOUT {
                (self.ready)();
            }
            params.limit = Some(limit);
            let body = self.send(Request::new(collection()).list(&params)).await?;
            let body = match read_answer(body, MAX_PAGE, None).await {
                Ok(body) => body,
                Err(CallError::TooLarge(_)) if limit == 1 => {
                    return Err(WatchError::new("an object in the list is too large"));
                }
                Err(CallError::TooLarge(_)) => {
                    limit = (limit / 4).max(1);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let page: Page = serde_json::from_slice(&body)
                .map_err(|_| WatchError::new("the answer is not a list of credential specs"))?;
            let mut is_empty = true;
            for (name, version, fact) in page.items.iter().flatten().filter_map(kept) {
                is_empty = false;
                self.memory.change(|store| store.listed(name, version, fact));
            }
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                let version = page.metadata.resource_version.filter(|version| !version.is_empty());
                self.memory.change(Store::end_list);
                self.memory.forget_reads(|_| true);
                return version.ok_or_else(|| WatchError::new("the list has no resource version"));
            }
            if is_empty {
                return Err(WatchError::new("a page of the list is empty and not the last"));
            }
            if body.len() < MAX_PAGE / 4 {
                limit = PAGE.min(limit * 2);
            }
        }
    }

    /// Takes the events of a watch until it ends.
    async fn take_all(&mut self, body: Body) -> Result<(), WatchError> {
        let mut lines = StreamReader::new(body.into_data_stream().map_err(std::io::Error::other));
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = (&mut lines).take(MAX_PAGE as u64).read_until(b'\n', &mut line).await;
            match read.map_err(|_| CallError::Cut)? {
                0 => return Ok(()),
                MAX_PAGE => return Err(WatchError::new("an event is too large")),
                _ => self.take(&line)?,
            }
            line.shrink_to(MAX_PAGE / 64);
        }
    }

    fn take(&mut self, line: &[u8]) -> Result<(), WatchError> {
        // Do not quote: it may be part of a credential spec.
        let other = |_| WatchError::new("an event is not about a credential spec");
        let event: WatchEvent = serde_json::from_slice(line).map_err(other)?;
        if event.r#type == "ERROR" {
            let status: Status = serde_json::from_str(event.object.get()).map_err(other)?;
            return Err(WatchError { code: status.code, cause: gmsa_core::quote::remark(&status.message) });
        }
        let object: SpecObject = serde_json::from_str(event.object.get()).map_err(other)?;
        if object.metadata.resource_version.is_empty() {
            return Err(WatchError::new("an event has no resource version"));
        }
        if let Some((name, version, fact)) = kept(&object).filter(|_| event.r#type != "BOOKMARK") {
            // First, because a read in flight may return the old version: no later question may join it.
            self.memory.forget_reads(|read| *read == name);
            self.memory.change(|store| match event.r#type.as_str() {
                "DELETED" => store.remove(&name, version),
                _ => store.apply(name, version, fact),
            });
        }
        self.version = Some(object.metadata.resource_version);
        self.memory.metrics.watch_event.reset();
        self.failures = 0;
        Ok(())
    }

    /// The meaning of a failed list or watch, and how long to wait before the next.
    fn judge(&mut self, WatchError { code, cause }: WatchError) -> Duration {
        let count = if code == REFUSED { &mut self.refusals } else { &mut self.failures };
        let failures = *count;
        *count = failures.saturating_add(1);
        if self.answered {
            (self.ready)();
        }
        match code {
            REFUSED => {
                if self.live() {
                    tracing::warn!(
                        cause,
                        "credential specs may not be listed and watched: each is read when it is needed"
                    );
                }
                return pause(PAUSES_WHILE_REFUSED, failures);
            }
            NO_DEFINITION => {
                if self.live() {
                    tracing::error!("the CustomResourceDefinition of GMSACredentialSpec is not installed");
                }
                return pause(PAUSES, failures);
            }
            GONE => {
                self.version = None;
                tracing::info!(cause, "credential specs are listed again");
            }
            _ if failures == 0 => {
                tracing::warn!(cause, "the watch of credential specs failed: each is read when it is needed");
            }
            _ => tracing::debug!(cause, "the watch of credential specs failed again"),
        }
        self.list_due = self.list_due.min(Instant::now() + JITTER);
        if self.answered {
            self.enter(WatchState::Stale);
        }
        pause(PAUSES, failures)
    }

    /// Switches to live reads: watching is not possible. Returns whether that is new.
    fn live(&mut self) -> bool {
        self.version = None;
        self.memory.change(Store::give_up);
        self.enter(WatchState::Live)
    }

    /// Returns whether the state has changed.
    fn enter(&mut self, state: WatchState) -> bool {
        let is_new = std::mem::replace(&mut self.state, state) != state;
        self.memory.metrics.watch_state(state);
        is_new
    }
}

/// The pause after `failures` + 1 failures: it doubles from the first to the longest.
fn pause((first, longest): (Duration, Duration), failures: u32) -> Duration {
    jittered(first.saturating_mul(2_u32.saturating_pow(failures)).min(longest))
}

/// The part of an object that memory keeps; an unreadable object is left to a look-up, which reports it.
fn kept(object: &SpecObject<'_>) -> Option<(SpecName, Version, Option<SpecFact>)> {
    let name = SpecName::parse(&object.metadata.name)?;
    Some((name, object.version(), object.fact().ok()))
}

#[cfg(test)]
mod tests {
    use gmsa_cluster::apiserver::ApiServer;

    use super::{super::Reads, *};
    use crate::metrics::Metrics;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let range = (Duration::from_secs(1), Duration::from_secs(3));
        for (failures, longest) in [(0, 1), (1, 2), (2, 3), (u32::MAX, 3)] {
            let (pause, longest) = (pause(range, failures), Duration::from_secs(longest));
            assert!((longest / 2..=longest).contains(&pause), "{failures}: {pause:?}");
        }
    }
    #[tokio::test]
    async fn a_refusal_after_many_failures_pauses_as_the_first_of_its_kind() {
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let memory = Memory {
            api: Arc::new(ApiServer::new(config).unwrap()),
            store: parking_lot::RwLock::new(Store::new(0)),
            for_decisions: Reads::new(None, 0),
            for_advice: Reads::new(None, 0),
            metrics: Metrics::new().1,
        };
        let mut watch = Watch::new(Arc::new(memory), Box::new(|| ()));
        let mut pause = |code| watch.judge(WatchError { code, cause: String::new() });
        for _ in 0..10 {
            pause(500);
        }
        for (code, longest) in [(403, 5), (403, 10), (500, 30), (403, 20)] {
            let (pause, longest) = (pause(code), Duration::from_secs(longest));
            assert!((longest / 2..=longest).contains(&pause), "{code}: {pause:?}");
        }
    }
}
