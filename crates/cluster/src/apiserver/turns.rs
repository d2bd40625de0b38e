//! Limits on the calls in flight: each kind of call has its own, and within it no namespace takes more than a share.
//!
//! What always holds: a flood of one kind of call, such as reads of names that do not exist, takes no turn from another
//! kind; a flood from one namespace leaves most turns to the others. A call that is no longer waited for gives up its
//! place in the queue, since waiting is a future that is dropped with the review.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// A `LocalSubjectAccessReview`.
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
    #[must_use]
    pub const fn limit(self) -> usize {
        match self {
            Self::AccessReview => 32,
            Self::KnownSpec => 24,
            Self::UnknownSpec => 8,
            Self::Background => 16,
        }
    }

    /// The most of them for one namespace, where the call is made for one.
    #[must_use]
    pub const fn share(self) -> usize {
        self.limit() / 4
    }
}

/// The calls in flight of one kind.
pub(super) struct Turns {
    all: Semaphore,
    share: usize,
    /// The namespaces with calls in flight or waiting.
    namespaces: Mutex<HashMap<Box<str>, Weak<Semaphore>>>,
}

/// Permission to call, until it is dropped.
pub(super) struct Turn<'t> {
    _call: SemaphorePermit<'t>,
    _share: Option<OwnedSemaphorePermit>,
}

impl Turns {
    pub fn new(kind: CallKind) -> Self {
        Self { all: Semaphore::new(kind.limit()), share: kind.share(), namespaces: Mutex::default() }
    }

    /// Waits for a turn. First for one of the namespace's share: calls that wait for that do not block other namespaces.
    pub async fn turn(&self, namespace: Option<&str>) -> Result<Turn<'_>, AcquireError> {
        let share = match namespace {
            Some(namespace) => Some(self.share(namespace).acquire_owned().await?),
            None => None,
        };
        Ok(Turn { _call: self.all.acquire().await?, _share: share })
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
