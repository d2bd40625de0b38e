//! One review that is being decided, with the places that it takes.
//!
//! What always holds: a large review is read and decided off the threads that serve connections, as many at once as there
//! are cores, so what it costs delays no handshake. One whose deadline has passed or whose client has gone is dropped at
//! the next step: before it is parsed, before it is decided, while it waits for the API server.

use std::sync::Arc;

use bytes::Bytes;
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    task::{spawn_blocking, yield_now},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
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
        self.step().await?;
        let review = Review::parse(self.body.bytes(), self.webhook)?;
        self.step().await?;
        let decision = self.reviewer.decide(self.webhook, &review, self.started, self.deadline).await;
        let answer = review.answer(&decision);
        Ok(self.body.answer(answer)?)
    }

    /// The same, on a thread of its own once one of `threads` is free.
    pub(super) async fn run_apart(self, threads: &Arc<Semaphore>) -> Result<Bytes, Refusal> {
        let turn = before(self.deadline, Arc::clone(threads).acquire_owned()).await.ok_or(Refusal::Busy)?;
        let gone = CancellationToken::new();
        let _guard = gone.clone().drop_guard();
        let (runtime, span) = (Handle::current(), Span::current());
        let answer = spawn_blocking(move || {
            let _turn = turn;
            runtime.block_on(gone.run_until_cancelled(self.run().instrument(span)))
        });
        // If the client has gone, no one reads the answer; a thread that panics has logged why.
        answer.await.ok().flatten().unwrap_or(Err(Refusal::Busy))
    }

    /// Where a large review may end early.
    async fn step(&self) -> Result<(), Refusal> {
        if self.body.bytes().len() <= LARGE_BODY {
            return Ok(());
        }
        yield_now().await;
        if Instant::now() < self.deadline { Ok(()) } else { Err(Refusal::Busy) }
    }
}
