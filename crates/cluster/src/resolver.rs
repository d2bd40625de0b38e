//! From the name of a credential spec to its contents text: the trait, and its answer.
//!
//! Invariants: only a [`SpecName`] can be asked for, so nothing from a pod reaches a URL unchecked; an answer comes
//! by the deadline, and a failure is an answer.

use futures::future::BoxFuture;
use tokio::time::Instant;

pub use gmsa_core::admission::Freshness;
use gmsa_core::{
    admission::{Known, SpecFact},
    credspec::SpecName,
};

pub mod live;
pub mod manifests;

/// The state of a credential spec and its source.
pub type Resolved = Known<SpecFact>;

pub trait Resolver: Send + Sync + 'static {
    /// Finds a credential spec by `deadline`; a time-out is [`SpecFact::Failed`].
    fn resolve<'a>(&'a self, name: &'a SpecName, freshness: Freshness, deadline: Instant) -> BoxFuture<'a, Resolved>;
}
