//! The memory that reviews take: their bodies while they arrive, what reading them costs, and their answers.
//!
//! Invariants: what is counted is what is held, from the bytes as they arrive; an announced length costs nothing.
//! Small reviews have a share of their own, which large ones cannot take. A body that is still arriving excludes no
//! other: where a share is full, the bodies that began first are dropped if that is enough, and their clients get a 503. A
//! review that is read holds its place until it is answered: one that shrinks is never refused, and one that grows is
//! refused only where its share is full already, so a share is exceeded by one answer at most.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use parking_lot::Mutex;

use super::limits::MAX_BODY;

/// The longest body or answer that is counted in the share of small reviews, in bytes. A pod's review has 3 to 30 KiB.
pub const SMALL: usize = 64 * 1024;

/// What each byte of a body costs: the byte itself, room for its buffer to grow, and what is read from it.
const COST_PER_BYTE: usize = 2;

/// What a review costs besides its body: the buffers of its connection and the look-ups.
const COST_PER_REVIEW: usize = 4 * 1024;

/// What is counted for the answer of a review that is being decided. The answer to nearly every pod is shorter.
const COST_OF_ANSWER: usize = 4 * 1024;

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
    cost_of_arriving: usize,
}

/// There is no room for the review.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

impl Share {
    /// Counts `cost` bytes if there is room for them. Bodies that are still arriving make room, where that is enough.
    fn take(&mut self, cost: usize) -> Result<(), Full> {
        self.take_with_room_for(cost, cost)
    }

    /// Counts `cost` bytes if there is room for at least one of them: what they are for is in memory already.
    fn exceed(&mut self, cost: usize) -> Result<(), Full> {
        self.take_with_room_for(1, cost)
    }

    fn take_with_room_for(&mut self, least: usize, cost: usize) -> Result<(), Full> {
        if self.taken - self.cost_of_arriving + least > self.size {
            return Err(Full);
        }
        while self.taken + cost > self.size
            && let Some(oldest) = self.arriving.keys().next().copied()
        {
            self.remove(oldest);
        }
        self.taken += cost;
        Ok(())
    }

    /// Keeps a body whose cost is counted.
    fn insert(&mut self, number: u64, body: Vec<u8>) {
        self.cost_of_arriving += cost_of_body(body.len());
        self.arriving.insert(number, body);
    }

    /// Takes a body out. Its cost is not counted any more.
    fn remove(&mut self, number: u64) -> Option<Vec<u8>> {
        let body = self.arriving.remove(&number)?;
        self.cost_of_arriving -= cost_of_body(body.len());
        self.taken -= cost_of_body(body.len());
        Some(body)
    }
}

fn cost_of_body(length: usize) -> usize {
    COST_PER_REVIEW + COST_PER_BYTE * length
}

impl State {
    fn share(&mut self, length: usize) -> &mut Share {
        if length <= SMALL { &mut self.small } else { &mut self.large }
    }

    /// Takes an arriving body out. Its cost is not counted any more.
    fn remove(&mut self, number: u64) -> Option<Vec<u8>> {
        self.small.remove(number).or_else(|| self.large.remove(number))
    }
}

impl Bodies {
    /// With room for this many bytes of small reviews and of large ones.
    pub(super) fn new(small: usize, large: usize) -> Self {
        let share = |size| Share { size, ..Share::default() };
        let state = State { small: share(small), large: share(large), next: 0 };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Begins a body. `announced` is its length, where the client announces one.
    pub(super) fn begin(&self, announced: Option<usize>) -> Result<Arriving, Full> {
        let mut state = self.0.lock();
        let number = state.next;
        state.next += 1;
        state.small.take(cost_of_body(0))?;
        state.small.insert(number, Vec::new());
        Ok(Arriving { bodies: self.clone(), number, announced })
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
        let mut state = self.bodies.0.lock();
        let mut body = state.remove(self.number).ok_or(Full)?;
        let length = body.len() + bytes.len();
        if body.len() <= SMALL && length > SMALL {
            // One buffer for all of a large body. Its pages are not touched, and so not held, before bytes are in them; a
            // buffer that grows would leave every smaller one of its sizes behind.
            body.reserve_exact(self.announced.unwrap_or(MAX_BODY).saturating_sub(body.len()));
        }
        let share = state.share(length);
        share.take(cost_of_body(length))?;
        body.extend_from_slice(bytes);
        share.insert(self.number, body);
        Ok(())
    }

    /// All bytes have arrived.
    pub(super) fn complete(self) -> Result<Complete, Full> {
        let mut state = self.bodies.0.lock();
        let body = state.remove(self.number).ok_or(Full)?;
        let (length, cost) = (body.len(), cost_of_body(body.len()));
        state.share(length).taken += cost;
        drop(state);
        Ok(Complete { body, taken: Taken { bodies: self.bodies.clone(), length, cost } })
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        self.bodies.0.lock().remove(self.number);
    }
}

/// A review's whole body, or its answer. Nothing takes its place.
#[derive(Debug)]
pub(super) struct Complete {
    body: Vec<u8>,
    taken: Taken,
}

impl AsRef<[u8]> for Complete {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

impl Complete {
    /// Drops the body. What was read from it, of `kept` bytes, has its place until there is an answer.
    pub(super) fn read(self, kept: usize) -> Result<Taken, Full> {
        let Self { body, mut taken } = self;
        drop(body);
        taken.change(0, COST_PER_REVIEW + COST_OF_ANSWER + kept)?;
        Ok(taken)
    }
}

/// Memory that is counted until this is dropped.
#[derive(Debug)]
pub(super) struct Taken {
    bodies: Bodies,
    length: usize,
    cost: usize,
}

impl Taken {
    /// Gives the place of a review that is read to its answer, until that is written.
    pub(super) fn answer(mut self, answer: Vec<u8>) -> Result<Bytes, Full> {
        self.change(answer.len(), COST_PER_REVIEW + answer.len())?;
        Ok(Bytes::from_owner(Complete { body: answer, taken: self }))
    }

    /// Counts `cost` from now on, in the large share where `length` is no small one. Never fails where that is not more.
    fn change(&mut self, length: usize, cost: usize) -> Result<(), Full> {
        let mut state = self.bodies.0.lock();
        state.share(self.length).taken -= self.cost;
        if cost > self.cost {
            let length = length.max(self.length);
            if let Err(full) = state.share(length).exceed(cost) {
                state.share(self.length).taken += self.cost;
                return Err(full);
            }
            self.length = length;
        } else {
            state.share(self.length).taken += cost;
        }
        self.cost = cost;
        Ok(())
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.bodies.0.lock().share(self.length).taken -= self.cost;
    }
}

#[cfg(test)]
mod tests;
