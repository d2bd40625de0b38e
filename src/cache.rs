//! Credential specs from memory, which a watch keeps up to date; from the API server where memory has no answer.
//!
//! Invariants: "not found" is never answered from memory; memory answers only while the watch is healthy; a question that asks for
//! the live object, or that memory cannot answer, reads the object once, and callers that ask at the same time share that read.
//! Contents that a read returns enter memory only by the rules of `Store`. Contents that do not enter it take a part of the budget while a
//! review holds them; where nothing of it is left, the read fails.
//!
//! In the worst case a list, the response of the next watch and that watch each hang to their limit, and contents are as old as the sum (`OLDEST` in
//! `cache/store.rs`), also where the machine is suspended meanwhile; a read for each pod would lower that, at the price of a call for each. What the contents
//! of one credential spec deny is confirmed live. Permission is asked separately: to take an account away, revoke `use`.

use std::{convert::Infallible, sync::Arc};

use futures::future::{BoxFuture, FutureExt as _, ready};
use gmsa_cluster::{
    apiserver::{ApiServer, CallError, CallKind},
    resolver::{Freshness, Resolved, Resolver, live},
};
use gmsa_core::{
    admission::{Failure, Source, SpecFact},
    credspec::{Contents, SpecName},
};
use gmsa_edge::{clock::Moment, coalesce::Coalescer};
use parking_lot::RwLock;
use tokio::{sync::Semaphore, time::Instant};

use crate::metrics::Metrics;

mod store;
pub(crate) mod watch;

use store::Store;

/// A [`Resolver`] that answers from memory where it can.
pub struct Cache {
    memory: Arc<Memory>,
    reads: Arc<Reads>,
}

/// The reads of a cache, and what they may take.
struct Reads {
    /// The kind of these calls; `None` where it depends on whether the credential spec is known.
    kind: Option<CallKind>,
    calls: Coalescer<SpecName, SpecFact>,
    /// The bytes of contents that only reviews hold.
    unkept: Arc<Semaphore>,
}

impl Reads {
    fn new(kind: Option<CallKind>, unkept: usize) -> Arc<Self> {
        Arc::new(Self { kind, calls: Coalescer::default(), unkept: Arc::new(Semaphore::new(unkept)) })
    }

    /// The contents with a permit for their text, unless it is kept here.
    fn permitted(&self, contents: Arc<Contents>) -> SpecFact {
        let contents = match Arc::try_unwrap(contents) {
            Ok(contents) => contents,
            Err(shared) => return SpecFact::Contents(shared),
        };
        let bytes = u32::try_from(contents.text().len()).unwrap_or(u32::MAX);
        match Arc::clone(&self.unkept).try_acquire_many_owned(bytes) {
            Ok(permit) => SpecFact::Contents(Arc::new(contents.with_permit(permit))),
            Err(_) => SpecFact::Failed(Failure::from(CallError::NoMemory)),
        }
    }
}

/// The state that readers and the watch share.
struct Memory {
    api: Arc<ApiServer>,
    store: RwLock<Store>,
    for_decisions: Arc<Reads>,
    for_advice: Arc<Reads>,
    metrics: Metrics,
}

impl Cache {
    /// A cache that is still empty and may take `budget` bytes, and the watch that fills it, which never ends: the caller drives it.
    /// Until its first list, and whenever the watch is not healthy, credential specs are read from the API server.
    ///
    /// `ready` is called when the API server has answered the watch, also with an error: from then on the cache
    /// answers, from memory or by a read. It may be called again.
    pub fn new(
        api: Arc<ApiServer>,
        metrics: Metrics,
        budget: usize,
        ready: impl Fn() + Send + Sync + 'static,
    ) -> (Self, impl Future<Output = Infallible> + Send + 'static) {
        let unkept = budget / 4;
        let memory = Arc::new(Memory {
            api,
            store: RwLock::new(Store::new(budget - unkept)),
            for_decisions: Reads::new(None, unkept / 4 * 3),
            for_advice: Reads::new(Some(CallKind::Advice), unkept / 4),
            metrics,
        });
        let watch = watch::Watch::new(Arc::clone(&memory), Box::new(ready));
        let for_decisions = Arc::clone(&memory.for_decisions);
        (Self { memory, reads: for_decisions }, watch.run())
    }

    /// A view of the same cache for warnings: its reads have their own limits, and no decision waits for them.
    #[must_use]
    pub fn for_advice(&self) -> Self {
        Self { memory: Arc::clone(&self.memory), reads: Arc::clone(&self.memory.for_advice) }
    }
}

impl Resolver for Cache {
    fn resolve<'a>(&'a self, name: &'a SpecName, freshness: Freshness, deadline: Instant) -> BoxFuture<'a, Resolved> {
        let known = move |name: &SpecName| {
            let fact = (freshness == Freshness::Any).then(|| self.memory.store.read().get(name, Moment::now()))??;
            Some(Resolved { fact, source: Source::Cache })
        };
        if let Some(known) = known(name) {
            return ready(known).boxed();
        }
        let call = |name, deadline| {
            let (memory, reads) = (Arc::clone(&self.memory), Arc::clone(&self.reads));
            async move { memory.read(&name, &reads, deadline).await }
        };
        self.reads.calls.ask(name.clone(), deadline, known, call).boxed()
    }
}

impl Memory {
    async fn read(&self, name: &SpecName, reads: &Reads, deadline: Instant) -> Resolved {
        let before = self.store.read().before_read(name);
        let kind = if before.known.is_some() { CallKind::KnownSpec } else { CallKind::UnknownSpec };
        let kind = reads.kind.unwrap_or(kind);
        let read = live::read(&self.api, name, kind, deadline).await;
        if let Ok(read) = &read {
            self.change(|store| store.after_read(name, before, read));
        }
        let fact = match read.map(|read| read.fact) {
            Ok(SpecFact::Contents(contents)) => reads.permitted(contents),
            Ok(fact) => fact,
            Err(failure) => SpecFact::Failed(failure),
        };
        Resolved { fact, source: Source::Api }
    }

    /// From now on no caller joins a read of these objects that is in flight now.
    fn forget_reads(&self, these: impl Fn(&SpecName) -> bool) {
        for reads in [&self.for_decisions, &self.for_advice] {
            reads.calls.forget(&these);
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Store) -> T) -> T {
        let mut store = self.store.write();
        let result = change(&mut store);
        self.metrics.specs.set(i64::try_from(store.held).unwrap_or(i64::MAX));
        result
    }
}
