//! The budget of one command, or of one read of a program that serves, for all its connections and searches.
//!
//! Invariant: all that is kept of answers was taken from the budget before, so a hostile controller cannot have a command keep more, or
//! work longer, however many domains, groups and members it makes up.
//!
//! The largest command that was measured, a lint of 5,000 accounts, takes 3 s (docs/active-directory.md). By the costs of an entry, an account of
//! 1 KiB with 13 attributes takes 4 KiB, so they take 20 MiB; with a service principal name each, they take 100 searches in every domain. The
//! limits leave room for larger forests and slower networks.

use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use tokio::time::{Instant, timeout};

use crate::Error;

/// All messages, and what their entries take in memory.
pub const MAX_BYTES: usize = 128 << 20;
pub const MAX_SEARCHES: usize = 10_000;
/// The time of all operations, without the wait for a user's confirmation.
pub const MAX_TIME: Duration = Duration::from_secs(600);
/// The time of one operation: a connection, a bind, or a whole search.
pub const OPERATION: Duration = Duration::from_secs(30);

/// The time of a [`Budget::of_one_account`].
const TIME_OF_ONE_ACCOUNT: Duration = Duration::from_secs(15);

/// The limits on a run's traffic and time, and how much is used.
#[derive(Debug)]
pub struct Budget {
    /// The limits, and their words in messages.
    most_bytes: (usize, &'static str),
    most_time: (Duration, &'static str),
    operation: Duration,
    bytes: AtomicUsize,
    searches: AtomicUsize,
    /// In milliseconds.
    time: AtomicU64,
}

impl Default for Budget {
    /// The budget of a command.
    fn default() -> Self {
        let (most_bytes, most_time) =
            ((MAX_BYTES, "128 MiB of answers"), (MAX_TIME, "10 minutes of waiting for answers"));
        let (bytes, searches, time) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicU64::new(0));
        Self { most_bytes, most_time, operation: OPERATION, bytes, searches, time }
    }
}

impl Budget {
    /// The budget of a program that serves, for one account and its password.
    pub fn of_one_account() -> Self {
        let most_time = (TIME_OF_ONE_ACCOUNT, "15 s of waiting for answers");
        Self {
            most_bytes: (1 << 20, "1 MiB of answers"),
            most_time,
            operation: Duration::from_secs(5),
            ..Self::default()
        }
    }

    /// Takes the bytes of an answer.
    pub(crate) fn bytes(&self, address: &str, count: usize) -> Result<(), Error> {
        let spent = self.bytes.fetch_add(count, Relaxed).saturating_add(count);
        self.fits(address, spent)
    }

    /// Fails where `count` bytes are more than the whole budget.
    pub(crate) fn fits(&self, address: &str, count: usize) -> Result<(), Error> {
        let (most, text) = self.most_bytes;
        if count > most { Err(exhausted(address, text)) } else { Ok(()) }
    }

    pub(crate) fn search(&self, address: &str) -> Result<(), Error> {
        let before = self.searches.fetch_add(1, Relaxed);
        if before >= MAX_SEARCHES { Err(exhausted(address, "10,000 searches")) } else { Ok(()) }
    }

    /// Runs an operation within its time limit and the time left for the command.
    pub(crate) async fn within<T>(
        &self,
        address: &str,
        operation: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let started = Instant::now();
        let ((time, text), most) = (self.most_time, self.operation);
        let left = time.saturating_sub(Duration::from_millis(self.time.load(Relaxed)));
        let ended = timeout(most.min(left), operation).await;
        self.time.fetch_add(u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX), Relaxed);
        ended.unwrap_or_else(|_| {
            Err(if left < most { exhausted(address, text) } else { Error::TimedOut(address.to_owned(), most) })
        })
    }
}

fn exhausted(address: &str, what: &'static str) -> Error {
    Error::Exhausted(address.to_owned(), what)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "name single accounts, or another domain controller with --directory ldaps://HOST";

    fn said<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn bytes_and_searches_are_those_of_all_connections() {
        let budget = Budget::default();
        for _ in 0..128 {
            budget.bytes("ldaps://dc1", 1 << 20).unwrap();
        }
        let error = said(budget.bytes("ldaps://dc2", 1));
        assert_eq!(error, format!("one command takes at most 128 MiB of answers, which ldaps://dc2 exceeds: {NOW}"));
        for _ in 0..MAX_SEARCHES {
            budget.search("ldaps://dc1").unwrap();
        }
        let error = said(budget.search("ldaps://dc2"));
        assert_eq!(error, format!("one command takes at most 10,000 searches, which ldaps://dc2 exceeds: {NOW}"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_all_operations_is_limited() {
        let budget = Budget::default();
        let silent = || budget.within::<()>("ldaps://dc1", std::future::pending());
        for _ in 0..20 {
            assert_eq!(said(silent().await), "ldaps://dc1 did not answer within 30 s");
        }
        let error = said(silent().await);
        assert_eq!(
            error,
            format!("one command takes at most 10 minutes of waiting for answers, which ldaps://dc1 exceeds: {NOW}")
        );
    }
}
