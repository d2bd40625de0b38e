//! One review that is being decided, with the places that it takes.
//!
//! Invariants: a large review is read and decided off the threads that serve connections, a few at once, so what it
//! costs delays no handshake; while it waits for the API server it takes none of those turns. One whose deadline has passed
//! or whose client has disconnected is dropped at the next step: before it is parsed, before it is decided, while it waits. A body
//! is dropped once it is parsed.

use std::{
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use bytes::Bytes;
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    task::{spawn_blocking, yield_now},
    time::Instant,
};
use tracing::{Instrument as _, Span};

use super::{
    bodies::Complete,
    limits::{LARGE_BODY, before},
    reviewer::Reviewer,
    routes::Refusal,
};
use crate::metrics::Counted;
use gmsa_core::admission::{Review, Webhook};

/// A review whose body is complete.
pub(super) struct Job {
    pub reviewer: Reviewer,
    pub webhook: Webhook,
    pub body: Complete,
    pub started: Instant,
    pub deadline: Instant,
    pub _place: OwnedSemaphorePermit,
    pub _in_flight: Counted,
}

impl Job {
    /// Decides the review and writes the answer.
    pub(super) async fn run(self) -> Result<Bytes, Refusal> {
        let Self { reviewer, webhook, body, started, deadline, _place, _in_flight } = self;
        let is_large = body.as_ref().len() > LARGE_BODY;
        step(is_large, deadline).await?;
        let review = Review::parse(body.as_ref(), webhook)?;
        // A credential spec is decided about without a wait: it keeps the place of its body.
        let kept = if review.credential_spec.is_some() { body.as_ref().len() } else { review.bytes_kept() };
        let read = body.read(kept)?;
        step(is_large, deadline).await?;
        let decision = reviewer.decide(webhook, &review, started, deadline).await;
        Ok(read.answer(review.answer(&decision))?)
    }

    /// The same, on a thread for blocking work, whenever one of `threads` is free.
    pub(super) async fn run_apart(self, threads: &Arc<Semaphore>) -> Result<Bytes, Refusal> {
        let turns = || Arc::clone(threads).acquire_owned();
        let mut next = before(self.deadline, turns()).await;
        let mut work = Box::pin(self.run().instrument(Span::current()));
        let woken = Arc::new(Woken(Notify::new()));
        loop {
            let turn = next.and_then(Result::ok).ok_or(Refusal::Busy)?;
            let waker = Waker::from(Arc::clone(&woken));
            let polled = spawn_blocking(move || {
                let _turn = turn;
                let result = work.as_mut().poll(&mut Context::from_waker(&waker));
                (result, work)
            });
            // A thread that panics has logged why.
            let (result, waiting) = polled.await.map_err(|_| Refusal::Busy)?;
            if let Poll::Ready(answer) = result {
                return answer;
            }
            work = waiting;
            woken.0.notified().await;
            // Turns are short: a review whose time is over waits for one too, so that its answer says what was too slow.
            next = Some(turns().await);
        }
    }
}

/// Records that a waiting review can continue.
struct Woken(Notify);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

/// Where a large review may end early.
async fn step(is_large: bool, deadline: Instant) -> Result<(), Refusal> {
    if !is_large {
        return Ok(());
    }
    yield_now().await;
    if Instant::now() < deadline { Ok(()) } else { Err(Refusal::Busy) }
}
