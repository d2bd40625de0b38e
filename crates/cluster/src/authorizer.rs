//! Whether a service account may `use` a credential spec, or `export` it: the trait, and its answer.
//!
//! Invariants: an answer comes by the deadline; a check that could not be made is never an approval.

use futures::future::BoxFuture;
use tokio::time::Instant;

use gmsa_core::{
    admission::{Known, ServiceAccount, UseFact},
    credspec::{SpecName, Verb},
};

pub mod access_review;
pub mod rbac;

/// Whether a service account may use a credential spec, or export it, and from where this is known.
pub type Authorization = Known<UseFact>;

/// An answer to come.
pub type Answer<'a> = BoxFuture<'a, Authorization>;

/// Answers whether a service account holds a verb on a credential spec, in its own namespace.
pub trait Authorizer: Send + Sync + 'static {
    /// Answers by `deadline`; a time-out is [`UseFact::Failed`].
    fn may<'a>(&'a self, account: &'a ServiceAccount, verb: Verb, spec: &'a SpecName, deadline: Instant) -> Answer<'a>;
}
