//! The room of a domain: how many requests are given tickets of its accounts at once, and which of those that wait is next.
//!
//! Invariants: a namespace takes a place only while it holds fewer than are free, so no namespace has all of them. The waiting namespace with the
//! fewest places is next, and within it the request that came first. A request that its caller drops leaves the queue. A namespace has about
//! [`Room::most`] requests here at most, so its queue leaves connections to the others.

use std::{future::ready, sync::Arc, time::Duration};

use gmsa_edge::server::{Place, Places};
use parking_lot::Mutex;
use tokio::time::Instant;

/// A namespace may take a place while it holds fewer than this many times the free places.
const SHARE: usize = 1;

/// The requests for tickets of a domain's accounts.
pub struct Room {
    /// Requests of one namespace, those that wait included.
    most: usize,
    size: usize,
    places: Arc<Places<Box<str>>>,
    /// How long a request holds its place: an average that follows the last ones.
    held_for: Mutex<Duration>,
}

/// A request's place, until it is dropped.
pub struct RoomPlace {
    room: Arc<Room>,
    _place: Arc<Place<Box<str>>>,
    since: Instant,
}

impl Room {
    pub fn new(size: usize, most: usize) -> Self {
        Self { most, size, places: Places::new(size, SHARE, usize::MAX), held_for: Mutex::default() }
    }

    /// How many places are taken.
    pub fn taken(&self) -> usize {
        self.places.held()
    }

    /// Waits for a place until `deadline`.
    ///
    /// # Errors
    /// Where the namespace has too many requests here, or no place is free in time: after how long one is expected.
    pub async fn enter(self: &Arc<Self>, namespace: &str, deadline: Instant) -> Result<RoomPlace, Duration> {
        let namespace = Box::from(namespace);
        if self.places.of(&namespace) >= self.most {
            return Err(self.expected());
        }
        let place = self.places.place(namespace, ready(Ok(1)), deadline).await.map_err(|_| self.expected())?;
        Ok(RoomPlace { room: Arc::clone(self), _place: place, since: Instant::now() })
    }

    /// How long a request that comes now is expected to wait.
    fn expected(&self) -> Duration {
        let rounds = u32::try_from(self.places.ready() / self.size.max(1) + 1).unwrap_or(u32::MAX);
        self.held_for.lock().saturating_mul(rounds)
    }
}

impl Drop for RoomPlace {
    fn drop(&mut self) {
        let mut held_for = self.room.held_for.lock();
        *held_for = (*held_for * 7 + self.since.elapsed()) / 8;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

    use std::pin::Pin;

    use futures::FutureExt as _;

    use super::*;

    type Waiting<'r> = Pin<Box<dyn Future<Output = Result<RoomPlace, Duration>> + 'r>>;

    fn room(places: usize, most: usize) -> Arc<Room> {
        Arc::new(Room::new(places, most))
    }

    fn enter<'r>(room: &'r Arc<Room>, namespace: &'r str) -> Waiting<'r> {
        let deadline = Instant::now() + Duration::from_secs(10);
        Box::pin(async move { room.enter(namespace, deadline).await })
    }

    /// The places that are taken at once, and the requests that wait.
    fn crowd<'r>(room: &'r Arc<Room>, namespace: &'r str, number: usize) -> (Vec<RoomPlace>, Vec<Waiting<'r>>) {
        let (mut places, mut waiting) = (Vec::new(), Vec::new());
        for _ in 0..number {
            let mut request = enter(room, namespace);
            match (&mut request).now_or_never() {
                Some(place) => places.push(place.unwrap()),
                None => waiting.push(request),
            }
        }
        (places, waiting)
    }

    #[tokio::test(start_paused = true)]
    async fn one_namespace_leaves_places_to_the_others() {
        let room = room(40, 100);
        let (crowd_places, waiting) = crowd(&room, "crowd", 100);
        assert_eq!((crowd_places.len(), waiting.len(), room.taken()), (20, 80, 20));
        let (other, others_waiting) = crowd(&room, "other", 20);
        assert_eq!((other.len(), others_waiting.len()), (10, 10));
        assert!(enter(&room, "third").now_or_never().unwrap().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn the_namespace_with_the_fewest_places_is_next_and_within_it_the_first_request() {
        let room = room(2, 100);
        let (mut places, mut crowd_waits) = crowd(&room, "crowd", 3);
        let (others, mut other_waits) = crowd(&room, "other", 2);
        assert_eq!((places.len(), others.len()), (1, 1));
        drop(places.pop());
        // Each namespace holds what the share lets it; the first of the crowd is the one without a place.
        let next = (&mut crowd_waits[0]).now_or_never().unwrap().unwrap();
        assert!((&mut crowd_waits[1]).now_or_never().is_none());
        drop(others);
        assert!((&mut other_waits[0]).now_or_never().unwrap().is_ok());
        drop(next);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_until_its_deadline_and_one_that_leaves_makes_room() {
        let room = room(2, 2);
        let (places, mut waiting) = crowd(&room, "crowd", 2);
        assert_eq!((places.len(), waiting.len()), (1, 1));
        // One more than the namespace may have here.
        assert_eq!(enter(&room, "crowd").now_or_never().unwrap().err(), Some(Duration::ZERO));
        drop(waiting.pop());
        let (_, mut waiting) = crowd(&room, "crowd", 1);
        let began = Instant::now();
        assert!(waiting.pop().unwrap().await.is_err());
        assert_eq!(began.elapsed(), Duration::from_secs(10));
        drop(places);
        assert!(enter(&room, "crowd").now_or_never().unwrap().is_ok());
        assert_eq!((room.taken(), room.places.of(&Box::from("crowd"))), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn the_expected_wait_follows_how_long_requests_hold_their_places() {
        let room = room(2, 3);
        for _ in 0..64 {
            let _place = enter(&room, "crowd").await.unwrap();
            tokio::time::advance(Duration::from_secs(4)).await;
        }
        let (_places, _waiting) = crowd(&room, "crowd", 3);
        // Two wait, each for one of two places.
        let Some(expected) = enter(&room, "crowd").now_or_never().unwrap().err() else { panic!() };
        assert_eq!((expected + Duration::from_millis(500)).as_secs(), 8);
    }
}
