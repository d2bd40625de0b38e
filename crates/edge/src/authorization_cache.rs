//! A cache of allowed access reviews, in front of another [`Authorizer`]. Equal reviews at the
//! same time are one call.
//!
//! Invariants: only "allowed" is remembered, for at most the time that was set, counted from when the question was
//! asked, by the clock that counts most: a revocation takes effect within that time, also where the machine is suspended meanwhile. A denial
//! or a failure is never remembered. The number of
//! remembered answers is bounded.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::future::{FutureExt as _, ready};
use gmsa_cluster::authorizer::{Answer, Authorization, Authorizer};
use gmsa_core::{
    admission::{ServiceAccount, Source, UseFact},
    credspec::{SpecName, Verb},
};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    clock::{Clock, Moment},
    coalesce::Coalescer,
};

/// The default of the flag `--authorization-cache-ttl` of each program.
pub const DEFAULT_TTL: &str = "10s";

/// The most answers that are remembered; over it, the oldest goes.
pub const MAX_REMEMBERED: usize = 4096;

/// The service account, and the credential spec that it wants to use or export.
type Use = (ServiceAccount, Verb, SpecName);

/// An [`Authorizer`] that asks another one, unless it remembers the answer or an equal question is in flight.
pub struct AuthorizationCache {
    inner: Arc<dyn Authorizer>,
    allowed: Arc<Allowed>,
    asking: Coalescer<Use, UseFact>,
}

impl AuthorizationCache {
    /// Asks `inner` and remembers what it allows for `ttl`; zero remembers nothing. Programs pass their flag
    /// `--authorization-cache-ttl`.
    pub fn new(inner: Arc<dyn Authorizer>, ttl: Duration) -> Self {
        let allowed = Allowed { ttl, asked: Mutex::default(), clock: Arc::new(Moment::now) };
        Self { inner, allowed: Arc::new(allowed), asking: Coalescer::default() }
    }

    /// A second view: own calls to `inner`, shared memory. A question to both is two calls: no decision waits for a call
    /// that is made for a warning.
    #[must_use]
    pub fn asking(&self, inner: Arc<dyn Authorizer>) -> Self {
        Self { inner, allowed: Arc::clone(&self.allowed), asking: Coalescer::default() }
    }
}

impl Authorizer for AuthorizationCache {
    fn may<'a>(&'a self, account: &'a ServiceAccount, verb: Verb, spec: &'a SpecName, deadline: Instant) -> Answer<'a> {
        let question = (account.clone(), verb, spec.clone());
        if let Some(known) = self.allowed.remembered(&question) {
            return ready(known).boxed();
        }
        let call = |(account, verb, spec), deadline| {
            let (inner, allowed) = (Arc::clone(&self.inner), Arc::clone(&self.allowed));
            async move {
                let asked = (allowed.clock)();
                let answer = inner.may(&account, verb, &spec, deadline).await;
                // Before the call ends: a caller must find either the call or its answer.
                if answer.fact == UseFact::Allowed {
                    allowed.remember((account, verb, spec), asked);
                }
                answer
            }
        };
        self.asking.ask(question, deadline, |question| self.allowed.remembered(question), call).boxed()
    }
}

/// The questions that were answered with "allowed", and how long each answer is valid.
struct Allowed {
    ttl: Duration,
    /// When each was asked.
    asked: Mutex<HashMap<Use, Moment>>,
    clock: Clock,
}

impl Allowed {
    fn remembered(&self, question: &Use) -> Option<Authorization> {
        let asked = *self.asked.lock().get(question)?;
        self.is_valid(asked).then_some(Authorization { fact: UseFact::Allowed, source: Source::Remembered })
    }

    fn remember(&self, question: Use, at: Moment) {
        if !self.is_valid(at) {
            return;
        }
        let mut asked = self.asked.lock();
        if asked.len() >= MAX_REMEMBERED {
            asked.retain(|_, at| self.is_valid(*at));
        }
        if asked.len() >= MAX_REMEMBERED {
            let oldest = asked.iter().min_by_key(|(_, at)| at.monotonic).map(|(question, _)| question.clone());
            oldest.and_then(|oldest| asked.remove(&oldest));
        }
        asked.insert(question, at);
    }

    fn is_valid(&self, asked: Moment) -> bool {
        // No sum: an instant does not hold every duration.
        (self.clock)().longest_since(&asked) < self.ttl
    }
}

#[cfg(test)]
mod tests;
