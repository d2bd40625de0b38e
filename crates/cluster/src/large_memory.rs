//! Memory for large bodies and answers, and how its users share it.
//!
//! Invariants: no address takes more than it leaves free, so one leaves half to all others, two leave a quarter; the client of the API server takes
//! at most three times that; a slow client can keep what it holds, and not take more. Nothing waits for memory: two bodies that have arrived in part could wait for each other.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A user of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryUser {
    /// The clients of an address, as connections are counted: an IPv4 address, or an IPv6 network of 64 bits.
    Address(IpAddr),
    /// The client of the API server, for its answers.
    ApiServer,
}

/// How many times as much as it leaves free the client of the API server may take: it reads for all addresses. As many credential specs as it
/// reads at once where they are not known, each as large as etcd takes it, then fit into what a process of 128 MiB has.
const FOR_ANSWERS: usize = 3;

#[derive(Debug)]
pub struct LargeMemory(Mutex<MemoryState>);

#[derive(Debug)]
struct MemoryState {
    /// Bytes.
    free: usize,
    /// Only users that hold some.
    held: HashMap<MemoryUser, usize>,
}

impl LargeMemory {
    #[must_use]
    pub fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(MemoryState { free: bytes, held: HashMap::new() })))
    }

    /// The bytes that nobody holds.
    pub fn free(&self) -> usize {
        self.state().free
    }

    /// The memory as this user may take it.
    #[must_use]
    pub fn share_of(self: &Arc<Self>, user: MemoryUser) -> Share {
        Share { memory: Arc::clone(self), user }
    }

    /// A lock is never poisoned: no code that holds it can panic.
    fn state(&self) -> MutexGuard<'_, MemoryState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The memory for one user.
#[derive(Clone, Debug)]
pub struct Share {
    memory: Arc<LargeMemory>,
    user: MemoryUser,
}

impl Share {
    /// Takes this many bytes until the returned value is dropped; `None` where the user would hold more than its share.
    #[must_use]
    pub fn take(&self, bytes: usize) -> Option<Taken> {
        let mut taken = Taken { share: self.clone(), bytes: 0 };
        taken.grow_to(bytes)?;
        Some(taken)
    }
}

/// Bytes that stay taken until this is dropped.
#[derive(Debug)]
pub struct Taken {
    share: Share,
    bytes: usize,
}

impl Taken {
    /// Takes more, up to this many bytes; `None` where the user would hold more than its share: then nothing more is taken.
    pub fn grow_to(&mut self, bytes: usize) -> Option<()> {
        let Some(more) = bytes.checked_sub(self.bytes).filter(|more| *more > 0) else { return Some(()) };
        let mut state = self.share.memory.state();
        let free = state.free.checked_sub(more)?;
        let held = state.held.get(&self.share.user).map_or(more, |held| held + more);
        let share = if self.share.user == MemoryUser::ApiServer { FOR_ANSWERS } else { 1 };
        if held > share * free {
            return None;
        }
        state.free = free;
        state.held.insert(self.share.user, held);
        self.bytes += more;
        Some(())
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut state = self.share.memory.state();
        state.free += self.bytes;
        if let Some(held) = state.held.get_mut(&self.share.user) {
            *held -= self.bytes;
            if *held == 0 {
                state.held.remove(&self.share.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOD: MemoryUser = MemoryUser::Address(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2)));
    const WEB: MemoryUser = MemoryUser::Address(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)));

    #[test]
    fn no_address_takes_more_than_it_leaves_free_and_answers_three_times_that() {
        let memory = LargeMemory::new(100);
        let take = |user, bytes| memory.share_of(user).take(bytes);
        assert!(take(FLOOD, 51).is_none());
        let flood = [take(FLOOD, 40), take(FLOOD, 10)];
        assert!(flood.iter().all(Option::is_some) && take(FLOOD, 1).is_none());
        assert!(take(WEB, 26).is_none());
        let mut web = take(WEB, 20).unwrap();
        assert_eq!((web.grow_to(26), web.grow_to(25)), (None, Some(())));
        let for_answers = take(MemoryUser::ApiServer, 18);
        assert!(for_answers.is_some() && take(MemoryUser::ApiServer, 1).is_none());
        // It has these, and could not take them now.
        assert_eq!((web.grow_to(25), web.grow_to(3)), (Some(()), Some(())));
        assert_eq!(memory.free(), 7);
        drop((flood, web));
        assert_eq!(memory.free(), 82);
        assert!(take(WEB, 41).is_some());
        drop(for_answers);
        assert_eq!(memory.free(), 100);
        assert!(memory.state().held.is_empty());
    }
}
