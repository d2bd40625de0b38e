//! The bounds on requests and connections, and the time that a review may take; those of a pod are in
//! `gmsa_core::admission`.
//!
//! Invariants: each bound is a constant, a setting, or follows from the memory limit of the process
//! ([`Limits`](crate::config::Limits)); none grows with what a client sends.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::config::go_duration;

/// The largest request body, in bytes. The API server itself accepts objects of up to 3 MiB, and an update carries two.
pub const MAX_BODY: usize = 8 * 1024 * 1024;

/// The longest body that takes no permit and is parsed on the threads that serve connections, and the longest
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

/// The most threads that serve connections, and the most large reviews that are parsed at once. Each takes memory
/// of its own, and the memory limit of the process does not grow with the cores of its node.
const MAX_THREADS: usize = 4;

/// How many threads serve connections, and how many large reviews are parsed at once: one for each core that the
/// process may use, at most 4.
#[must_use]
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS)
}

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

/// What a webhook call may take where the request has no `timeout`: the API server's default.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The least and the most that the API server lets a webhook call take. A shorter time is no API server's, and would only end
/// calls to the API server before they can be answered.
const MIN_TIMEOUT: Duration = Duration::from_secs(1);
/// See [`MIN_TIMEOUT`].
const MAX_TIMEOUT: Duration = Duration::from_secs(30);

/// What a `timeout` that the API server does not send is answered with.
pub const INVALID_TIMEOUT: &str =
    "the query parameter timeout must be a duration above 0 with units, such as 10s, 1m30s or 500ms";

/// How long a decision may take: what the API server's `?timeout=` leaves after a margin in which the answer travels. `None`
/// where the query has a `timeout` that is not a Go duration (`10s`, `1m30s`, `500ms`) above 0.
#[must_use]
pub fn time_allowed(query: Option<&str>) -> Option<Duration> {
    let given = query.unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("timeout="));
    let timeout = match given {
        None => DEFAULT_TIMEOUT,
        Some(text) => go_duration(text).filter(|timeout| !timeout.is_zero())?.clamp(MIN_TIMEOUT, MAX_TIMEOUT),
    };
    let margin = (timeout / 10).min(Duration::from_millis(500));
    Some(timeout.saturating_sub(margin))
}

/// Waits until `deadline`; `None` where the future is not ready by then. One that is ready at once is in time, whatever the
/// deadline: [`timeout_at`] asks the future first.
pub async fn before<T>(deadline: Instant, future: impl Future<Output = T>) -> Option<T> {
    timeout_at(deadline, future).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_says_how_long_a_decision_may_take() {
        for (query, expected) in [
            (None, Some(9_500)),
            (Some("a=b"), Some(9_500)),
            (Some("timeout=10s"), Some(9_500)),
            (Some("x=1&timeout=1s"), Some(900)),
            (Some("timeout=1m30s"), Some(29_500)),
            (Some("timeout=500ms"), Some(900)),
            (Some("timeout=5ms"), Some(900)),
            (Some("timeout=1.5s"), Some(1_350)),
            (Some("timeout="), None),
            (Some("timeout=10"), None),
            (Some("timeout=0s"), None),
            (Some("timeout=-1s"), None),
            (Some("timeout=s"), None),
            (Some("timeout=1.2.3s"), None),
            (Some("timeout=99999999999999999999999h"), None),
        ] {
            assert_eq!(time_allowed(query), expected.map(Duration::from_millis), "{query:?}");
        }
    }
}
