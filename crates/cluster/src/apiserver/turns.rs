//! Limits on the calls in flight: each kind of call has its own, and within it no namespace takes more than a share.
//!
//! Invariants: a flood of one kind of call, such as reads of names that do not exist, takes no turn from another
//! kind; a flood from one namespace leaves most turns to the others. A call that is no longer waited for gives up its
//! place in the queue, since waiting is a future that is dropped with the review.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    AccessReview,
    /// A read of a credential spec that is known to exist.
    KnownSpec,
    /// A read of a credential spec that may not exist: a pod's author can make up any number of names.
    UnknownSpec,
    /// Anything that no review waits for: lists, Secrets, webhook configurations, the command-line tools.
    Background,
}

impl CallKind {
    /// The most calls of this kind in flight, in the whole process. Together they stay below the 100 streams that
    /// kube-apiserver allows on a connection.
    pub const fn limit(self) -> usize {
        match self {
            Self::AccessReview => 32,
            Self::KnownSpec => 24,
            Self::UnknownSpec => 8,
            Self::Background => 16,
        }
    }

    /// The most calls of this kind that wait for a turn; any other one fails at once. What waits takes memory, and a pod's
    /// author can make up names faster than they are read.
    const fn queue(self) -> usize {
        match self {
            Self::UnknownSpec => 256,
            Self::AccessReview | Self::KnownSpec | Self::Background => Semaphore::MAX_PERMITS - self.limit(),
        }
    }

    /// The most of them for one namespace, where the call is made for one.
    pub const fn share(self) -> usize {
        self.limit() / 4
    }
}

/// The calls in flight of one kind.
pub(super) struct Turns {
    all: Semaphore,
    /// A place for each call that waits or is in flight.
    places: Semaphore,
    share: usize,
    /// The namespaces with calls in flight or waiting.
    namespaces: Mutex<HashMap<Box<str>, Weak<Semaphore>>>,
}

/// Permission to call, until it is dropped: the place, the namespace's share and the call itself.
type Turn<'t> = (SemaphorePermit<'t>, Option<OwnedSemaphorePermit>, SemaphorePermit<'t>);

impl Turns {
    pub fn new(kind: CallKind) -> Self {
        let places = Semaphore::new(kind.limit() + kind.queue());
        Self { all: Semaphore::new(kind.limit()), places, share: kind.share(), namespaces: Mutex::default() }
    }

    /// Waits for a turn; `None` where too many calls are waiting. First for one of the namespace's share: calls that wait
    /// for that do not block other namespaces. The semaphores are never closed, so only the queue's can refuse.
    pub async fn turn(&self, namespace: Option<&str>) -> Option<Turn<'_>> {
        let place = self.places.try_acquire().ok()?;
        let share = match namespace {
            Some(namespace) => Some(self.share(namespace).acquire_owned().await.ok()?),
            None => None,
        };
        Some((place, share, self.all.acquire().await.ok()?))
    }

    /// Calls that wait or are in flight hold the semaphore, so the map stays as small as what is in flight.
    fn share(&self, namespace: &str) -> Arc<Semaphore> {
        let mut namespaces = self.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = namespaces.get(namespace).and_then(Weak::upgrade) {
            return share;
        }
        namespaces.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(Semaphore::new(self.share));
        namespaces.insert(namespace.into(), Arc::downgrade(&share));
        share
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

    use futures::{FutureExt as _, future::join_all};

    use super::*;

    #[tokio::test]
    async fn over_its_queue_a_read_of_an_unknown_name_fails_at_once() {
        let turns = Turns::new(CallKind::UnknownSpec);
        let in_flight = join_all((0..8).map(|_| turns.turn(None))).await;
        let mut waiting: Vec<_> = (0..256).map(|_| Box::pin(turns.turn(None))).collect();
        for turn in &mut waiting {
            assert!(turn.now_or_never().is_none());
        }
        assert!(turns.turn(None).now_or_never().unwrap().is_none());
        // A call that is no longer waited for leaves its place to another.
        waiting.pop();
        assert!(turns.turn(None).now_or_never().is_none());
        drop((in_flight, waiting));
        assert!(turns.turn(None).await.is_some());
    }
}
