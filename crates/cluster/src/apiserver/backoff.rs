//! How long to wait before a retry: longer each time, and with jitter, so that replicas do not retry together.

use std::time::Duration;

/// Pauses that double from the first to the longest; each is drawn from the upper half of its range.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// Pauses of at most `first`, then twice that, and so on up to `longest`.
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first }
    }

    pub fn pause(&mut self) -> Duration {
        let pause = jittered(self.next);
        self.next = self.next.saturating_mul(2).min(self.longest);
        pause
    }

    /// Starts with the first pause again, after a success.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

/// A duration between half of `longest` and `longest`.
pub fn jittered(longest: Duration) -> Duration {
    // Without random numbers all replicas wait equally long, which is acceptable.
    let random = getrandom::u32().unwrap_or(u32::MAX);
    longest.mul_f64(0.5 + f64::from(random) / (2.0 * f64::from(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_again() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(3));
        for longest in [1, 2, 3, 3].map(Duration::from_secs) {
            let pause = backoff.pause();
            assert!(pause >= longest / 2 && pause <= longest, "{pause:?} is not within {longest:?}");
        }
        backoff.reset();
        assert!(backoff.pause() <= Duration::from_secs(1));
    }

    #[test]
    fn pauses_differ() {
        let pauses: std::collections::HashSet<Duration> =
            std::iter::repeat_with(|| jittered(Duration::from_secs(10))).take(16).collect();
        assert!(pauses.len() > 1);
    }
}
