//! Equal questions that are asked at about the same time are one call.
//!
//! Invariants: a call continues while at least one caller waits for its answer, even if the caller that began it has
//! gone, and is dropped when none does: its answer is lost, although what was sent to the API server still ends there; each
//! caller waits until its own deadline and no longer; no caller joins a call that began more than [`JOIN_WITHIN`] before,
//! since the state that it reports may have changed. No task is started here: the callers that wait drive the call.

use std::{collections::HashMap, hash::Hash, time::Duration};

use futures::future::{BoxFuture, FutureExt as _, Shared, WeakShared};
use gmsa_cluster::apiserver::CallError;
use gmsa_core::admission::{Failure, Known, Source};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

/// How old a call may be when another caller joins it.
pub const JOIN_WITHIN: Duration = Duration::from_secs(1);

/// The calls in flight, by what they ask.
pub struct Coalescer<K, F> {
    calls: Mutex<HashMap<K, Call<F>>>,
}

struct Call<F> {
    began: Instant,
    deadline: Instant,
    /// The callers hold the call itself: it ends when the last of them has gone.
    answer: WeakShared<BoxFuture<'static, Known<F>>>,
}

impl<F: Clone> Call<F> {
    /// The operation that callers wait for, unless it has ended.
    fn in_flight(&self) -> Option<Shared<BoxFuture<'static, Known<F>>>> {
        self.answer.upgrade().filter(|answer| answer.peek().is_none())
    }
}

impl<K, F> Default for Coalescer<K, F> {
    fn default() -> Self {
        Self { calls: Mutex::default() }
    }
}

impl<K, F> Coalescer<K, F>
where
    K: Clone + Eq + Hash + Send + 'static,
    F: Clone + From<Failure> + Send + Sync + 'static,
{
    /// Waits for the answer to `key` until `deadline`; without an answer by then, returns a failure.
    ///
    /// Where an equal call is in flight and has as much time, the caller joins it. Otherwise what `known` gives is the
    /// answer: it has the answer of a call that has just ended. Otherwise `call` is made with the deadline of the last
    /// caller that may join it, and must end by then.
    pub async fn ask<W>(
        &self,
        key: K,
        deadline: Instant,
        known: impl FnOnce(&K) -> Option<Known<F>>,
        call: impl FnOnce(K, Instant) -> W,
    ) -> Known<F>
    where
        W: Future<Output = Known<F>> + Send + 'static,
    {
        let asked = Instant::now();
        let (answer, joined) = {
            // One lock: between looking for a call and making one, no other caller may make it.
            let mut calls = self.calls.lock();
            let fits = |call: &&Call<F>| call.began.elapsed() <= JOIN_WITHIN && deadline <= call.deadline;
            if let Some(answer) = calls.get(&key).filter(fits).and_then(Call::in_flight) {
                (answer, true)
            } else if let Some(known) = known(&key) {
                return known;
            } else {
                // Calls that have ended go before the map would grow.
                if calls.len() == calls.capacity() {
                    calls.retain(|_, call| call.in_flight().is_some());
                }
                let deadline = deadline + JOIN_WITHIN;
                let answer = call(key.clone(), deadline).boxed().shared();
                if let Some(weak) = answer.downgrade() {
                    calls.insert(key, Call { began: Instant::now(), deadline, answer: weak });
                }
                (answer, false)
            }
        };
        match timeout_at(deadline, answer).await {
            Ok(answer) if joined => Known { source: Source::Joined, ..answer },
            Ok(answer) => answer,
            Err(_) => {
                let failure = Failure::from(CallError::TimedOut(deadline - asked));
                Known { fact: failure.into(), source: if joined { Source::Joined } else { Source::Api } }
            }
        }
    }

    /// From now on no caller joins the calls for these keys: what they ask about has changed. Callers that wait get their answers.
    pub fn forget(&self, these: impl Fn(&K) -> bool) {
        self.calls.lock().retain(|key, _| !these(key));
    }
}

#[cfg(test)]
mod tests;
