//! A limit on open connections: each takes a seat. When there are more connections than seats, the one that is idle longest is
//! closed.
//!
//! Invariants: accepting never waits for a seat, so clients that connect and stay silent cannot exclude others; a
//! connection whose request is complete and not yet answered is never closed for another one. What a client sends does not
//! count as activity until a request is complete: single bytes do not keep a seat.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The seats of one listener.
#[derive(Debug)]
pub(super) struct Seats {
    limit: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: usize,
    /// The idle connections, in the order in which they became idle.
    idle: BTreeMap<u64, CancellationToken>,
    next: u64,
}

impl Seats {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, state: Mutex::default() })
    }

    /// Takes a seat for a new connection, which is idle at first. Over the limit the connection that is idle longest is
    /// closed: its [`Seat::close_requested`] is cancelled.
    pub(super) fn take(self: &Arc<Self>) -> Seat {
        let seat =
            Seat { seats: Arc::clone(self), close_requested: CancellationToken::new(), idle_key: Mutex::new(None) };
        seat.mark_idle();
        let mut state = self.state.lock();
        state.open += 1;
        if state.open > self.limit {
            close_longest_idle(&mut state);
        }
        drop(state);
        seat
    }

    /// Closes the connection that is idle longest: the process has run out of something else, for example of file descriptors.
    pub(super) fn make_room(&self) {
        close_longest_idle(&mut self.state.lock());
    }
}

fn close_longest_idle(state: &mut State) {
    if let Some((_, closed)) = state.idle.pop_first() {
        closed.cancel();
    }
}

/// One connection's seat, released on drop.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Arc<Seats>,
    /// Cancelled when the seat is needed for another connection.
    pub(super) close_requested: CancellationToken,
    /// The key among the idle connections.
    idle_key: Mutex<Option<u64>>,
}

impl Seat {
    /// The connection is idle from now on.
    pub(super) fn mark_idle(&self) {
        let mut idle_key = self.idle_key.lock();
        let mut state = self.seats.state.lock();
        if let Some(before) = idle_key.take() {
            state.idle.remove(&before);
        }
        let next = state.next;
        state.next += 1;
        state.idle.insert(next, self.close_requested.clone());
        *idle_key = Some(next);
    }

    /// The connection is idle again, if it was not idle already.
    pub(super) fn mark_idle_if_busy(&self) {
        if self.idle_key.lock().is_none() {
            self.mark_idle();
        }
    }

    /// A complete request is being answered: the connection is not idle.
    pub(super) fn mark_busy(&self) {
        if let Some(key) = self.idle_key.lock().take() {
            self.seats.state.lock().idle.remove(&key);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.mark_busy();
        self.seats.state.lock().open -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(seats: &[&Seat]) -> Vec<bool> {
        seats.iter().map(|seat| seat.close_requested.is_cancelled()).collect()
    }

    #[test]
    fn the_connection_that_is_idle_longest_makes_room() {
        let seats = Seats::new(3);
        let (first, second, third) = (seats.take(), seats.take(), seats.take());
        first.mark_busy();
        first.mark_idle();
        let fourth = seats.take();
        assert_eq!(closed(&[&first, &second, &third, &fourth]), [false, true, false, false]);
        drop(second);
        third.mark_busy();
        let fifth = seats.take();
        assert_eq!(closed(&[&first, &third, &fourth, &fifth]), [true, false, false, false]);
    }

    #[test]
    fn a_connection_that_is_being_answered_is_never_closed_for_another() {
        let seats = Seats::new(1);
        let busy = seats.take();
        busy.mark_busy();
        let next = seats.take();
        assert_eq!(closed(&[&busy, &next]), [false, true]);
        drop((busy, next));
        let last = seats.take();
        assert_eq!(closed(&[&last]), [false]);
    }

    #[test]
    fn a_connection_that_ends_leaves_nothing_behind() {
        let seats = Seats::new(2);
        for _ in 0..3 {
            let seat = seats.take();
            seat.mark_busy();
            seat.mark_idle();
        }
        let state = seats.state.lock();
        assert_eq!((state.open, state.idle.len()), (0, 0));
    }
}
