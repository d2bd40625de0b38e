//! Limits on the calls to the API server: how many of each kind are in flight, and how many wait for that.
//!
//! Invariants: a flood of one kind of call, such as reads of names that do not exist, takes no permit from another
//! kind, and look-ups for warnings take none from decisions; a flood for one service account, or from one address that
//! sends tokens, leaves most permits, and half of the queue, to the others. A call that is not sent yet leaves the queue when
//! its caller stops waiting; a call that was sent keeps its permit until it ends.
//!
//! A review makes one call at a time, so the connections that are served bound the queue: with the memory that the charts set,
//! only the queue for warnings can be full, and in the broker an account's half of that for credential specs. No limit is by namespace: a client without credentials can forge its victim's
//! namespace, and would spend what the victim has.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

use super::{
    error::CallError,
    kind::{CallKind, Limit},
};

/// How long a call for a warning waits: its review holds a connection meanwhile that a decision may need.
const ADVICE_WAIT: Duration = Duration::from_millis(250);

/// The calls of one kind that are in flight or wait.
pub(super) struct CallLimits {
    kind: CallKind,
    in_flight: Arc<Semaphore>,
    /// In flight and waiting.
    all: Arc<Semaphore>,
    /// The permits of each caller (a service account, or an address that sends tokens) with calls in flight or waiting.
    shares: Mutex<HashMap<Box<str>, Weak<Semaphore>>>,
}

/// Permission to call, until it is dropped.
pub(super) struct Permit {
    _all: OwnedSemaphorePermit,
    _share: Option<OwnedSemaphorePermit>,
    _in_flight: OwnedSemaphorePermit,
}

impl CallLimits {
    pub fn new(kind: CallKind) -> Self {
        Self {
            kind,
            in_flight: Arc::new(Semaphore::new(kind.limit())),
            all: Arc::new(Semaphore::new(kind.limit() + kind.queue())),
            shares: Mutex::default(),
        }
    }

    /// Waits for a permit until `deadline`. First for one of the caller's share: calls that wait for that do not block other
    /// callers.
    ///
    /// # Errors
    /// [`CallError::QueueFull`] and [`CallError::NoPermit`], with the limit that was met.
    pub async fn permit(&self, caller: Option<&str>, deadline: Instant) -> Result<Permit, CallError> {
        let asked = Instant::now();
        let longest = if self.kind == CallKind::Advice { asked + ADVICE_WAIT } else { deadline };
        let deadline = deadline.min(longest);
        let [of_all, of_caller] = [false, true].map(|is_of_caller| Limit { kind: self.kind, is_of_caller });
        let wait = async |permits: Arc<Semaphore>, limit| match timeout_at(deadline, permits.acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            // The semaphores are never closed, so this is a time-out.
            _ => Err(CallError::NoPermit(limit, deadline - asked)),
        };
        let all = Arc::clone(&self.all).try_acquire_owned().map_err(|_| CallError::QueueFull(of_all))?;
        let share = match caller {
            Some(caller) => {
                let permits = self.share_of(caller).ok_or(CallError::QueueFull(of_caller))?;
                Some(wait(permits, of_caller).await?)
            }
            None => None,
        };
        let in_flight = wait(Arc::clone(&self.in_flight), of_all).await?;
        Ok(Permit { _all: all, _share: share, _in_flight: in_flight })
    }

    /// The caller's permits, unless too many calls wait for them. A call holds the semaphore while it waits and while it is
    /// in flight: the semaphore has as many holders as calls, and that of a caller without calls is dropped.
    fn share_of(&self, caller: &str) -> Option<Arc<Semaphore>> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(permits) = shares.get(caller).and_then(Weak::upgrade) {
            return (Arc::strong_count(&permits) <= self.kind.share_with_queue()).then_some(permits);
        }
        shares.retain(|_, permits| permits.strong_count() > 0);
        let permits = Arc::new(Semaphore::new(self.kind.share()));
        shares.insert(caller.into(), Arc::downgrade(&permits));
        Some(permits)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

    use std::pin::Pin;

    use futures::{FutureExt as _, future::join_all};

    use gmsa_core::admission::{Failure, FailureKind};

    use super::*;

    type Waiting<'l> = Pin<Box<dyn Future<Output = Result<Permit, CallError>> + 'l>>;

    impl CallLimits {
        fn ask(&self, account: Option<&str>) -> impl Future<Output = Result<Permit, CallError>> {
            self.permit(account, Instant::now() + std::time::Duration::from_secs(3600))
        }
    }

    /// Calls that wait.
    fn waiting<'l>(limits: &'l CallLimits, account: Option<&'l str>, number: usize) -> Vec<Waiting<'l>> {
        let mut waiting: Vec<Waiting> = (0..number).map(|_| -> Waiting { Box::pin(limits.ask(account)) }).collect();
        for permit in &mut waiting {
            assert!(permit.now_or_never().is_none());
        }
        waiting
    }

