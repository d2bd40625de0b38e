//! The idle connections of a listener, and which one is closed for a new one.
//!
//! Invariants: over the limit the connection that is idle longest makes room, so clients that connect and stay silent exclude
//! no others; one whose request is being decided never does. What a client sends or reads does not count as activity:
//! a connection is idle until its request is decided, and again from its answer on, read or not. A complete request makes it the last
//! of those to make room.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The connections of one listener that are idle.
#[derive(Debug)]
pub(super) struct Connections {
    /// How long a connection is never closed for another one.
    moment: Duration,
    /// Since when each is idle, and what closes it: the one that is idle longest first.
    idle: Mutex<VecDeque<(Instant, CancellationToken)>>,
}

impl Connections {
    pub(super) fn new(moment: Duration) -> Arc<Self> {
        Arc::new(Self { moment, idle: Mutex::default() })
    }

    /// A new connection, which is idle at first.
    pub(super) fn open(self: &Arc<Self>) -> Arc<Open> {
        let open = Open { connections: Arc::clone(self), close: CancellationToken::new() };
        self.add(&open.close);
        Arc::new(open)
    }

    /// Closes the connection that is idle longest, where one is idle for more than a moment.
    pub(super) fn close_longest_idle(&self) -> bool {
        let mut idle = self.idle.lock();
        let may_close = idle.front().is_some_and(|(since, _)| since.elapsed() >= self.moment);
        if may_close && let Some((_, close)) = idle.pop_front() {
            close.cancel();
        }
        may_close
    }

    fn add(&self, close: &CancellationToken) {
        self.idle.lock().push_back((Instant::now(), close.clone()));
    }

    fn remove(&self, close: &CancellationToken) {
        self.idle.lock().retain(|(_, idle)| idle != close);
    }
}

/// An open connection, until this is dropped.
#[derive(Debug)]
pub(super) struct Open {
    connections: Arc<Connections>,
    /// Cancelled when the connection has to make room.
    pub(super) close: CancellationToken,
}

impl Open {
    /// The connection is not idle until what is returned is dropped.
    pub(super) fn busy(self: &Arc<Self>) -> Busy {
        self.connections.remove(&self.close);
        Busy(Arc::clone(self))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.connections.remove(&self.close);
    }
}

/// A connection whose request is being decided.
#[derive(Debug)]
pub(super) struct Busy(Arc<Open>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.connections.add(&self.0.close);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const MOMENT: Duration = Duration::from_millis(50);

    fn closed(open: &[&Arc<Open>]) -> Vec<bool> {
        open.iter().map(|open| open.close.is_cancelled()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_connection_that_is_idle_longest_is_closed_after_a_moment() {
        let connections = Connections::new(MOMENT);
        let [first, second, third] = [(); 3].map(|()| connections.open());
        drop(first.busy());
        assert!(!connections.close_longest_idle());
        advance(MOMENT).await;
        assert!(connections.close_longest_idle());
        let fourth = connections.open();
        assert_eq!(closed(&[&first, &second, &third, &fourth]), [false, true, false, false]);
        let _busy = third.busy();
        assert!(connections.close_longest_idle());
        assert_eq!(closed(&[&first, &third, &fourth]), [true, false, false]);
        // The fourth is idle for less than a moment, and the others are closed or busy.
        assert!(!connections.close_longest_idle());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_whose_request_is_decided_is_never_closed_for_another() {
        let connections = Connections::new(MOMENT);
        let open = connections.open();
        let busy = open.busy();
        advance(MOMENT).await;
        assert!(!connections.close_longest_idle());
        drop(busy);
        assert!(!connections.close_longest_idle());
        advance(MOMENT).await;
        assert!(connections.close_longest_idle());
        assert_eq!(closed(&[&open]), [true]);
    }

    #[test]
    fn a_connection_that_ends_leaves_nothing_behind() {
        let connections = Connections::new(MOMENT);
        for _ in 0..3 {
            drop(connections.open().busy());
        }
        assert!(connections.idle.lock().is_empty());
    }
}
