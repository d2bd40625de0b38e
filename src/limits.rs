//! The bounds of what a replica takes at the same time, and for how long; those of a pod are in `gmsa_core::admission`.
//!
//! Invariants: each bound is a constant, a setting, or follows from the memory limit of the process ([`Limits`]); none
//! grows with what a client sends.

use std::time::Duration;

const MIB: usize = 1024 * 1024;

/// The memory that is assumed where the system sets no limit: the chart's.
pub const DEFAULT_MEMORY: usize = 128 * MIB;

/// The memory limits below and above which nothing changes any more.
const USEFUL: std::ops::RangeInclusive<usize> = 64 * MIB..=1024 * MIB;

/// The bounds that follow from the memory of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open connections. Over it, the one that is idle longest is closed.
    pub connections: usize,
    /// Reviews in flight. Over it, a review waits for [`PERMIT_TIMEOUT`], then it is answered with 503.
    pub reviews: usize,
    /// The bytes that large reviews may take together: bodies, what parsing them costs, and answers. Over it, a review is
    /// answered with 503.
    pub large_reviews: usize,
    /// The bytes of credential specs in memory. Those over it are read from the API server.
    pub credential_specs: usize,
}

impl Limits {
    /// The bounds of a process that may use this many bytes, each of which follows from the worst case of what it bounds:
    ///
    /// - A third is for connections, with no request or in the middle of one: `PER_CONNECTION`.
    /// - About an eighth is for their reviews: each connection has at most one body of at most [`SMALL`] bytes, or what was
    ///   parsed of it, or the answer to it.
    /// - A fifth is for larger bodies and answers, counted byte by byte as they come. It is enough for one of
    ///   [`MAX_BODY`], with what parsing it costs, in a process of 120 MiB.
    /// - A fifth is for credential specs in memory.
    /// - The rest, a seventh, is for the program and what the allocator holds, and for the answers that are being made: 10 MiB at
    ///   most ([`MOST_BYTES_TO_ANSWER`](gmsa_core::admission::MOST_BYTES_TO_ANSWER)) for each of the
    ///   [`threads`](crate::server::threads::threads) that serve or decide. With less than 128 MiB, or with many such
    ///   answers, it borrows from the parts that are not full.
    ///
    /// An eighth of the connections is never busy with a review, so that a new one finds one that makes room for it.
    #[must_use]
    pub fn of_memory(bytes: usize) -> Self {
        let bytes = bytes.clamp(*USEFUL.start(), *USEFUL.end());
        let connections = bytes / 3 / PER_CONNECTION;
        Self {
            connections,
            reviews: connections - connections / 8,
            large_reviews: bytes / 5,
            credential_specs: bytes / 5,
        }
    }
}

impl Default for Limits {
    /// Those of [`DEFAULT_MEMORY`].
    fn default() -> Self {
        Self::of_memory(DEFAULT_MEMORY)
    }
}

/// The most that a connection can hold, in bytes, whatever client is behind it. What comes in is either a TLS handshake message in
/// parts, of which rustls keeps 64 KiB, or it is unread: 16 KiB as it came and 16 KiB decrypted in rustls,
/// [`MAX_HEAD`] in hyper, and twice [`RECEIVE_BUFFER`] in the kernel. What goes out is the head of an answer in
/// hyper, [`TLS_OUTPUT`], and twice [`SEND_BUFFER`] in the kernel. The rest is the state of TLS and the task.
const PER_CONNECTION: usize = (16 + 16 + 10) * 1024 + 2 * MAX_HEAD + TLS_OUTPUT + 2 * RECEIVE_BUFFER + 2 * SEND_BUFFER;

/// The largest request body, in bytes. The API server itself accepts objects of up to 3 MiB, and an update carries two.
pub const MAX_BODY: usize = 8 * 1024 * 1024;

/// The longest body that takes no permit and is parsed and decided on the threads that serve connections, and the longest
/// answer that takes no permit, in bytes. A pod's review has 3 to 30 KiB.
pub const SMALL: usize = 64 * 1024;

/// The largest request head, in bytes, and the most that is read of a body at once: the least that hyper takes.
pub const MAX_HEAD: usize = 8 * 1024;

/// What rustls may hold of an answer that the client does not read, in bytes.
pub const TLS_OUTPUT: usize = 16 * 1024;

/// The kernel's buffers of a connection, in bytes. It doubles both, for its own book-keeping.
pub const RECEIVE_BUFFER: usize = 32 * 1024;
/// See [`RECEIVE_BUFFER`].
pub const SEND_BUFFER: usize = 16 * 1024;

/// How long a TLS handshake may take.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a connection is never closed for another one: in that time a core completes hundreds of handshakes.
pub const MOMENT: Duration = Duration::from_millis(200);

/// How long a request body may take, from the end of its head.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a review waits until fewer are in flight: a burst of honest ones is answered in milliseconds, and an API server takes
/// a 503 for a denial.
pub const PERMIT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a client may take to acknowledge, or to make room for, what is sent to it.
pub const UNREAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How long what a client still sends is read and dropped before a request is refused: a socket that is closed while there are
/// bytes to read resets the connection, and a client that is still writing loses its answer.
pub const LINGER_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a connection may stay open without a request, and how long a head may take. Longer than Go's 90 s, so that the API
/// server is the one that closes, and never sends a review into a connection that is being closed.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(150);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_follows_from_the_memory_limit() {
        let limits = |mib: usize| Limits::of_memory(mib * MIB);
        let expected =
            Limits { connections: 257, reviews: 225, large_reviews: 128 * MIB / 5, credential_specs: 128 * MIB / 5 };
        assert_eq!(limits(128), expected);
        assert_eq!(Limits::default(), expected);
        assert_eq!(limits(256).connections, 514);
        assert_eq!(limits(16), limits(64));
        assert_eq!(limits(1 << 20), limits(1024));
        assert!(limits(120).large_reviews >= 3 * MAX_BODY);
    }
}
