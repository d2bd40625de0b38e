//! Credential specs from memory, kept up to date by a watch; from the API server where memory cannot be trusted.
//!
//! Invariants: "not found" is never answered from memory; memory is trusted only while the watch is connected and was
//! known to be right within [`TRUST`]; a silent watch is still trusted, but verified (`verify`); a question that asks for
//! the live object, or that memory cannot answer, reads the object once, and callers that ask at the same time share that
//! read. What a read returns enters memory only by the rules of `Store`.

use std::{
    convert::Infallible,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
    time::Duration,
};

use futures::future::{BoxFuture, FutureExt as _};
use gmsa_cluster::{
    apiserver::{ApiServer, CallError, CallKind},
    resolver::{
        Freshness, Resolved, Resolver,
        live::{Live, Read},
    },
};
use gmsa_core::{
    admission::{Source, SpecFact},
    credspec::SpecName,
};
use tokio::{sync::SetOnce, time::Instant};

use crate::{coalesce::Coalescer, metrics::Metrics};

mod store;
mod verify;
mod watch;
mod wire;

use store::{Entry, Store, Version};

/// How long memory is trusted after it was last known to be right. A silent watch is verified before that.
pub const TRUST: Duration = Duration::from_secs(75);

/// A [`Resolver`] that answers from memory where it can.
pub struct Cache {
    memory: Arc<Memory>,
}

/// What readers and the watch share.
struct Memory {
    live: Live,
    store: RwLock<Store>,
    reads: Coalescer<SpecName, Resolved>,
    /// Set once the cache can answer.
    ready: SetOnce<()>,
    metrics: Metrics,
}

impl Cache {
    /// A cache that is still empty, and the watch that fills it, which never ends: the caller drives it. Until then,
    /// and whenever memory cannot be trusted, credential specs are read from the API server.
    pub fn new(api: Arc<ApiServer>, metrics: Metrics) -> (Self, impl Future<Output = Infallible> + Send + 'static) {
        let memory = Arc::new(Memory {
            live: Live::new(Arc::clone(&api)),
            store: RwLock::default(),
            reads: Coalescer::default(),
            ready: SetOnce::new(),
            metrics,
        });
        let watch = watch::Watch::new(api, Arc::clone(&memory));
        (Self { memory }, watch.run())
    }

    /// Waits until the cache can answer: it is up to date, or credential specs are known to be read from the API server
    /// instead.
    pub async fn ready(&self) {
        self.memory.ready.wait().await;
    }

    /// Whether the cache can answer. It stays so.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.memory.ready.initialized()
    }

    async fn read(&self, name: &SpecName, freshness: Freshness, deadline: Instant) -> Resolved {
        let asked = Instant::now();
        let known = || if freshness == Freshness::Any { self.memory.known(name) } else { None };
        let (memory, wanted) = (Arc::clone(&self.memory), name.clone());
        let call = |deadline| async move { memory.read(&wanted, deadline).await };
        match self.memory.reads.ask(name.clone(), deadline, known, call).await {
            Some(answer) if answer.joined => Resolved { source: Source::Joined, ..answer.value },
            Some(answer) => answer.value,
            None => {
                let failure = CallError::TimedOut(deadline - asked).into();
                Resolved { fact: SpecFact::Failed(failure), source: Source::Api }
            }
        }
    }
}

impl Resolver for Cache {
    fn resolve<'a>(&'a self, name: &'a SpecName, freshness: Freshness, deadline: Instant) -> BoxFuture<'a, Resolved> {
        let known = if freshness == Freshness::Any { self.memory.known(name) } else { None };
        match known {
            Some(resolved) => std::future::ready(resolved).boxed(),
            None => self.read(name, freshness, deadline).boxed(),
        }
    }
}

impl Memory {
    /// The credential spec in memory, if memory can be trusted and has it.
    fn known(&self, name: &SpecName) -> Option<Resolved> {
        let contents = self.store().get(name)?.contents.clone();
        Some(Resolved { fact: contents.map_or(SpecFact::Unusable, SpecFact::Contents), source: Source::Cache })
    }

    async fn read(&self, name: &SpecName, deadline: Instant) -> Resolved {
        let (before, is_known) = {
            let store = self.store();
            (store.before_read(name), store.is_known(name))
        };
        let kind = if is_known { CallKind::KnownSpec } else { CallKind::UnknownSpec };
        let read = self.live.read(name, kind, deadline).await;
        if let Ok(read) = &read {
            self.change(|store| store.after_read(name, before, read));
        }
        Resolved { fact: read.map_or_else(SpecFact::Failed, Read::fact), source: Source::Api }
    }

    fn store(&self) -> RwLockReadGuard<'_, Store> {
        // No change leaves the store half changed.
        self.store.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_ready(&self) {
        // It may have been ready before.
        let _ = self.ready.set(());
    }

    fn change<T>(&self, change: impl FnOnce(&mut Store) -> T) -> T {
        let mut store = self.store.write().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut store);
        self.metrics.specs_known(store.len());
        result
    }

    /// An event: a credential spec was added, changed or deleted.
    fn event(&self, name: &SpecName, change: impl FnOnce(&mut Store)) {
        // A read that began before may bring what was before.
        self.reads.forget(name);
        self.change(change);
    }

    /// A list of all credential specs.
    fn replace(&self, at: Instant, version: Version, specs: impl IntoIterator<Item = (SpecName, Entry)>) {
        self.reads.forget_all();
        self.change(|store| store.replace(at, version, specs));
    }
}
