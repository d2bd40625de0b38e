//! Log lines about clients that are not authenticated: anyone on the network can cause them, as many as they like.
//!
//! Invariants: in each period the first few are written and the others are counted; the count is logged when the
//! period ends, so a flood costs a few lines. Metrics count all of them.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// How many lines of a kind are written in each [`PERIOD`].
pub const FIRST: u64 = 5;

/// How long one summary covers.
pub const PERIOD: Duration = Duration::from_secs(10);

/// Log lines of one kind.
#[derive(Debug)]
pub struct LogLimit {
    message: &'static str,
    count: AtomicU64,
}

impl LogLimit {
    /// Lines with this message.
    pub const fn new(message: &'static str) -> Self {
        Self { message, count: AtomicU64::new(0) }
    }

    /// Counts a line. Returns whether to write it.
    #[must_use]
    pub fn admit(&self) -> bool {
        self.count.fetch_add(1, Relaxed) < FIRST
    }

    /// Ends a period: logs how many lines were left out in it.
    pub(crate) fn summarize(&self) {
        let left_out = self.count.swap(0, Relaxed).saturating_sub(FIRST);
        if left_out > 0 {
            tracing::info!(left_out, period = ?PERIOD, "{}: further lines left out", self.message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_few_lines_of_a_period_are_written() {
        let limit = LogLimit::new("refused");
        let written = || (0..100).filter(|_| limit.admit()).count();
        assert_eq!(written(), 5);
        assert_eq!(written(), 0);
        limit.summarize();
        assert_eq!(written(), 5);
    }
}
