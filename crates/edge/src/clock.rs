//! Moments by several clocks: no single clock is right about how long something has lasted.
//!
//! | clock | a suspended node | a virtual machine restored from a snapshot | the time of day is set |
//! |---|---|---|---|
//! | wall: the time of day | counts | counts, once the time is corrected | jumps |
//! | boot: `CLOCK_BOOTTIME` | counts | stands still | unaffected |
//! | monotonic: `CLOCK_MONOTONIC`, and tokio's paused clock | stands still | stands still | unaffected |
//!
//! What was read must not be used for too long: [`Moment::longest_since`]. What others must have had the time to learn must not be assumed too
//! early: [`Moment::running_since`].

use std::{
    ops::Add,
    sync::Arc,
    time::{Duration, SystemTime},
};

use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

/// The time of day. Certificates live for months, and tests let years pass in seconds.
pub type Clock = Arc<dyn Fn() -> Moment + Send + Sync>;

/// One moment, by three clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The time of day.
    pub wall: SystemTime,
    /// The time since the machine started, the time in which it was suspended included.
    pub boot: Duration,
    /// Stands still while the machine is suspended.
    pub monotonic: Instant,
}

impl Moment {
    pub fn now() -> Self {
        let boot = clock_gettime(ClockId::Boottime);
        let boot = Duration::try_from(boot).unwrap_or_default();
        Self { wall: SystemTime::now(), boot, monotonic: Instant::now() }
    }

    /// The time since `earlier`, by the clock that counted most. A clock that was set back counts nothing.
    pub fn longest_since(&self, earlier: &Self) -> Duration {
        let wall = self.wall.duration_since(earlier.wall).unwrap_or_default();
        wall.max(self.boot.saturating_sub(earlier.boot)).max(self.running_since(earlier))
    }

    /// The time since `earlier` in which this machine was running. Setting the time of day changes nothing.
    pub fn running_since(&self, earlier: &Self) -> Duration {
        self.monotonic.saturating_duration_since(earlier.monotonic)
    }
}

/// A later moment, by all clocks.
impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self { wall: self.wall + time, boot: self.boot + time, monotonic: self.monotonic + time }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn each_clock_that_goes_on_counts_and_one_that_is_set_back_does_not() {
        let start = Moment::now();
        let running = start + HOUR;
        let suspended = Moment { boot: running.boot + HOUR, ..running };
        let restored = Moment { wall: running.wall + 2 * HOUR, ..running };
        let set_back = Moment { wall: running.wall - 24 * HOUR, ..running };
        let measured = [running, suspended, restored, set_back]
            .map(|later| (later.longest_since(&start), later.running_since(&start)));
        assert_eq!(measured, [(HOUR, HOUR), (2 * HOUR, HOUR), (3 * HOUR, HOUR), (HOUR, HOUR)]);
        assert_eq!((start.longest_since(&running), start.running_since(&running)), (Duration::ZERO, Duration::ZERO));
    }

    #[test]
    fn all_clocks_go_on() {
        let start = Moment::now();
        while Moment::now().boot == start.boot {}
        let later = Moment::now();
        assert!(later.wall > start.wall && later.monotonic > start.monotonic);
    }
}
