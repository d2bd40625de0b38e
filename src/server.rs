//! The server: settings become a [`Bound`] socket, and that becomes running tasks.
//!
//! What always holds: whoever holds a [`Bound`] has a listening socket and everything that its routes need. Nothing in
//! here knows a cluster or a file.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use rustls::ServerConfig;
use tokio::sync::watch;

use crate::config::Limits;

mod connection;
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
        let listener = Listener::bind(address, Some(tls), limits.connections)?.counted_by(reviewer.metrics().clone());
        Ok(Self { listener, router: routes::router(reviewer, limits::Reviews::new(limits.reviews)) })
    }

    /// The address that is bound.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Serves until `closing` becomes true, then drains. Gives back how many connections had to be dropped.
    pub async fn serve(self, closing: watch::Receiver<bool>, drain: Duration) -> usize {
        self.listener.serve(self.router, closing, drain).await
    }
}
