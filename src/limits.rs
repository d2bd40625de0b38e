//! The bounds of what a replica takes at the same time, and for how long; those of a pod are in `gmsa_core::admission`.
//!
//! A new bound is a constant here, or beside what it bounds, and a row of `tests/page.rs`, which makes the table in `docs/security.md`.
//!
//! Invariants: each bound is a constant, a setting, or follows from the memory limit of the process ([`Limits`]); none
//! grows with what a client sends.

use std::{sync::Arc, time::Duration};

use tokio::sync::Semaphore;

const MIB: usize = 1024 * 1024;

/// The memory that is assumed where the system sets no limit: the chart's.
pub const DEFAULT_MEMORY: usize = 128 * MIB;

/// The memory limits below and above which nothing changes any more.
const USEFUL: std::ops::RangeInclusive<usize> = 64 * MIB..=1024 * MIB;

/// The bounds that follow from the memory of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections that are served. The others wait.
    pub connections: usize,
    /// Connections that wait to be served. Over it, one is dropped.
    pub waiting: usize,
    /// Reviews in flight. Over it, a review waits, and is answered with 503 when its time is over.
    pub reviews: usize,
    /// The bytes that large reviews may take together: bodies, what parsing them costs, and answers; and large answers of the API
    /// server. Over it, a review is answered with 503, and a look-up fails.
    pub large_bytes: usize,
    /// The bytes of credential specs in memory, a quarter of it for contents that only reviews hold. Those over it are read from the API
    /// server.
    pub credential_specs: usize,
}

impl Limits {
    /// The bounds of a process that may use this many bytes. Each follows from the worst case of what it bounds. All
    /// that takes memory is in this table, with its worst case, and a test adds them up:
    ///
    /// | what | worst case | of 128 MiB |
    /// |---|---|---|
    /// | connections that are served | a fifth: `PER_CONNECTION` each | 25.6 |
    /// | connections that wait | a seventh: `PER_WAITING` each | 18.3 |
    /// | small reviews | [`SMALL`] each: one body, what was parsed of it, which is no larger, or its answer | 5.9 |
    /// | large bodies and answers, and large answers of the API server | a sixth, counted byte by byte as they come: enough for one of [`MAX_BODY`], with what parsing it costs, in a process of 120 MiB | 21.3 |
    /// | credential specs: those in memory, and the contents that only reviews hold | a thirteenth | 9.8 |
    /// | look-ups that wait | `WAITING_CALL` each; a review makes one at a time | 1.5 |
    /// | small answers of the API server | [`SMALL`] for each call in flight | 2.0 |
    /// | threads that read or decide | [`MOST_BYTES_TO_ANSWER`](gmsa_core::admission::MOST_BYTES_TO_ANSWER) each: three for two [cores](crate::server::threads::threads), here 2 | 21.0 |
    /// | HTTP/2 buffers of the two connections to the API server | [`HTTP2_WINDOW`](gmsa_cluster::apiserver::HTTP2_WINDOW) each | 2.0 |
    /// | a page of the list, or a line of the watch | [`MAX_PAGE`] | 4.0 |
    /// | remembered approvals | `APPROVAL` each, [`MAX_REMEMBERED`](crate::authorization_cache::MAX_REMEMBERED) of them | 3.0 |
    /// | log lines (`telemetry/log.rs`) and spans that wait, and metrics | `TELEMETRY` | 5.0 |
    /// | the program, and what the allocator holds | `PROGRAM` | 5.0 |
    ///
    /// With less than 128 MiB, or on more cores, each part borrows from parts that are not full.
    #[must_use]
    pub fn of_memory(bytes: usize) -> Self {
        let bytes = bytes.clamp(*USEFUL.start(), *USEFUL.end());
        let connections = bytes / 5 / PER_CONNECTION;
        Self {
            connections,
            waiting: bytes / 7 / PER_WAITING,
            reviews: connections,
            large_bytes: bytes / 6,
            credential_specs: bytes / 13,
        }
    }

    /// The same for a process that may have this many more files open: each connection is one.
    #[must_use]
    pub fn within_files(self, files: usize) -> Self {
        let (connections, waiting) = fit(self.connections, self.waiting, files);
        Self { connections, waiting, ..self }
    }

    /// The memory for large bodies: one permit per byte.
    #[must_use]
    pub fn large_memory(&self) -> Arc<Semaphore> {
        Arc::new(Semaphore::new(self.large_bytes))
    }
}

