//! The open connections of a listener, and which one is closed for a new one.
//!
//! Invariants: over the limit the connection that is idle longest makes room, so clients that connect and stay silent exclude
//! no others; one whose request is being decided never does. What a client sends or reads does not count as activity:
//! a connection is idle until its request is decided, and again from its answer on, read or not. A complete request makes it the last
//! of those to make room.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The open connections of one listener.
#[derive(Debug)]
pub(super) struct Connections {
    limit: usize,
    /// How long a connection is never closed for another one.
    moment: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: usize,
    next: u64,
    /// The idle connections, in the order in which they became idle.
    idle: BTreeMap<u64, (Instant, CancellationToken)>,
}

impl State {
    fn insert_idle(&mut self, close: CancellationToken) -> u64 {
        self.next += 1;
        self.idle.insert(self.next, (Instant::now(), close));
        self.next
    }
}

impl Connections {
    pub(super) fn new(limit: usize, moment: Duration) -> Arc<Self> {
        Arc::new(Self { limit, moment, state: Mutex::default() })
    }

    /// Whether there is room for one more: below the limit, or because the connection that is idle longest is closed for it.
    pub(super) fn make_room(&self) -> bool {
        let is_full = self.state.lock().open >= self.limit;
        !is_full || self.close_longest_idle()
    }

    /// Closes the connection that is idle longest, where one is idle for more than a moment.
    pub(super) fn close_longest_idle(&self) -> bool {
        let mut state = self.state.lock();
        let Some(oldest) = state.idle.first_entry().filter(|oldest| oldest.get().0.elapsed() >= self.moment) else {
            return false;
        };
        oldest.remove().1.cancel();
        true
    }

    /// Counts a new connection, which is idle at first.
    pub(super) fn open(self: &Arc<Self>) -> Arc<Open> {
        let mut state = self.state.lock();
        state.open += 1;
        let close = CancellationToken::new();
        let key = AtomicU64::new(state.insert_idle(close.clone()));
        Arc::new(Open { connections: Arc::clone(self), close, key })
    }
}

/// An open connection. It is counted until this is dropped.
#[derive(Debug)]
pub(super) struct Open {
    connections: Arc<Connections>,
    /// Cancelled when the connection has to make room.
    pub(super) close: CancellationToken,
    /// The key among the idle connections, while it is one of them.
    key: AtomicU64,
}

impl Open {
    /// The connection is not idle until what is returned is dropped.
    pub(super) fn busy(self: &Arc<Self>) -> Busy {
        self.connections.state.lock().idle.remove(&self.key.load(Relaxed));
        Busy(Arc::clone(self))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut state = self.connections.state.lock();
        state.idle.remove(&self.key.load(Relaxed));
        state.open -= 1;
    }
}

/// A connection whose request is being decided.
#[derive(Debug)]
pub(super) struct Busy(Arc<Open>);

impl Drop for Busy {
    fn drop(&mut self) {
        let Open { connections, close, key } = &*self.0;
        key.store(connections.state.lock().insert_idle(close.clone()), Relaxed);
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
    async fn the_connection_that_is_idle_longest_makes_room_after_a_moment() {
        let connections = Connections::new(3, MOMENT);
        let [first, second, third] = [(); 3].map(|()| connections.open());
        drop(first.busy());
        assert!(!connections.make_room());
        advance(MOMENT).await;
        assert!(connections.make_room());
        let fourth = connections.open();
        assert_eq!(closed(&[&first, &second, &third, &fourth]), [false, true, false, false]);
        drop(second);
        let busy = third.busy();
        assert!(connections.make_room());
        assert_eq!(closed(&[&first, &third, &fourth]), [true, false, false]);
        drop((first, fourth, busy));
        assert!(connections.make_room());
        assert_eq!(closed(&[&third]), [false]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_whose_request_is_decided_is_never_closed_for_another() {
        let connections = Connections::new(1, MOMENT);
        let open = connections.open();
        let busy = open.busy();
        advance(MOMENT).await;
        assert!(!connections.make_room());
        drop(busy);
        assert!(!connections.make_room());
        advance(MOMENT).await;
        assert!(connections.make_room());
        assert_eq!(closed(&[&open]), [true]);
    }

    #[test]
    fn a_connection_that_ends_leaves_nothing_behind() {
        let connections = Connections::new(2, MOMENT);
        for _ in 0..3 {
            drop(connections.open().busy());
        }
        let state = connections.state.lock();
        assert_eq!((state.open, state.idle.len()), (0, 0));
    }
}
