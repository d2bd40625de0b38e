//! The bounds on requests and connections, and the time that a review may take; those of a pod are in
//! `gmsa_core::admission`.
//!
//! Invariants: each bound is a constant, a setting, or follows from the memory limit of the process
//! ([`Limits`](crate::config::Limits)); none grows with what a client sends.

use std::{pin::pin, task::Poll, time::Duration};

use futures::poll;
use tokio::time::{Instant, timeout_at};

use crate::config::go_duration;

/// The largest request body, in bytes. The API server itself accepts objects of up to 3 MiB, and an update carries two.
pub const MAX_BODY: usize = 8 * 1024 * 1024;

/// The largest request head, in bytes, and the most that is read of a body at once.
pub const MAX_HEAD: usize = 16 * 1024;

/// Larger bodies are read and decided off the threads that serve connections, in bytes.
pub const LARGE_BODY: usize = 256 * 1024;

/// The most threads that serve connections, and the most large reviews that are read or decided at once. Each takes memory
/// of its own, and the memory limit of the process does not grow with the cores of its node.
const MAX_THREADS: usize = 4;

/// How many threads serve connections, and how many large reviews are read or decided at once: one for each core that the
/// process may use, at most 4.
#[must_use]
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS)
}

/// How long a TLS handshake may take.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the head of a request may take, from its first byte to its last.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a request body may take, from the end of its head.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a client may take to read an answer.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long, and how many bytes, a client may still send after the connection's last answer.
pub const LINGER_TIMEOUT: Duration = Duration::from_secs(2);
/// See [`LINGER_TIMEOUT`].
pub const LINGER_BYTES: usize = 64 * 1024 * 1024;

/// How long a connection may stay open without a request. Longer than Go's 90 s, so that the API server is the one that
/// closes, and never sends a review into a connection that is being closed.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(150);

/// What a webhook call may take where the request has no `timeout`: the API server's default.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The most that the API server lets a webhook call take.
const MAX_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a decision may take: what the API server's `?timeout=` leaves after a margin in which the answer travels.
///
/// # Errors
/// Where the query has a `timeout` that is not a Go duration (`10s`, `1m30s`, `500ms`).
pub fn time_allowed(query: Option<&str>) -> Result<Duration, InvalidTimeout> {
    let given = query.unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("timeout="));
    let timeout = match given {
        None => DEFAULT_TIMEOUT,
        Some(text) => go_duration(text).filter(|timeout| !timeout.is_zero()).ok_or(InvalidTimeout)?.min(MAX_TIMEOUT),
    };
    let margin = (timeout / 10).min(Duration::from_millis(500));
    Ok(timeout.saturating_sub(margin))
}

/// Waits until `deadline`; `None` where the future is not ready by then. One that is ready at once, as nearly all are, needs
/// no timer.
pub async fn before<T>(deadline: Instant, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    match poll!(future.as_mut()) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => timeout_at(deadline, future).await.ok(),
    }
}

/// The `timeout` in the query is not one that the API server sends.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the query parameter timeout must be a duration above 0 with units, such as 10s, 1m30s or 500ms")]
pub struct InvalidTimeout;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_says_how_long_a_decision_may_take() {
        for (query, expected) in [
            (None, Ok(9_500)),
            (Some("a=b"), Ok(9_500)),
            (Some("timeout=10s"), Ok(9_500)),
            (Some("x=1&timeout=1s"), Ok(900)),
            (Some("timeout=1m30s"), Ok(29_500)),
            (Some("timeout=500ms"), Ok(450)),
            (Some("timeout=1.5s"), Ok(1_350)),
            (Some("timeout="), Err(InvalidTimeout)),
            (Some("timeout=10"), Err(InvalidTimeout)),
            (Some("timeout=0s"), Err(InvalidTimeout)),
            (Some("timeout=-1s"), Err(InvalidTimeout)),
            (Some("timeout=s"), Err(InvalidTimeout)),
            (Some("timeout=1.2.3s"), Err(InvalidTimeout)),
            (Some("timeout=99999999999999999999999h"), Err(InvalidTimeout)),
        ] {
            assert_eq!(time_allowed(query), expected.map(Duration::from_millis), "{query:?}");
        }
    }
}
