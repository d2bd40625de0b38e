//! Limits of a replica: how much it takes at once, and for how long. Limits of a pod are in `gmsa_core::admission`, limits of a connection in
//! [`gmsa_edge::limits`]; those of the directory, of Kerberos and of the broker in `limits` of their crates.
//!
//! A new bound is a constant here, or beside what it bounds, and a row of `src/limits/tests/page.rs`, which makes the table in `docs/security.md`.
//!
//! Invariants: each bound is a constant, a setting, or follows from the memory and the open files of the process ([`Limits`]); none grows with
//! what a client sends.

use std::time::Duration;

use gmsa_edge::limits::{PER_CONNECTION, PER_WAITING};

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
    /// The bytes that large bodies and answers may take together, and large answers of the API server; `LargeMemory` says how they are shared.
    /// Over it, a review is answered with 503, and a look-up fails.
    pub large_bytes: usize,
    /// The bytes of credential specs in memory, a quarter of it for contents that only reviews hold. Those over it are read from the API
    /// server.
    pub credential_specs: usize,
}

impl Limits {
    /// The bounds of a process that may use this many bytes. Each follows from the worst case of what it bounds. All
    /// that takes memory is in this table, with its worst case, and the test in `limits/tests.rs` adds them up. It has the constants that
    /// are not links here:
    ///
    /// | what | worst case | of 128 MiB |
    /// |---|---|---|
    /// | connections that are served | a fifth: [`PER_CONNECTION`] each | 25.6 |
    /// | connections that wait | a seventh: [`PER_WAITING`] each | 18.3 |
    /// | small reviews | [`SMALL`] each: one body, what was parsed of it, which is no larger, or its answer | 5.9 |
    /// | large bodies and answers, and large answers of the API server | two fifteenths, counted byte by byte as they come: half of that is enough for one of [`MAX_BODY`] in a process of 120 MiB | 17.1 |
    /// | credential specs: those in memory, and the contents that only reviews hold | a thirteenth | 9.8 |
    /// | look-ups that wait | `WAITING_CALL` each; a review makes one at a time | 1.5 |
    /// | small answers of the API server | [`SMALL`] for each call in flight | 2.0 |
    /// | threads that read or decide | one for each core, here 2, and half as many for large reviews: [`MOST_BYTES_TO_ANSWER`](gmsa_core::admission::MOST_BYTES_TO_ANSWER) each, or [`most_bytes_to_parse`](gmsa_core::admission::review::most_bytes_to_parse) of a large body | 26.3 |
    /// | HTTP/2 buffers of the two connections to the API server | [`HTTP2_WINDOW`](gmsa_cluster::apiserver::HTTP2_WINDOW) each | 2.0 |
    /// | a page of the list, or a line of the watch | [`MAX_PAGE`] | 4.0 |
    /// | remembered approvals | `APPROVAL` each, [`MAX_REMEMBERED`](gmsa_edge::authorization_cache::MAX_REMEMBERED) of them | 3.0 |
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
            large_bytes: bytes / 15 * 2,
            credential_specs: bytes / 13,
        }
    }
}

/// The largest request body, in bytes. The API server itself accepts objects of up to 3 MiB, and an update carries two.
pub const MAX_BODY: usize = 8 * 1024 * 1024;

/// The longest body that is parsed and decided on the threads that serve connections. A pod's review has 3 to 30 KiB.
pub use gmsa_cluster::body::SMALL;

/// The longest page of a list of credential specs, and the longest line of a watch, in bytes. etcd refuses objects far below it.
pub const MAX_PAGE: usize = 4 * MIB;

/// How long a request body may take, from the end of its head.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a review makes look-ups that only warnings need. The chart sets 2 s for reviews of workloads.
pub const ADVICE_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a connection may stay open without a request, and how long a head may take. Longer than Go's 90 s, so that the API
/// server closes first, and never sends a review into a connection that is being closed.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(150);

#[cfg(test)]
mod tests;
