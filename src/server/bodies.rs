//! The memory that reviews take: their bodies while they arrive, what reading them costs, and their answers.
//!
//! What always holds: what is counted is what is held, from the bytes as they arrive; an announced length costs nothing.
//! Small reviews have a share of their own, which large ones cannot take. A body that is still arriving keeps no other one
//! out: where a share is full, the body in it that began first is dropped, and its client gets a 503.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;

use crate::config::ReviewMemory;

/// The longest body or answer that is counted in the share of small reviews, in bytes. A pod's review has 3 to 30 KiB.
pub const SMALL: usize = 64 * 1024;

/// What each byte of a body costs: the byte itself, room for its buffer to grow, and what is read from it.
const COST_PER_BYTE: usize = 2;

/// What a review costs besides its body: the buffers of its connection and the look-ups.
const COST_PER_REVIEW: usize = 4 * 1024;

/// Counts the memory that reviews take. Clones count together.
#[derive(Clone, Debug)]
pub(super) struct Bodies(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    small: Share,
    large: Share,
    next: u64,
}

/// The memory that reviews of one size may take, in bytes.
#[derive(Debug, Default)]
struct Share {
    size: usize,
    taken: usize,
    /// The bodies that are arriving, in the order in which they began. Their cost is part of what is taken.
    arriving: BTreeMap<u64, Vec<u8>>,
}

/// There is no room for the review.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

impl Share {
    /// Counts `cost` bytes. Where there is no room, bodies that are still arriving are dropped.
    fn take(&mut self, cost: usize) -> Result<(), Full> {
        while self.taken + cost > self.size {
            let (_, body) = self.arriving.pop_first().ok_or(Full)?;
            self.taken -= cost_of(&body);
        }
        self.taken += cost;
        Ok(())
    }
}

fn cost_of(body: &[u8]) -> usize {
    COST_PER_REVIEW + COST_PER_BYTE * body.len()
}

impl State {
    fn share(&mut self, length: usize) -> &mut Share {
        if length <= SMALL { &mut self.small } else { &mut self.large }
    }

    /// Takes an arriving body out. Its cost is not counted any more.
    fn remove(&mut self, number: u64) -> Option<Vec<u8>> {
        [&mut self.small, &mut self.large].into_iter().find_map(|share| {
            let body = share.arriving.remove(&number)?;
            share.taken -= cost_of(&body);
            Some(body)
        })
    }
}

