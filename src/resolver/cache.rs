//! Credential specs from memory, kept up to date by a watch; from the API server where memory cannot be trusted.
//!
//! Invariants: "not found" is never answered from memory; memory is trusted only while the watch is connected and was
//! known to be right within [`TRUST`]; a silent watch is still trusted, but verified (`verify`); a question that asks for
//! the live object, or that memory cannot answer, reads the object once, and callers that ask at the same time share that
//! read. What a read returns enters memory only by the rules of `Store`.

use std::{convert::Infallible, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use gmsa_cluster::{
    apiserver::{ApiServer, CallKind},
    resolver::{
        Freshness, Resolved, Resolver,
        live::{self, Read},
    },
};
use gmsa_core::{
    admission::{Source, SpecFact},
    credspec::SpecName,
};
use parking_lot::{RwLock, RwLockReadGuard};
use tokio::time::Instant;

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
    api: Arc<ApiServer>,
    store: RwLock<Store>,
    reads: Coalescer<SpecName, SpecFact>,
    metrics: Metrics,
}

impl Cache {
    /// A cache that is still empty, and the watch that fills it, which never ends: the caller drives it. Until then,
    /// and whenever memory cannot be trusted, credential specs are read from the API server.
    ///
    /// `ready` is called when the cache can answer, because it is up to date or credential specs are known to be read from the
    /// API server instead, and may be called again.
    pub fn new(
        api: Arc<ApiServer>,
        metrics: Metrics,
        ready: impl Fn() + Send + Sync + 'static,
    ) -> (Self, impl Future<Output = Infallible> + Send + 'static) {
        let memory = Arc::new(Memory { api, store: RwLock::default(), reads: Coalescer::default(), metrics });
        let watch = watch::Watch::new(Arc::clone(&memory), ready);
        (Self { memory }, watch.run())
    }
}

impl Resolver for Cache {
    fn resolve<'a>(&'a self, name: &'a SpecName, freshness: Freshness, deadline: Instant) -> BoxFuture<'a, Resolved> {
        let memory = &self.memory;
        let known = move |name: &SpecName| if freshness == Freshness::Any { memory.known(name) } else { None };
        let call = |name, deadline| {
            let memory = Arc::clone(memory);
            async move { memory.read(&name, deadline).await }
        };
        memory.reads.ask(name.clone(), deadline, known, call)
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
        let read = live::read(&self.api, name, kind, deadline).await;
        if let Ok(read) = &read {
            self.change(|store| store.after_read(name, before, read));
        }
        Resolved { fact: read.map_or_else(SpecFact::Failed, Read::fact), source: Source::Api }
    }

    fn store(&self) -> RwLockReadGuard<'_, Store> {
        self.store.read()
    }

    fn change<T>(&self, change: impl FnOnce(&mut Store) -> T) -> T {
        let mut store = self.store.write();
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
