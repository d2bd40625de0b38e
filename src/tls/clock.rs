//! What time it is, as a value: certificates live for months, and tests must see years pass in seconds.

use std::{fmt, sync::Arc, time::SystemTime};

/// A source of the time of day.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    /// The system's clock.
    #[must_use]
    pub fn system() -> Self {
        Self::new(SystemTime::now)
    }

    /// Another clock.
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The time of day.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}
