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
        Some(text) => go_duration(text).filter(|timeout| !timeout.is_zero())?.min(MAX_TIMEOUT),
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
            (Some("timeout=500ms"), Some(450)),
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
