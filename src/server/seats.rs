//! The places that connections take. When there are more connections than places, the one that is idle longest is closed.
//!
//! What always holds: accepting never waits for a place, so clients that connect and stay silent cannot exclude others; a
//! connection whose request is complete and not yet answered is never closed for another one. What a client sends does not
//! count as activity until a request is complete: single bytes do not keep a place.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;

/// All places.
#[derive(Debug)]
pub(super) struct Seats {
    places: usize,
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
    pub(super) fn new(places: usize) -> Arc<Self> {
        Arc::new(Self { places, state: Mutex::default() })
    }

    /// Takes a place for a new connection, which is idle at first. Over the limit the connection that is idle longest is
    /// closed: its [`Seat::closed`] is cancelled.
    pub(super) fn take(self: &Arc<Self>) -> Seat {
        let seat = Seat { seats: Arc::clone(self), closed: CancellationToken::new(), turn: Mutex::new(None) };
        seat.rest();
        let mut state = self.state();
        state.open += 1;
        if state.open > self.places {
            close_longest_idle(&mut state);
        }
        drop(state);
        seat
    }

    /// Closes the connection that is idle longest: the process has run out of something else.
    pub(super) fn make_room(&self) {
        close_longest_idle(&mut self.state());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn close_longest_idle(state: &mut State) {
    if let Some((_, closed)) = state.idle.pop_first() {
        closed.cancel();
    }
}

/// One connection's place. It is returned when this is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Arc<Seats>,
    /// Cancelled when the place is needed for another connection.
    pub(super) closed: CancellationToken,
    /// The key among the idle connections.
    turn: Mutex<Option<u64>>,
}

impl Seat {
    /// The connection is idle from now on.
    pub(super) fn rest(&self) {
        let mut turn = self.turn();
        let mut state = self.seats.state();
        if let Some(before) = turn.take() {
            state.idle.remove(&before);
        }
        let next = state.next;
        state.next += 1;
        state.idle.insert(next, self.closed.clone());
        *turn = Some(next);
    }

    /// The connection is idle again, if it was not idle already.
    pub(super) fn vacate(&self) {
        if self.turn().is_none() {
            self.rest();
        }
    }

    /// A complete request is being answered: the connection is not idle.
    pub(super) fn occupy(&self) {
        if let Some(turn) = self.turn().take() {
            self.seats.state().idle.remove(&turn);
        }
    }

    fn turn(&self) -> MutexGuard<'_, Option<u64>> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.occupy();
        self.seats.state().open -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(seats: &[&Seat]) -> Vec<bool> {
        seats.iter().map(|seat| seat.closed.is_cancelled()).collect()
    }

    #[test]
    fn the_connection_that_is_idle_longest_makes_room() {
        let seats = Seats::new(3);
        let (first, second, third) = (seats.take(), seats.take(), seats.take());
        first.occupy();
        first.rest();
        let fourth = seats.take();
        assert_eq!(closed(&[&first, &second, &third, &fourth]), [false, true, false, false]);
        drop(second);
        third.occupy();
        let fifth = seats.take();
        assert_eq!(closed(&[&first, &third, &fourth, &fifth]), [true, false, false, false]);
    }

    #[test]
    fn a_connection_that_is_being_answered_is_never_closed_for_another() {
        let seats = Seats::new(1);
        let busy = seats.take();
        busy.occupy();
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
            seat.occupy();
            seat.rest();
        }
        let state = seats.state();
        assert_eq!((state.open, state.idle.len()), (0, 0));
    }
}
