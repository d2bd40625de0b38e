//! The kinds of calls to the API server, and the limits on each.

use tokio::sync::Semaphore;

/// The purpose of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    AccessReview,
    /// An access review, or a read, for warnings only: about a workload, or about a pod whose denials are warnings.
    Advice,
    /// A review of a token. Anyone on the network can cause one.
    TokenReview,
    /// A read of a credential spec, or of a pod, that is known to exist.
    KnownSpec,
    /// A read of a credential spec that may not exist: a pod's author can make up any number of names.
    UnknownSpec,
    /// Anything that no review waits for: lists, Secrets, webhook configurations, the command-line tools.
    Background,
}

/// The streams that kube-apiserver allows on a connection.
const STREAMS: usize = 100;
const _: () = assert!(
    CallKind::AccessReview.limit()
        + CallKind::Advice.limit()
        + CallKind::TokenReview.limit()
        + CallKind::KnownSpec.limit()
        + CallKind::UnknownSpec.limit()
        + CallKind::Background.limit()
        < STREAMS
);

impl CallKind {
    pub(super) const ALL: [Self; 6] =
        [Self::AccessReview, Self::Advice, Self::TokenReview, Self::KnownSpec, Self::UnknownSpec, Self::Background];

    /// The most calls of this kind in flight, and of those that wait.
    const fn bounds(self) -> (usize, usize) {
        match self {
            Self::AccessReview => (32, 1024),
            Self::Advice => (4, 64),
            Self::KnownSpec => (24, 1024),
            Self::TokenReview => (12, 256),
            Self::UnknownSpec => (8, 256),
            // They are made by this process alone.
            Self::Background => (16, Semaphore::MAX_PERMITS - 16),
        }
    }

    /// The most calls of this kind in flight, in the whole process.
    pub const fn limit(self) -> usize {
        self.bounds().0
    }

    /// The most calls of this kind that wait for a permit; any other one fails at once. A waiting call takes about 8 KiB.
    pub const fn queue(self) -> usize {
        self.bounds().1
    }

    /// The largest answer that is read, in bytes. etcd refuses objects above 1.5 MiB; other lists are read in pages.
    pub const fn largest_answer(self) -> usize {
        if matches!(self, Self::Background) { 32 << 20 } else { 2 << 20 }
    }

    /// The most calls in flight for one caller: a service account, or an address that sends tokens.
    pub const fn share(self) -> usize {
        self.limit() / 4
    }

    /// The most calls in flight or waiting for one caller: half of all. A client that forges an account delays only that
    /// account.
    pub const fn share_with_queue(self) -> usize {
        self.limit() / 2 + self.queue() / 2
    }
}

/// A limit on calls in flight: on all of a kind, or on those for one caller, which is a service account, or an address that sends tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub kind: CallKind,
    pub is_of_caller: bool,
}

impl Limit {
    /// The calls that it allows.
    pub(super) fn calls(self) -> usize {
        if self.is_of_caller { self.kind.share() } else { self.kind.limit() }
    }

    /// The end of a message: whose calls they are.
    pub(super) fn whose(self) -> &'static str {
        match (self.kind, self.is_of_caller) {
            (CallKind::TokenReview, true) => " for this address",
            (_, true) => " for this service account",
            (CallKind::Advice, false) => " for warnings",
            (_, false) => "",
        }
    }
}
