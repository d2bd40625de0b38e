//! The server: settings become a [`Listener`] and its routes, which the program runs as a task.
//!
//! Invariants: nothing in here calls the API server or reads a file; what does comes in as [`LookUpSources`].

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, atomic::AtomicBool},
};

use axum::Router;
use gmsa_cluster::large_memory::LargeMemory;
use gmsa_edge::{
    server::{Handshakes, Listener, Serving},
    tls::client_auth::ClientAuth,
};
use tokio_util::sync::CancellationToken;

use crate::limits::{IDLE_TIMEOUT, Limits};

pub(crate) mod deadline;
mod random_hostname;
mod refusal;
pub mod reviewer;
pub mod routes;
pub mod thread;

pub use deadline::ReviewTime;
pub use reviewer::{LookUpSources, Reviewer};
pub use routes::LOG_LIMITS;

/// Binds the webhook's port, and gives what serves it. `clients`, `ending` and `fault` go into [`Serving`]; `large_memory` comes
/// from `limits`, and others may share it.
///
/// # Errors
/// Where the address cannot be bound.
pub fn bind(
    address: SocketAddr,
    tls: Handshakes,
    clients: Option<Arc<ClientAuth>>,
    (ending, fault): (CancellationToken, Arc<AtomicBool>),
    limits: Limits,
    large_memory: Arc<LargeMemory>,
    reviewer: Reviewer,
) -> io::Result<(Listener, Router)> {
    let serving = Serving {
        tls: Some(tls),
        clients,
        metrics: Some(reviewer.metrics.edge.clone()),
        keeps_decided: true,
        ending,
        fault,
        ..Serving::new(limits.connections, limits.waiting, IDLE_TIMEOUT)
    };
    Ok((Listener::bind(address, serving)?, routes::router(reviewer, &limits, large_memory)))
}
