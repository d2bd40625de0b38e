//! The server: settings become a [`Bound`] socket, and that becomes running tasks.
//!
//! Invariants: a [`Bound`] has a listening socket and everything that its routes need. Nothing in here knows a
//! cluster or a file.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
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
mod deadline;
pub mod limits;
pub mod listener;
pub mod reviewer;
pub mod routes;
pub mod threads;

pub use connection::Serving;
use listener::Listener;
pub use reviewer::Reviewer;

/// The webhook's server with its socket bound.
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
        // Many container runtimes start processes with a soft limit of 1024 open files. Go's programs do the same.
        let files = getrlimit(Resource::Nofile);
        if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files }) {
            tracing::warn!(%error, "cannot raise the limit of open files");
        }
        let log_limits = ["TLS handshake failed", "request refused"].map(|message| Arc::new(LogLimit::new(message)));
        let [handshakes, requests] = log_limits.clone();
        let serving = Serving {
            tls: Some(tls),
            connections: limits.connections,
            moment: limits::MOMENT,
            idle: limits::IDLE_TIMEOUT,
            observers: Some((reviewer.metrics.clone(), handshakes)),
            ..Serving::default()
        };
        let listener = Listener::bind(address, serving)?;
        Ok(Self { listener, router: routes::router(reviewer, &limits, requests), log_limits })
    }

    /// [`Serving::ending`]
    #[must_use]
    pub fn leaving(mut self, ending: CancellationToken) -> Self {
        self.listener.serving.ending = ending;
        self
    }

    /// [`Serving::clients`]
    #[must_use]
    pub fn of_clients(mut self, clients: Option<Arc<ClientAuth>>) -> Self {
        self.listener.serving.clients = clients;
        self
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
