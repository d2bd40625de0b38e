//! The bounds on requests and connections; those of a pod are in `gmsa_core::admission`.
//!
//! Invariants: each bound is a constant, a setting, or follows from the memory limit of the process
//! ([`Limits`](crate::config::Limits)); none grows with what a client sends.

use std::time::Duration;

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
