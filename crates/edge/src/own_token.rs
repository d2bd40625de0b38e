//! The token of this replica: the API server refuses it after a deletion by force, and other replicas have tokens that it takes.
//!
//! Invariant: while the API server refuses it, the replica is unready and asks again.

use std::sync::{Arc, atomic::AtomicBool};

use gmsa_cluster::apiserver::ApiServer;

use crate::{admin::Readiness, shutdown::Tasks};

/// Makes the replica unready while the API server refuses its token. Returns that fault, for [`Serving::fault`](crate::server::Serving::fault).
pub fn follow(api: &Arc<ApiServer>, readiness: &mut Readiness, tasks: &mut Tasks) -> Arc<AtomicBool> {
    let (fault, asking) = (api.refuses_token(), Arc::clone(api));
    readiness.unless("the API server refuses the token of this replica (401)", Arc::clone(&fault));
    tasks.spawn(async move { match asking.ask_while_token_is_refused().await {} });
    fault
}
