//! When an agent asks again.
//!
//! Pure: random numbers and what is left of the tickets' life are values. Invariants: a wait after tickets is at most half of their life, but at
//! least [`SHORTEST`] or the check interval, whichever is shorter, and never longer than the check interval; a wait after a failure follows [`PAUSES`] and `Retry-After` alone.

use std::time::Duration;

use crate::api::RESERVE;

/// The shortest wait where tickets live too short or, by this node's clock, have expired.
const SHORTEST: Duration = Duration::from_secs(10);

/// The first and the longest pause after failures.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// The longest `Retry-After` that is honoured.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(300);

pub struct Schedule {
    check_interval: Duration,
    /// From 0 to 1.
    random: fn() -> f64,
    /// After the next failure.
    pause: Duration,
}

impl Schedule {
    pub fn new(check_interval: Duration, random: fn() -> f64) -> Self {
        Self { check_interval, random, pause: PAUSES[0] }
    }

    /// How long to wait after tickets that live for `life`, where the broker asks for the next request after `asked`.
    pub fn after_tickets(&mut self, life: Duration, asked: Duration) -> Duration {
        self.pause = PAUSES[0];
        let longest = (life / 2).min(life.saturating_sub(RESERVE)).min(asked).min(self.check_interval);
        self.jittered(longest).max(SHORTEST.min(self.check_interval))
    }

    pub fn after_failure(&mut self, retry_after: Option<Duration>) -> Duration {
        let pause = self.jittered(self.pause);
        self.pause = (self.pause * 2).min(PAUSES[1]);
        retry_after.unwrap_or_default().min(LONGEST_RETRY_AFTER) + pause
    }

    /// From four fifths of the wait to all of it, so that pods that started together do not ask together.
    fn jittered(&self, longest: Duration) -> Duration {
        longest.mul_f64(0.8 + 0.2 * (self.random)())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minutes(number: u64) -> Duration {
        Duration::from_secs(60 * number)
    }

    fn schedule(check_interval: Duration) -> Schedule {
        Schedule::new(check_interval, || 1.0)
    }

    #[test]
    fn tickets_are_renewed_at_half_of_their_life_or_sooner() {
        for (life, asked, check, wait) in [
            // At half of what was given.
            (60, 60, 1000, 30),
            // As the broker asks.
            (60, 7, 1000, 7),
            // To see what has changed.
            (60, 60, 5, 5),
            // Never with less than two minutes left.
            (3, 3, 1000, 1),
        ] {
            assert_eq!(schedule(minutes(check)).after_tickets(minutes(life), minutes(asked)), minutes(wait));
        }
        // Tickets without life are no reason to ask without end.
        for life in [0, 1, 2] {
            assert_eq!(schedule(minutes(5)).after_tickets(minutes(life), minutes(0)), SHORTEST);
        }
        let second = Duration::from_secs(1);
        assert_eq!(schedule(second).after_tickets(minutes(60), minutes(30)), second);
    }

    #[test]
    fn pauses_double_up_to_a_minute_and_begin_again_after_tickets() {
        let mut schedule = schedule(minutes(5));
        let pauses = |schedule: &mut Schedule| [(); 8].map(|()| schedule.after_failure(None).as_secs());
        assert_eq!(pauses(&mut schedule), [1, 2, 4, 8, 16, 32, 60, 60]);
        schedule.after_tickets(minutes(60), minutes(30));
        assert_eq!(pauses(&mut schedule), [1, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn the_broker_is_left_alone_as_long_as_it_asks_within_a_bound() {
        let mut schedule = schedule(minutes(5));
        assert_eq!(schedule.after_failure(Some(Duration::from_secs(20))), Duration::from_secs(20 + 1));
        assert_eq!(schedule.after_failure(Some(Duration::MAX)), LONGEST_RETRY_AFTER + Duration::from_secs(2));
    }

    #[test]
    fn jitter_makes_every_wait_shorter_by_a_fifth_at_most() {
        let mut schedule = Schedule::new(minutes(1000), || 0.0);
        assert_eq!(schedule.after_tickets(minutes(60), minutes(60)), minutes(24));
        assert_eq!(schedule.after_failure(None), Duration::from_millis(800));
    }
}
