//! From a socket to connections: binding, accepting, the TLS handshake, and the end of all of them.
//!
//! Invariants: accepting never stops; over the limit of connections the one that is idle longest is closed; a
//! handshake that hangs ends after its time limit; every connection is a task of one [`JoinSet`] and is asked to finish
//! before it is dropped.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::Router;
use rustix::io::Errno;
use rustls::ServerConfig;
use socket2::{Domain, Protocol as SocketProtocol, Socket, Type};
use tokio::{
    io::BufReader,
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::sync::CancellationToken;

use super::{
    connection,
    limits::HANDSHAKE_TIMEOUT,
    seats::{Seat, Seats},
};
use crate::{
    metrics::Metrics,
    telemetry::{LogLimit, cut},
};

/// Connections that the kernel may hold before they are accepted. Over it the kernel drops the first packet of a connection,
/// and the client repeats it only after a second.
const BACKLOG: i32 = 4096;

/// How long to wait after the process has run out of something (file descriptors) before accepting again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A bound socket.
#[derive(Debug)]
pub struct Listener {
    tcp: TcpListener,
    address: SocketAddr,
    tls: Option<Arc<ServerConfig>>,
    connections: usize,
    idle: Duration,
    observers: Option<(Metrics, Arc<LogLimit>)>,
}

impl Listener {
    /// Binds `address`. The IPv6 wildcard takes IPv4 too, and becomes the IPv4 wildcard where the host has no IPv6.
    /// Without `tls` the listener speaks plain HTTP. A connection is closed when it is idle for `idle`, and over
    /// `connections` open ones the one that is idle longest.
    ///
    /// # Errors
    /// Where the address cannot be bound: taken, not this host's, or a port that needs privileges.
    pub fn bind(
        address: SocketAddr,
        tls: Option<Arc<ServerConfig>>,
        connections: usize,
        idle: Duration,
    ) -> io::Result<Self> {
        let tcp = match listen(address) {
            Err(error) if address.is_ipv6() && address.ip().is_unspecified() && is_no_ipv6(&error) => {
                listen(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), address.port()))?
            }
            result => result?,
        };
        let address = tcp.local_addr()?;
        Ok(Self { tcp, address, tls, connections, idle, observers: None })
    }

    /// Counts its connections, and counts and logs failed handshakes.
    #[must_use]
    pub fn observed_by(self, metrics: Metrics, failed_handshakes: Arc<LogLimit>) -> Self {
        Self { observers: Some((metrics, failed_handshakes)), ..self }
    }

    /// The address that is bound, with the port that the system chose where 0 was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts and serves until `closing` is cancelled; then closes the socket, lets the requests in flight finish for at
    /// most `drain`, and drops what is left. Returns how many connections were dropped.
    pub async fn serve(self, router: Router, closing: CancellationToken, drain: Duration) -> usize {
        let seats = Seats::new(self.connections);
        let mut open = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                () = closing.cancelled() => break,
                Some(ended) = open.join_next(), if !open.is_empty() => report(ended),
                accepted = self.tcp.accept() => match accepted {
                    Ok((stream, peer)) => {
                        let connection = Connection {
                            tls: self.tls.clone(),
                            router: router.clone(),
                            observers: self.observers.clone(),
                            seat: Arc::new(seats.take()),
                            idle: self.idle,
                            closing: closing.clone(),
                        };
                        open.spawn(connection.serve(stream, peer));
                    }
                    Err(error) if !is_shortage(&error) => tracing::debug!(%error, "a connection ended before it was accepted"),
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        seats.make_room();
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

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection's task failed");
    }
}

/// What one connection needs, and the place that it takes.
struct Connection {
    tls: Option<Arc<ServerConfig>>,
    router: Router,
    observers: Option<(Metrics, Arc<LogLimit>)>,
    seat: Arc<Seat>,
    idle: Duration,
    closing: CancellationToken,
}

impl Connection {
    async fn serve(mut self, stream: TcpStream, peer: SocketAddr) {
        let _counted = self.observers.as_ref().map(|(metrics, _)| metrics.connection());
        // Answers are written at once and are small: waiting to fill a packet only delays them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%peer, %error, "cannot set TCP_NODELAY");
        }
        let seat = Arc::clone(&self.seat);
        let served = async {
            match self.tls.take() {
                None => {
                    connection::serve(
                        Box::new(BufReader::new(stream)),
                        self.router,
                        self.seat,
                        self.idle,
                        self.closing,
                    )
                    .await;
                }
                Some(tls) => {
                    // Boxed: the task is as large as what it waits for most of the time, not as a handshake.
                    if let Some(stream) = Box::pin(self.handshake(tls, stream, peer)).await {
                        connection::serve(stream, self.router, self.seat, self.idle, self.closing).await;
                    }
                }
            }
        };
        seat.close_requested.run_until_cancelled(served).await;
    }

    async fn handshake(
        &self,
        tls: Arc<ServerConfig>,
        stream: TcpStream,
        peer: SocketAddr,
    ) -> Option<Box<TlsStream<TcpStream>>> {
        let cause = tokio::select! {
            result = timeout(HANDSHAKE_TIMEOUT, TlsAcceptor::from(tls).accept(stream)) => match result {
                // Boxed: it is moved through several futures, each of which would have room for it.
                Ok(Ok(stream)) => return Some(Box::new(stream)),
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("took longer than {HANDSHAKE_TIMEOUT:?}"),
            },
            () = self.closing.cancelled() => return None,
        };
        if let Some((metrics, log_limit)) = &self.observers {
            metrics.handshake_failed();
            if log_limit.admit() {
                tracing::info!(%peer, cause = cut(&cause), "TLS handshake failed");
            }
        }
        None
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

/// The process, or the system, has run out of file descriptors or memory. Any other error of accepting is one of a single
/// connection, which has ended.
fn is_shortage(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOMEM | Errno::NFILE | Errno::MFILE | Errno::NOBUFS))
}

/// No IPv6 in the kernel, or none on any interface.
fn is_no_ipv6(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::AFNOSUPPORT) || error.kind() == io::ErrorKind::AddrNotAvailable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_shortage_stops_accepting_for_a_while() {
        let shortages = (1..=133).filter(|code| is_shortage(&io::Error::from_raw_os_error(*code)));
        assert_eq!(shortages.collect::<Vec<_>>(), [12, 23, 24, 105]);
    }
}