impl Bodies {
    pub(super) fn new(memory: ReviewMemory) -> Self {
        let share = |size| Share { size, ..Share::default() };
        let state = State { small: share(memory.small), large: share(memory.large), next: 0 };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Begins a body. `announced` is its length where the client says it.
    pub(super) fn begin(&self, announced: Option<usize>) -> Result<Arriving, Full> {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.small.take(cost_of(&[]))?;
        state.small.arriving.insert(number, Vec::new());
        Ok(Arriving { bodies: self.clone(), number, announced })
    }

    fn take(&self, length: usize, cost: usize) -> Result<Taken, Full> {
        self.state().share(length).take(cost)?;
        Ok(Taken { bodies: self.clone(), length, cost })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A body of which some is still to come.
#[derive(Debug)]
pub(super) struct Arriving {
    bodies: Bodies,
    number: u64,
    announced: Option<usize>,
}

impl Arriving {
    /// Adds bytes that have arrived.
    pub(super) fn add(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let mut state = self.bodies.state();
        let mut body = state.remove(self.number).ok_or(Full)?;
        if body.len() <= SMALL && body.len() + bytes.len() > SMALL {
            // One buffer for all of a large body. Its pages are not touched, and so not held, before bytes are in them.
            body.reserve_exact(self.announced.unwrap_or(0).saturating_sub(body.len()));
        }
        let share = state.share(body.len() + bytes.len());
        share.take(COST_PER_REVIEW + COST_PER_BYTE * (body.len() + bytes.len()))?;
        body.extend_from_slice(bytes);
        share.arriving.insert(self.number, body);
        Ok(())
    }

    /// All bytes have arrived.
    pub(super) fn complete(self) -> Result<Complete, Full> {
        let mut state = self.bodies.state();
        let body = state.remove(self.number).ok_or(Full)?;
        let (length, cost) = (body.len(), cost_of(&body));
        state.share(length).taken += cost;
        drop(state);
        Ok(Complete { body, taken: Taken { bodies: self.bodies.clone(), length, cost } })
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        self.bodies.state().remove(self.number);
    }
}

/// A review's whole body. Nothing takes its place before it is answered.
#[derive(Debug)]
pub(super) struct Complete {
    body: Vec<u8>,
    taken: Taken,
}

impl Complete {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// Gives the answer the place of the body, until it is written.
    pub(super) fn answer(self, answer: Vec<u8>) -> Result<Bytes, Full> {
        let Self { body, taken } = self;
        let bodies = taken.bodies.clone();
        drop((body, taken));
        let taken = bodies.take(answer.len(), COST_PER_REVIEW + answer.len())?;
        Ok(Bytes::from_owner(Answer { text: answer, _taken: taken }))
    }
}

struct Answer {
    text: Vec<u8>,
    _taken: Taken,
}

impl AsRef<[u8]> for Answer {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

/// Memory that is counted until this is dropped.
#[derive(Debug)]
struct Taken {
    bodies: Bodies,
    length: usize,
    cost: usize,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.bodies.state().share(self.length).taken -= self.cost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1024;

    fn bodies(small: usize, large: usize) -> Bodies {
        Bodies::new(ReviewMemory { small: small * KIB, large: large * KIB })
    }

    fn taken(bodies: &Bodies) -> [usize; 2] {
        let state = bodies.state();
        [state.small.taken / KIB, state.large.taken / KIB]
    }

    fn arriving(bodies: &Bodies, kib: usize) -> Arriving {
        let mut body = bodies.begin(None).unwrap();
        for _ in 0..kib {
            body.add(&[b' '; KIB]).unwrap();
        }
        body
    }

    #[test]
    fn what_is_counted_is_what_has_arrived() {
        let bodies = bodies(1024, 1024);
        let mut body = bodies.begin(Some(8 * KIB * KIB)).unwrap();
        assert_eq!(taken(&bodies), [4, 0]);
        body.add(&[b' '; 64 * KIB]).unwrap();
        assert_eq!(taken(&bodies), [4 + 128, 0]);
        body.add(&[b' '; KIB]).unwrap();
        assert_eq!(taken(&bodies), [0, 4 + 130]);
        let complete = body.complete().unwrap();
        assert_eq!(complete.bytes().len(), 65 * KIB);
        assert_eq!(taken(&bodies), [0, 4 + 130]);
        let answer = complete.answer(vec![b' '; 10 * KIB]).unwrap();
        assert_eq!(taken(&bodies), [14, 0]);
        let written = answer.clone();
        drop(answer);
        assert_eq!(taken(&bodies), [14, 0]);
        drop(written);
        assert_eq!(taken(&bodies), [0, 0]);
        drop(arriving(&bodies, 100));
        assert_eq!(taken(&bodies), [0, 0]);
    }

    #[test]
    fn a_body_that_arrives_is_dropped_for_one_that_began_later() {
        let bodies = bodies(1024, 1024);
        let mut stalled = [arriving(&bodies, 200), arriving(&bodies, 200)];
        let third = arriving(&bodies, 200);
        assert_eq!(stalled[0].add(b"x"), Err(Full));
        assert_eq!(stalled[1].add(b"x"), Ok(()));
        let complete = third.complete().unwrap();
        assert_eq!(complete.bytes().len(), 200 * KIB);
        let [_, second] = stalled;
        assert_eq!(second.complete().unwrap().bytes().len(), 200 * KIB + 1);
    }

    #[test]
    fn complete_reviews_keep_their_place_and_large_ones_leave_the_small_share_alone() {
        let bodies = bodies(100, 500);
        let large = arriving(&bodies, 100).complete().unwrap();
        let other = arriving(&bodies, 100).complete().unwrap();
        let mut third = arriving(&bodies, 40);
        assert_eq!(third.add(&[b' '; 100 * KIB]), Err(Full));
        let small = [0; 3].map(|_| arriving(&bodies, 14).complete().unwrap());
        assert_eq!(bodies.begin(None).map(drop), Ok(()));
        let fourth = arriving(&bodies, 0).complete().unwrap();
        assert_eq!(taken(&bodies), [100, 408]);
        assert_eq!(bodies.begin(None).map(drop), Err(Full));
        assert_eq!(fourth.answer(vec![b' '; KIB]).map(drop), Err(Full));
        drop(small);
        assert_eq!(other.answer(vec![b' '; 200 * KIB]).unwrap().len(), 200 * KIB);
        assert_eq!(large.answer(vec![b' '; 497 * KIB]).map(drop), Err(Full));
        assert_eq!(taken(&bodies), [0, 0]);
    }
}
