//! Equal questions that are asked at about the same time are one call.
//!
//! Invariants: a call continues while at least one caller waits for its answer, even if the caller that began it has
//! gone, and is dropped when none does; each caller waits until its own deadline and no longer; no caller gets the answer of
//! a call that began more than [`JOIN_WITHIN`] before, since the state that it reports may have changed. No task is started:
//! the callers that wait drive the call.

use std::{collections::HashMap, hash::Hash, sync::Arc, time::Duration};

use futures::future::{BoxFuture, FutureExt as _, Shared, WeakShared, ready};
use gmsa_cluster::apiserver::CallError;
use gmsa_core::admission::{Failure, Known, Source};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

/// How old a call may be when another caller joins it.
pub const JOIN_WITHIN: Duration = Duration::from_secs(1);

/// The calls in flight, by what they ask.
pub struct Coalescer<K, F> {
    calls: Arc<Mutex<Calls<K, F>>>,
}

struct Calls<K, F> {
    under_way: HashMap<K, Call<F>>,
    last_number: u64,
}

struct Call<F> {
    number: u64,
    began: Instant,
    deadline: Instant,
    /// The callers hold the call itself: it ends when the last of them has gone.
    answer: WeakShared<BoxFuture<'static, Known<F>>>,
}

/// What a caller waits for.
type Waiting<F> = Shared<BoxFuture<'static, Known<F>>>;

impl<K: Eq + Hash, F: Clone> Calls<K, F> {
    /// A call that a caller with this `deadline` may join.
    fn find(&self, key: &K, deadline: Instant) -> Option<Waiting<F>> {
        let call = self.under_way.get(key)?;
        let fits = call.began.elapsed() <= JOIN_WITHIN && deadline <= call.deadline;
        // Only now: the last handle of a call must not be dropped under the lock.
        if fits { call.answer.upgrade() } else { None }
    }
}

impl<K, F> Default for Coalescer<K, F> {
    fn default() -> Self {
        Self { calls: Arc::new(Mutex::new(Calls { under_way: HashMap::new(), last_number: 0 })) }
    }
}

impl<K, F> Coalescer<K, F>
where
    K: Clone + Eq + Hash + Send + 'static,
    F: Clone + From<Failure> + Send + Sync + 'static,
{
    /// Waits for the answer to `key` until `deadline`; where there is none by then, that is a failure.
    ///
    /// What `known` gives, which must not wait, is the answer. Otherwise, where an equal call is in flight and has as much
    /// time, the caller joins it. Otherwise `known` is asked again: the answer of a call that has just ended is not missed.
    /// Otherwise `call` is made with the deadline of the last caller that may join it, and must end by then.
    pub fn ask<'a, W>(
        &'a self,
        key: K,
        deadline: Instant,
        known: impl Fn(&K) -> Option<Known<F>> + Send + 'a,
        call: impl FnOnce(K, Instant) -> W + Send + 'a,
    ) -> BoxFuture<'a, Known<F>>
    where
        W: Future<Output = Known<F>> + Send + 'static,
    {
        if let Some(known) = known(&key) {
            return ready(known).boxed();
        }
        let asked = Instant::now();
        let answer = async move {
            let (answer, joined) = {
                // One lock: between looking for a call and making one, no other caller may make it.
                let mut calls = self.calls.lock();
                if let Some(answer) = calls.find(&key, deadline) {
                    (answer, true)
                } else if let Some(known) = known(&key) {
                    return known;
                } else {
                    (self.begin(&mut calls, key, deadline + JOIN_WITHIN, call), false)
                }
            };
            match timeout_at(deadline, answer).await {
                Ok(answer) if joined => Known { source: Source::Joined, ..answer },
                Ok(answer) => answer,
                Err(_) => {
                    let failure = Failure::from(CallError::TimedOut(deadline - asked));
                    Known { fact: failure.into(), source: Source::Api }
                }
            }
        };
        answer.boxed()
    }

    /// From now on no caller joins the call for `key`: what it asks about has changed. Callers that wait get its answer.
    pub fn forget(&self, key: &K) {
        self.calls.lock().under_way.remove(key);
    }

    /// From now on no caller joins a call that is in flight now.
    pub fn forget_all(&self) {
        self.calls.lock().under_way.clear();
    }

    fn begin<W>(
        &self,
        calls: &mut Calls<K, F>,
        key: K,
        deadline: Instant,
        call: impl FnOnce(K, Instant) -> W,
    ) -> Waiting<F>
    where
        W: Future<Output = Known<F>> + Send + 'static,
    {
        calls.last_number += 1;
        let number = calls.last_number;
        let end = End { calls: Arc::clone(&self.calls), key: key.clone(), number };
        let call = call(key.clone(), deadline);
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
}

/// Removes a call from the map when it ends, also when it is dropped.
struct End<K: Eq + Hash, F> {
    calls: Arc<Mutex<Calls<K, F>>>,
    key: K,
    number: u64,
}

impl<K: Eq + Hash, F> Drop for End<K, F> {
    fn drop(&mut self) {
        let mut calls = self.calls.lock();
        if calls.under_way.get(&self.key).is_some_and(|call| call.number == self.number) {
            calls.under_way.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests;
