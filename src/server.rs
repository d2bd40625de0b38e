//! The server: settings become a [`Listener`] and its routes, which the program runs as a task.
//!
//! Invariants: nothing in here calls the API server or reads a file; what does comes in as [`Sources`].

use std::{io, net::SocketAddr, sync::Arc};

use axum::Router;
use tokio::{sync::Semaphore, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::{
    limits::{IDLE_TIMEOUT, Limits},
    telemetry::{LogLimit, PERIOD},
    tls::client_auth::ClientAuth,
};

mod connection;
pub(crate) mod deadline;
mod handshake;
pub mod listener;
mod places;
mod random_hostname;
mod refusal;
pub mod reviewer;
pub mod routes;
pub mod threads;

pub use connection::Serving;
use connection::{DROPPED, FAILED_HANDSHAKES};
pub use handshake::Handshakes;
use listener::{Listener, SHORTAGES};
pub use reviewer::{Reviewer, Sources};
use routes::REFUSED;

/// Binds the webhook's port, and gives what serves it. `clients` and `ending` go into [`Serving`]; `large_memory` comes
/// from `limits`, and others may share it.
///
/// # Errors
/// Where the address cannot be bound.
pub fn bind(
    address: SocketAddr,
    tls: Handshakes,
    clients: Option<Arc<ClientAuth>>,
    ending: CancellationToken,
    limits: Limits,
    large_memory: Arc<Semaphore>,
    reviewer: Reviewer,
) -> io::Result<(Listener, Router)> {
    let serving = Serving {
        tls: Some(tls),
        clients,
        metrics: Some(reviewer.metrics.clone()),
        ending,
        ..Serving::new(limits.connections, limits.waiting, IDLE_TIMEOUT)
    };
    Ok((Listener::bind(address, serving)?, routes::router(reviewer, &limits, large_memory)))
}

/// Logs after each period how many lines about clients were left out in it.
pub async fn summarize_log() {
    loop {
        sleep(PERIOD).await;
        [&DROPPED, &FAILED_HANDSHAKES, &REFUSED, &SHORTAGES].into_iter().for_each(LogLimit::summarize);
    }
}