    #[tokio::test]
    async fn a_call_over_the_queue_fails_at_once_and_one_that_is_dropped_makes_room() {
        for (kind, in_flight, queue) in
            [(CallKind::UnknownSpec, 8, 256), (CallKind::KnownSpec, 24, 1024), (CallKind::Advice, 4, 64)]
        {
            let limits = CallLimits::new(kind);
            let in_flight = join_all((0..in_flight).map(|_| limits.ask(None))).await;
            let mut queue = waiting(&limits, None, queue);
            assert!(limits.ask(None).now_or_never().unwrap().is_err());
            queue.pop();
            assert!(limits.ask(None).now_or_never().is_none());
            drop((in_flight, queue));
            assert!(limits.ask(None).await.is_ok());
        }
    }

    #[tokio::test]
    async fn an_account_has_a_share_and_a_queue_of_its_own() {
        for (kind, share, all, whose) in [
            (CallKind::AccessReview, 8, 528, "service account"),
            (CallKind::KnownSpec, 6, 524, "service account"),
            (CallKind::TokenReview, 3, 134, "address"),
        ] {
            let limits = CallLimits::new(kind);
            let in_flight = join_all((0..share).map(|_| limits.ask(Some("crowd")))).await;
            let mut queue = waiting(&limits, Some("crowd"), all - share);
            let full = limits.ask(Some("crowd")).now_or_never().unwrap().err().unwrap().to_string();
            let waiting = format!("for this {whose} are waiting, and {share} are made at once: try again");
            assert_eq!(full, format!("too many other calls to the API server {waiting}"));
            queue.pop();
            assert!(limits.ask(Some("crowd")).now_or_never().is_none());
            // Another account waits for nothing.
            assert!(limits.ask(Some("other")).now_or_never().unwrap().is_ok());
            drop((in_flight, queue));
            assert!(limits.ask(Some("crowd")).await.is_ok());
            assert!(limits.ask(Some("other")).await.is_ok());
            assert_eq!(limits.shares.lock().unwrap().len(), 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_too_late_says_whose_limit_was_met() {
        let limits = CallLimits::new(CallKind::AccessReview);
        let late = async |account| {
            let deadline = Instant::now() + std::time::Duration::from_millis(200);
            limits.permit(account, deadline).await.err().map(|error| error.to_string())
        };
        let _crowd = join_all((0..8).map(|_| limits.ask(Some("crowd")))).await;
        let of_account = "8 other calls to the API server for this service account were under way for 0.2 s";
        assert_eq!(late(Some("crowd")).await.as_deref(), Some(of_account));
        let _others = join_all((0..24).map(|_| limits.ask(None))).await;
        let of_all = "32 other calls to the API server were under way for 0.2 s";
        assert_eq!(late(Some("other")).await.as_deref(), Some(of_all));
    }

    #[tokio::test(start_paused = true)]
    async fn what_only_warnings_need_waits_for_a_short_time_and_counts_as_not_asked() {
        let limits = CallLimits::new(CallKind::Advice);
        let _in_flight = join_all((0..4).map(|_| limits.ask(None))).await;
        let began = Instant::now();
        let failure = limits.ask(None).await.err().map(Failure::from);
        let cause = "4 other calls to the API server for warnings were under way for 0.2 s".to_owned();
        assert_eq!(failure, Some(Failure { kind: FailureKind::NotAsked, ..Failure::new(cause) }));
        assert_eq!(began.elapsed(), ADVICE_WAIT);
        let _queue = waiting(&limits, None, 64);
        let failure = limits.ask(None).await.err().map(Failure::from);
        let cause =
            "too many other calls to the API server for warnings are waiting, and 4 are made at once: try again"
                .to_owned();
        assert_eq!(failure, Some(Failure { kind: FailureKind::NotAsked, ..Failure::new(cause) }));
    }

    #[tokio::test]
    async fn accounts_together_have_no_longer_queue_than_all_have() {
        let limits = CallLimits::new(CallKind::AccessReview);
        let names: Vec<String> = (0..44).map(|n| format!("account-{n}")).collect();
        let in_flight = join_all(names[..4].iter().flat_map(|name| (0..8).map(|_| limits.ask(Some(name))))).await;
        // The others have only what waits: 32 × 32.
        let queue: Vec<_> = names[4..36].iter().flat_map(|name| waiting(&limits, Some(name), 32)).collect();
        assert!(limits.ask(Some(&names[40])).now_or_never().unwrap().is_err());
        drop((in_flight, queue));
        assert!(limits.ask(Some(&names[40])).await.is_ok());
    }
}
