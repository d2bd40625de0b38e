//! From a socket to connections: binding, accepting, the TLS handshake, and the end of all of them.
//!
//! What always holds: over the connection cap nothing is accepted; a handshake that hangs ends after its time limit; every
//! connection is a task of one [`JoinSet`] and is asked to finish before it is dropped.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::Router;
use rustls::ServerConfig;
use socket2::{Domain, Protocol as SocketProtocol, Socket, Type};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{AcquireError, OwnedSemaphorePermit, Semaphore, watch},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

use super::{
    connection::{self, Protocol},
    limits::HANDSHAKE_TIMEOUT,
};
use crate::metrics::Metrics;

/// Connections that the kernel may hold before they are accepted.
const BACKLOG: i32 = 1024;

/// How long to wait after the process has run out of something (file descriptors) before accepting again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A bound socket.
#[derive(Debug)]
pub struct Listener {
    tcp: TcpListener,
    address: SocketAddr,
    tls: Option<Arc<ServerConfig>>,
    connections: usize,
    metrics: Option<Metrics>,
}

impl Listener {
    /// Binds `address`. The IPv6 wildcard takes IPv4 too, and becomes the IPv4 wildcard where the host has no IPv6.
    /// Without `tls` the listener speaks plain HTTP. Over `connections` open ones it stops accepting.
    ///
    /// # Errors
    /// Where the address cannot be bound: taken, not this host's, or a port that needs privileges.
    pub fn bind(address: SocketAddr, tls: Option<Arc<ServerConfig>>, connections: usize) -> io::Result<Self> {
        let tcp = match listen(address) {
            Err(error) if address.is_ipv6() && address.ip().is_unspecified() && is_no_ipv6(&error) => {
                listen(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), address.port()))?
            }
            result => result?,
        };
        let address = tcp.local_addr()?;
        Ok(Self { tcp, address, tls, connections, metrics: None })
    }

    /// Counts its connections and failed handshakes.
    #[must_use]
    pub fn counted_by(self, metrics: Metrics) -> Self {
        Self { metrics: Some(metrics), ..self }
    }

    /// The address that is bound, with the port that the system chose where 0 was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts and serves until `closing` becomes true; then closes the socket, lets the requests in flight finish for at
    /// most `drain`, and drops what is left. Gives back how many connections were dropped.
    pub async fn serve(self, router: Router, mut closing: watch::Receiver<bool>, drain: Duration) -> usize {
        let room = Arc::new(Semaphore::new(self.connections));
        let mut open = JoinSet::new();
        let told = closing.clone();
        loop {
            let accepted = async {
                let place = Arc::clone(&room).acquire_owned().await;
                (place, self.tcp.accept().await)
            };
            tokio::select! {
                biased;
                () = told_to_close(&mut closing) => break,
                Some(ended) = open.join_next(), if !open.is_empty() => report(ended),
                (place, accepted) = accepted => match accepted {
                    Ok((stream, peer)) => {
                        let connection = Connection {
                            tls: self.tls.clone(),
                            router: router.clone(),
                            metrics: self.metrics.clone(),
                            closing: told.clone(),
                            _place: place,
                        };
                        open.spawn(connection.serve(stream, peer));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        }
        drop(self.tcp);
        let drained = async {
            while let Some(ended) = open.join_next().await {
                report(ended);
            }
        };
        if timeout(drain, drained).await.is_err() {
            tracing::warn!(connections = open.len(), "dropping connections that did not finish in time");
        }
        open.len()
    }
}

/// Ends when `closing` becomes true, and where nobody is left who could say so.
pub(super) async fn told_to_close(closing: &mut watch::Receiver<bool>) {
    // What is watched must not be borrowed across an await.
    let _ = closing.wait_for(|closing| *closing).await.map(drop);
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection's task failed");
    }
}

/// What one connection needs, and the place that it takes.
struct Connection {
    tls: Option<Arc<ServerConfig>>,
    router: Router,
    metrics: Option<Metrics>,
    closing: watch::Receiver<bool>,
    _place: Result<OwnedSemaphorePermit, AcquireError>,
}

impl Connection {
    async fn serve(mut self, stream: TcpStream, peer: SocketAddr) {
        let _counted = self.metrics.as_ref().map(Metrics::connection);
        // Answers are written at once and are small: waiting to fill a packet only delays them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%peer, %error, "cannot set TCP_NODELAY");
        }
        let Some(tls) = self.tls.take() else {
            connection::serve(stream, Protocol::Http1, self.router, self.closing).await;
            return;
        };
        let handshake = timeout(HANDSHAKE_TIMEOUT, TlsAcceptor::from(tls).accept(stream));
        let cause = tokio::select! {
            result = handshake => match result {
                Ok(Ok(stream)) => {
                    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    let protocol = if http2 { Protocol::Http2 } else { Protocol::Http1 };
                    connection::serve(stream, protocol, self.router, self.closing).await;
                    return;
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("took longer than {HANDSHAKE_TIMEOUT:?}"),
            },
            () = told_to_close(&mut self.closing) => return,
        };
        tracing::info!(%peer, cause, "TLS handshake failed");
        if let Some(metrics) = &self.metrics {
            metrics.handshake_failed();
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(SocketProtocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // A restart must not wait for the connections of the process before it.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// No IPv6 in the kernel, or none on any interface.
fn is_no_ipv6(error: &io::Error) -> bool {
    const EAFNOSUPPORT: i32 = 97;
    error.raw_os_error() == Some(EAFNOSUPPORT) || error.kind() == io::ErrorKind::AddrNotAvailable
}
