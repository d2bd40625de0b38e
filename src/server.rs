//! The server: settings become a [`Bound`] socket, and that becomes running tasks.
//!
//! Invariants: a [`Bound`] has a listening socket and everything that its routes need. Nothing in here knows a
//! cluster or a file.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use rustls::ServerConfig;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{
    limits::{IDLE_TIMEOUT, Limits},
    telemetry::{self, LogLimit},
    tls::client_auth::ClientAuth,
};

mod connection;
pub(crate) mod deadline;
mod hostname;
pub mod listener;
mod places;
mod refusal;
pub mod reviewer;
pub mod routes;
pub mod threads;

pub use connection::Serving;
use connection::{DROPPED, FAILED_HANDSHAKES};
use listener::Listener;
pub use reviewer::{Reviewer, Sources};
use routes::REFUSED;

/// The webhook's server with its socket bound.
pub struct Bound {
    listener: Listener,
    router: Router,
}

impl Bound {
    /// Binds the webhook's port. `clients` and `ending` are those of [`Serving`], `large_memory` is that of `limits`, which others may share.
    ///
    /// # Errors
    /// Where the address cannot be bound.
    pub fn bind(
        address: SocketAddr,
        tls: Arc<ServerConfig>,
        clients: Option<Arc<ClientAuth>>,
        ending: CancellationToken,
        limits: Limits,
        large_memory: Arc<Semaphore>,
        reviewer: Reviewer,
    ) -> io::Result<Self> {
        let serving = Serving {
            tls: Some(tls),
            clients,
            metrics: Some(reviewer.metrics.clone()),
            ending,
            ..Serving::new(limits.connections, limits.waiting, IDLE_TIMEOUT)
        };
        let listener = Listener::bind(address, serving)?;
        Ok(Self { listener, router: routes::router(reviewer, &limits, large_memory) })
    }

    /// The address that is bound.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Serves until `closing` is cancelled, then drains. Returns how many connections had to be dropped.
    pub async fn serve(self, closing: CancellationToken, drain: Duration) -> usize {
        let summaries = async {
            loop {
                tokio::time::sleep(telemetry::PERIOD).await;
                [&DROPPED, &FAILED_HANDSHAKES, &REFUSED].into_iter().for_each(LogLimit::summarize);
            }
        };
        tokio::select! {
            dropped = self.listener.serve(self.router, closing, drain) => dropped,
            never = summaries => never,
        }
    }
}
