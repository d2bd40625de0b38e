//! Equal questions that are asked at about the same time are one call.
//!
//! Invariants: a call continues while at least one caller waits for its answer, even if the caller that began it has
//! gone, and is dropped when none does; each caller waits until its own deadline and no longer; no caller gets the answer of
//! a call that began more than [`JOIN_WITHIN`] before, since the state that it reports may have changed. No task is started:
//! the callers that wait drive the call.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::{BoxFuture, FutureExt as _, Shared, WeakShared};
use tokio::time::{Instant, timeout_at};

/// How old a call may be when another caller joins it.
pub const JOIN_WITHIN: Duration = Duration::from_secs(1);

/// The calls in flight, by what they ask.
pub struct Coalescer<K, V> {
    calls: Arc<Mutex<Calls<K, V>>>,
}

struct Calls<K, V> {
    under_way: HashMap<K, Call<V>>,
    last_number: u64,
}

struct Call<V> {
    number: u64,
    began: Instant,
    deadline: Instant,
    /// The callers hold the call itself: it ends when the last of them has gone.
    answer: WeakShared<BoxFuture<'static, V>>,
}

/// What a caller waits for.
type Waiting<V> = Shared<BoxFuture<'static, V>>;

impl<K: Eq + Hash, V: Clone> Calls<K, V> {
    /// A call that a caller with this `deadline` may join.
    fn find(&self, key: &K, deadline: Instant) -> Option<Waiting<V>> {
        let call = self.under_way.get(key)?;
        let fits = call.began.elapsed() <= JOIN_WITHIN && deadline <= call.deadline;
        // Only now: the last handle of a call must not be dropped under the lock.
        if fits { call.answer.upgrade() } else { None }
    }
}

/// An answer, and whether another caller had asked for it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<V> {
    /// The result of the call.
    pub value: V,
    /// Whether the call was in flight already.
    pub joined: bool,
}

impl<K, V> Default for Coalescer<K, V> {
    fn default() -> Self {
        Self { calls: Arc::new(Mutex::new(Calls { under_way: HashMap::new(), last_number: 0 })) }
    }
}

impl<K, V> Coalescer<K, V>
where
    K: Clone + Eq + Hash + Send + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Waits for the answer to `key` until `deadline`; `None` where there is none by then.
    ///
    /// Where an equal call is in flight and has as much time, the caller joins it. Otherwise `known` is asked, which must not
    /// wait, and cannot miss the answer of a call that has just ended. Otherwise `call` is made with the deadline of the last
    /// caller that may join it, and must end by then.
    pub async fn ask<F>(
        &self,
        key: K,
        deadline: Instant,
        known: impl FnOnce() -> Option<V>,
        call: impl FnOnce(Instant) -> F,
    ) -> Option<Answer<V>>
    where
        F: Future<Output = V> + Send + 'static,
    {
        let (answer, joined) = {
            // One lock: between looking for a call and making one, no other caller may make it.
            let mut calls = self.lock();
            if let Some(answer) = calls.find(&key, deadline) {
                (answer, true)
            } else if let Some(value) = known() {
                return Some(Answer { value, joined: false });
            } else {
                (self.begin(&mut calls, key, deadline + JOIN_WITHIN, call), false)
            }
        };
        let value = timeout_at(deadline, answer).await.ok()?;
        Some(Answer { value, joined })
    }

    /// From now on no caller joins the call for `key`: what it asks about has changed. Callers that wait get its answer.
    pub fn forget(&self, key: &K) {
        self.lock().under_way.remove(key);
    }

    /// From now on no caller joins a call that is in flight now.
    pub fn forget_all(&self) {
        self.lock().under_way.clear();
    }

    fn begin<F>(
        &self,
        calls: &mut Calls<K, V>,
        key: K,
        deadline: Instant,
        call: impl FnOnce(Instant) -> F,
    ) -> Waiting<V>
    where
        F: Future<Output = V> + Send + 'static,
    {
        calls.last_number += 1;
        let number = calls.last_number;
        let end = End { calls: Arc::clone(&self.calls), key: key.clone(), number };
        let call = call(deadline);
        let answer = async move {
            let _end = end;
            call.await
        };
        let answer = answer.boxed().shared();
        if let Some(weak) = answer.downgrade() {
            calls.under_way.insert(key, Call { number, began: Instant::now(), deadline, answer: weak });
        }
        answer
    }

    fn lock(&self) -> MutexGuard<'_, Calls<K, V>> {
        lock(&self.calls)
    }
}

/// Nothing that is done under the lock can leave the map half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes a call from the map when it ends, also when it is dropped.
struct End<K: Eq + Hash, V> {
    calls: Arc<Mutex<Calls<K, V>>>,
    key: K,
    number: u64,
}

impl<K: Eq + Hash, V> Drop for End<K, V> {
    fn drop(&mut self) {
        let mut calls = lock(&self.calls);
        if calls.under_way.get(&self.key).is_some_and(|call| call.number == self.number) {
            calls.under_way.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests;
