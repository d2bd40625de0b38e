//! The time that a review may take.
//!
//! Invariant: a review takes less than the API server's time-out (1 to 30 s), counted from the head of its request. The wait of a new connection for
//! a place, and its handshake, come before, and are not counted.

use std::time::Duration;

use gmsa_core::duration::go_duration;

use super::refusal::HttpRefusal;

/// The time-out of a webhook call without `timeout`: the API server's default.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The API server's shortest and longest time-out for a webhook call. A shorter time does not come from an API server, and would only
/// end calls to the API server before they can be answered.
pub(crate) const MIN_TIMEOUT: Duration = Duration::from_secs(1);
/// See [`MIN_TIMEOUT`].
pub(crate) const MAX_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a decision may take: what the API server's `?timeout=` leaves after a margin in which the answer travels.
///
/// # Errors
/// Where the query has a `timeout` that is not a Go duration (`10s`, `1m30s`, `500ms`) above 0.
pub(super) fn time_allowed(query: Option<&str>) -> Result<Duration, HttpRefusal> {
    let given = query.unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("timeout="));
    let timeout = match given {
        None => DEFAULT_TIMEOUT,
        Some(text) => {
            let timeout = go_duration(text).filter(|timeout| !timeout.is_zero());
            timeout.ok_or(HttpRefusal::INVALID_TIMEOUT)?.clamp(MIN_TIMEOUT, MAX_TIMEOUT)
        }
    };
    let margin = (timeout / 10).min(Duration::from_millis(500));
    Ok(timeout.saturating_sub(margin))
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
            let expected = expected.map(Duration::from_millis).ok_or(HttpRefusal::INVALID_TIMEOUT);
            assert_eq!(time_allowed(query), expected, "{query:?}");
        }
    }
}
