//! When an agent asks again.
//!
//! Pure: random numbers and what is left of the tickets' life are values. Invariants: a wait after tickets is at most half of their life, but at
//! least [`SHORTEST`] or the check interval, whichever is shorter, and never longer than the check interval; a wait after a failure follows
//! [`PAUSES`] and `Retry-After` alone, and is spread over its whole length: agents that were refused together come back one after the other.

use std::time::Duration;

use crate::api::RESERVE;

/// The shortest wait where tickets live too short or, by this node's clock, have expired.
const SHORTEST: Duration = Duration::from_secs(10);

/// The first and the longest pause after failures.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// The longest `Retry-After` that is honoured.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(300);

/// How long the broker asks to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryAfter {
    pub wait: Duration,
    /// Whether the broker expects to have room for the request then. Otherwise something has to be repaired first, and nobody knows when.
    pub is_for_room: bool,
}

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

    /// How long to wait after a failure: from half to one and a half of what is expected.
    pub fn after_failure(&mut self, retry_after: Option<RetryAfter>) -> Duration {
        let expected = match retry_after {
            // Longer pauses would leave the broker idle.
            Some(RetryAfter { wait, is_for_room: true }) => wait.clamp(PAUSES[0], LONGEST_RETRY_AFTER),
            other => {
                let pause = self.pause;
                self.pause = (pause * 2).min(PAUSES[1]);
                other.map_or(Duration::ZERO, |RetryAfter { wait, .. }| wait.min(LONGEST_RETRY_AFTER)) + pause
            }
        };
        expected.mul_f64(0.5 + (self.random)())
    }

    /// From four fifths of a wait to all of it, so that pods that started together do not ask together.
    fn jittered(&self, longest: Duration) -> Duration {
        longest.mul_f64(0.8 + 0.2 * (self.random)())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on must fail")]

    use std::{cell::Cell, cmp::Reverse, collections::BinaryHeap};

    use super::*;

    fn minutes(number: u64) -> Duration {
        Duration::from_secs(60 * number)
    }

    /// Without jitter after tickets.
    fn schedule(check_interval: Duration) -> Schedule {
        Schedule::new(check_interval, || 1.0)
    }

    /// Without jitter after failures.
    fn failing() -> Schedule {
        Schedule::new(minutes(5), || 0.5)
    }

    fn told(seconds: u64, is_for_room: bool) -> RetryAfter {
        RetryAfter { wait: Duration::from_secs(seconds), is_for_room }
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
        let mut schedule = failing();
        let pauses = |schedule: &mut Schedule| [(); 8].map(|()| schedule.after_failure(None).as_secs());
        assert_eq!(pauses(&mut schedule), [1, 2, 4, 8, 16, 32, 60, 60]);
        schedule.after_tickets(minutes(60), minutes(30));
        assert_eq!(pauses(&mut schedule), [1, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn the_broker_is_left_alone_as_long_as_it_asks_within_a_bound() {
        let mut schedule = failing();
        let mut waits = |told| schedule.after_failure(Some(told)).as_secs();
        assert_eq!([told(20, false), told(20, false)].map(&mut waits), [20 + 1, 20 + 2]);
        assert_eq!(waits(told(u64::MAX, false)), 300 + 4);
        // If it expects to have room, that is the whole wait.
        assert_eq!([told(20, true), told(20, true), told(0, true), told(u64::MAX, true)].map(waits), [20, 20, 1, 300]);
        assert_eq!(schedule.after_failure(None).as_secs(), 8);
    }

    #[test]
    fn jitter_spreads_a_wait_after_tickets_over_a_fifth_and_one_after_a_failure_over_all_of_it() {
        for (random, tickets, failure) in [(0.0, 24 * 60, 10), (1.0, 30 * 60, 30)] {
            let random = if random < 0.5 { || 0.0 } else { || 1.0 };
            let mut schedule = Schedule::new(minutes(1000), random);
            assert_eq!(schedule.after_tickets(minutes(60), minutes(60)), Duration::from_secs(tickets));
            assert_eq!(schedule.after_failure(Some(told(20, true))), Duration::from_secs(failure));
        }
    }

    thread_local! {
        static STATE: Cell<u64> = const { Cell::new(1) };
    }

    /// From 0 to 1, the same in each run (the constants are those of Knuth's MMIX).
    fn random() -> f64 {
        let next = STATE.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        STATE.set(next);
        f64::from(u32::try_from(next >> 32).unwrap()) / f64::from(u32::MAX)
    }

    /// When the last of `agents` that ask within a second has tickets. The broker serves one after the other at this rate; where more than
    /// `most` wait, it refuses, and says when these are served.
    fn last_served(agents: u32, rate: u32, most: u32) -> Duration {
        let mut schedules: Vec<_> = (0..agents).map(|_| Schedule::new(minutes(5), random)).collect();
        let mut asking: BinaryHeap<_> =
            (0..agents).map(|agent| Reverse((Duration::from_secs_f64(random()), agent))).collect();
        let mut free = Duration::ZERO;
        while let Some(Reverse((now, agent))) = asking.pop() {
            free = free.max(now);
            let queue = free.saturating_sub(now);
            if queue < Duration::from_secs(1) * most / rate {
                free += Duration::from_secs(1) / rate;
                continue;
            }
            let told = told(queue.as_secs() + 1, true);
            asking.push(Reverse((now + schedules[agent as usize].after_failure(Some(told)), agent)));
        }
        free
    }

    #[test]
    fn the_last_of_a_restart_storm_waits_little_longer_than_the_broker_needs() {
        for (rate, most) in [(10, 40), (20, 40), (20, 80), (100, 40)] {
            let (last, needed) = (last_served(600, rate, most), Duration::from_secs(600) / rate);
            assert!(last < needed.mul_f64(1.5), "{rate} a second, room for {most}: {last:?} instead of {needed:?}");
        }
    }
}