impl Default for Limits {
    /// Those of [`DEFAULT_MEMORY`].
    fn default() -> Self {
        Self::of_memory(DEFAULT_MEMORY)
    }
}

/// How many more files the process may have open for connections: to the webhook's port, and an eighth of them to the admin port.
#[must_use]
pub fn files_for_connections(limit: usize) -> [usize; 2] {
    let admin = limit.saturating_sub(OWN_FILES) / 8;
    [7 * admin, admin]
}

/// How many connections are served and wait where each of them is one of so many files: at least half of those wait.
#[must_use]
pub fn fit(served: usize, waiting: usize, files: usize) -> (usize, usize) {
    let served = served.min(files / 2).max(1);
    (served, waiting.min(files.saturating_sub(served)).max(1))
}

/// The files that the process has open besides connections of clients: those to the API server, of the runtime, of what it watches.
const OWN_FILES: usize = 64;

/// The most that a served connection can hold, in bytes, with any client. What comes in is either a TLS handshake
/// message in parts (rustls keeps 64 KiB of it), or it is unread: 16 KiB as it came and 16 KiB decrypted in rustls,
/// [`MAX_HEAD`] in hyper, and twice [`RECEIVE_BUFFER`] in the kernel. What goes out is the head of an answer in hyper,
/// [`TLS_OUTPUT`], and twice [`SEND_BUFFER`] in the kernel. The rest is the state of TLS and the task.
const PER_CONNECTION: usize = (16 + 16 + 10) * 1024 + 2 * MAX_HEAD + TLS_OUTPUT + 2 * RECEIVE_BUFFER + 2 * SEND_BUFFER;

/// The most that a waiting connection can hold, in bytes: [`WAITING_RECEIVE_BUFFER`] twice, the kernel's structures of
/// a socket and of a file, and a task that waits.
const PER_WAITING: usize = 2 * WAITING_RECEIVE_BUFFER + 5 * 1024;

/// The largest request body, in bytes. The API server itself accepts objects of up to 3 MiB, and an update carries two.
pub const MAX_BODY: usize = 8 * 1024 * 1024;

/// The longest body that is parsed and decided on the threads that serve connections. A pod's review has 3 to 30 KiB.
pub use gmsa_cluster::body::SMALL;

/// The longest page of a list of credential specs, and the longest line of a watch, in bytes. etcd refuses objects far below it.
pub const MAX_PAGE: usize = 4 * MIB;

/// The largest request head, in bytes, and the most that is read of a body at once: the least that hyper takes.
pub const MAX_HEAD: usize = 8 * 1024;

/// What is read of a handshake at once, in bytes.
pub const MAX_READ: usize = 4 * 1024;

/// What rustls may hold of an answer that the client does not read, in bytes.
pub const TLS_OUTPUT: usize = 16 * 1024;

/// The kernel's buffers of a connection, in bytes. It doubles each, for its own book-keeping.
pub const RECEIVE_BUFFER: usize = 16 * 1024;
/// See [`RECEIVE_BUFFER`]. While a connection waits, its first message need not fit.
pub const WAITING_RECEIVE_BUFFER: usize = 2 * 1024;
/// See [`RECEIVE_BUFFER`].
pub const SEND_BUFFER: usize = 16 * 1024;

/// How many handshakes are computed, or are next, for each core that serves connections.
pub const HANDSHAKES_PER_CORE: usize = 2;

/// How long a TLS handshake may take.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a connection waits to be served, and a review until fewer are in flight: the chart has API servers give up on the webhook after 5 s, and what is left is enough
/// for the handshake and the review.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(4);

/// How long a connection may hold a place without a request to decide while another one waits for that place. An API server's
/// handshake takes milliseconds, and a second where its processors are busy.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// How long a request body may take, from the end of its head.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a review makes look-ups that only warnings need. The chart gives those of workloads 2 s.
pub const ADVICE_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a client may take to acknowledge, or to make room for, what is sent to it.
pub const UNREAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How long what a client still sends is read and dropped before a request is refused: a socket that is closed while there are
/// bytes to read resets the connection, and a client that is still writing loses its answer.
pub const LINGER_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a connection may stay open without a request, and how long a head may take. Longer than Go's 90 s, so that the API
/// server is the one that closes, and never sends a review into a connection that is being closed.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(150);

#[cfg(test)]
mod tests;
