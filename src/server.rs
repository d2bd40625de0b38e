//! The server: settings become a [`Bound`] socket, and that becomes running tasks.
//!
//! Invariants: a [`Bound`] has a listening socket and everything that its routes need. Nothing in here knows a
//! cluster or a file.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use rustls::ServerConfig;
use tokio_util::sync::CancellationToken;

use crate::{
    config::Limits,
    telemetry::{self, LogLimit},
    tls::client_auth::ClientAuth,
};

mod bodies;
mod connection;
mod connections;
pub mod limits;
pub mod listener;
mod open_files;
pub mod reviewer;
pub mod routes;

use listener::Listener;
pub use reviewer::Reviewer;

/// The webhook's server with its socket bound.
#[derive(Debug)]
pub struct Bound {
    listener: Listener,
    router: Router,
    log_limits: [Arc<LogLimit>; 2],
}

impl Bound {
    /// Binds the webhook's port.
    ///
    /// # Errors
    /// Where the address cannot be bound.
    pub fn bind(address: SocketAddr, tls: Arc<ServerConfig>, limits: Limits, reviewer: Reviewer) -> io::Result<Self> {
        match open_files::make_room(limits.connections) {
            Ok(None) => {}
            Ok(Some(files)) => tracing::warn!(
                files,
                connections = limits.connections,
                "the system allows fewer open files than the connections that may be open"
            ),
            Err(error) => tracing::warn!(%error, "cannot raise the limit of open files"),
        }
        let log_limits = ["TLS handshake failed", "request refused"].map(|message| Arc::new(LogLimit::new(message)));
        let [handshakes, requests] = log_limits.clone();
        let listener = Listener::bind(address, Some(tls), limits.connections, limits::IDLE_TIMEOUT)?
            .observed_by(reviewer.metrics.clone(), handshakes);
        Ok(Self { listener, router: routes::router(reviewer, &limits, requests), log_limits })
    }

    /// [`Listener::leaving`]
    #[must_use]
    pub fn leaving(self, ending: CancellationToken) -> Self {
        Self { listener: self.listener.leaving(ending), ..self }
    }

    /// [`Listener::of_clients`]
    #[must_use]
    pub fn of_clients(self, clients: Option<Arc<ClientAuth>>) -> Self {
        Self { listener: self.listener.of_clients(clients), ..self }
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
                self.log_limits.iter().for_each(|log_limit| log_limit.summarize());
            }
        };
        tokio::select! {
            dropped = self.listener.serve(self.router, closing, drain) => dropped,
            never = summaries => never,
        }
    }
}
