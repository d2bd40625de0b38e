//! From a socket to connections: binding, accepting, and the end of all of them.
//!
//! Invariants: accepting waits for no place, only until a connection that was dropped has ended; every connection is a task of one
//! [`JoinSet`] and is asked to finish before it is dropped.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::Router;
use hyper_util::server::graceful::GracefulShutdown;
use rustix::io::Errno;
use socket2::{Domain, Protocol as SocketProtocol, Socket, Type};
use tokio::{
    net::TcpListener,
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, interval, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    connection::{HttpsService, Serving},
    handshake::Handshakes,
    places::Places,
};
use crate::{
    limits::{SEND_BUFFER, UNREAD_TIMEOUT, WAITING_RECEIVE_BUFFER},
    telemetry::LogLimit,
};

/// Connections that the kernel may hold before they are accepted. Over it the kernel drops the first packet of a connection,
/// and the client repeats it only after a second.
const BACKLOG: i32 = 4096;

/// How long to wait after the system has run out of something before accepting again: until a connection that was dropped for that
/// has ended. The process itself never runs out of file descriptors ([`fit`](crate::limits::fit)).
const ACCEPT_PAUSE: Duration = Duration::from_millis(1);

/// Limits the log lines `cannot accept a connection`.
pub(super) static SHORTAGES: LogLimit = LogLimit::new("cannot accept a connection");

/// How often connections that hold a place without need are looked for, while others wait.
const ROOM_PERIOD: Duration = Duration::from_millis(100);

/// How long an idle connection may still bring a request during shutdown. The API server does not repeat a request that it
/// sent while the connection was being closed, so a connection in use is better closed by the answer to its next request. It
/// begins again while a connection waits.
const LAST_CALL: Duration = Duration::from_millis(500);

/// An address may take a place while it holds fewer than this many times the free places. Alone an address holds at most two thirds of
/// all, two hold two fifths each, and so on: there is a place for one more while there are fewer addresses than places.
pub(super) const SHARE: usize = 2;

/// An IP address with a port, in a flag.
///
/// # Errors
/// What was expected.
pub fn socket_address(text: &str) -> Result<SocketAddr, String> {
    let expected = |_| "expected an IP address and a port, such as 127.0.0.1:8443 or [::1]:8443".to_owned();
    text.parse().map_err(expected)
}

/// A bound socket, and how its connections are served.
pub struct Listener {
    tcp: TcpListener,
    address: SocketAddr,
    serving: Serving,
}

impl Listener {
    /// Binds `address`. The IPv6 wildcard takes IPv4 too, and becomes the IPv4 wildcard where the host has no IPv6.
    ///
    /// # Errors
    /// Where the address cannot be bound: taken, not this host's, or a port that needs privileges.
    pub fn bind(address: SocketAddr, serving: Serving) -> io::Result<Self> {
        let tcp = match listen(address) {
            Err(error) if address.is_ipv6() && address.ip().is_unspecified() && is_no_ipv6(&error) => {
                listen(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), address.port()))?
            }
            result => result?,
        };
        Ok(Self { address: tcp.local_addr()?, tcp, serving })
    }

    /// The address that is bound, with the port that the system chose where 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts and serves until `closing` is cancelled; then closes the socket, lets the requests in flight finish for at
    /// most `drain`, and drops the rest. Returns how many connections were dropped.
    pub async fn serve(self, router: Router, closing: CancellationToken, drain: Duration) -> usize {
        let Self { tcp, serving, .. } = self;
        let places = Places::new(serving.places, SHARE, serving.waiting);
        let service = Arc::new(HttpsService { serving, router, places, too_late: CancellationToken::new() });
        let HttpsService { serving, places, too_late, .. } = &*service;
        let (graceful, mut tasks, mut room) = (GracefulShutdown::new(), JoinSet::new(), interval(ROOM_PERIOD));
        // One spare, so that a new connection can replace a waiting one. A dropped one keeps its file until its task ends.
        let most = serving.places.saturating_add(serving.waiting).saturating_add(1);
        let files = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        loop {
            tokio::select! {
                biased;
                () = closing.cancelled() => break,
                _ = room.tick() => places.make_room(),
                Some(ended) = tasks.join_next() => report(ended),
                (file, accepted) = async { (Arc::clone(&files).acquire_owned().await, tcp.accept().await) } => match accepted {
                    Ok((stream, peer)) => {
                        let served = Arc::clone(&service).serve(stream, peer, graceful.watcher());
                        tasks.spawn(async move {
                            let _file = file;
                            served.await;
                        });
                    }
                    Err(error) if is_shortage(&error) => {
                        if SHORTAGES.admit() {
                            tracing::warn!(%error, "cannot accept a connection");
                        }
                        places.drop_one();
                        sleep(ACCEPT_PAUSE).await;
                    }
                    Err(error) => tracing::debug!(%error, "a connection ended before it was accepted"),
                }
            }
        }
        drop(tcp);
        serving.ending.cancel();
        let drained = async {
            // Reviews that wait for a place or for their handshake are answered too.
            let waits = || places.ready() > 0 || serving.tls.as_ref().is_some_and(Handshakes::are_in_progress);
            let mut end = Instant::now() + LAST_CALL;
            while Instant::now() < end {
                room.tick().await;
                places.make_room();
                if waits() {
                    end = Instant::now() + LAST_CALL;
                }
            }
            too_late.cancel();
            graceful.shutdown().await;
            while let Some(ended) = tasks.join_next().await {
                report(ended);
            }
        };
        if timeout(drain, drained).await.is_err() {
            tracing::warn!(connections = tasks.len(), "dropping connections that did not finish in time");
        }
        tasks.len()
    }
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection's task failed");
    }
}

/// A listening socket. Every connection inherits its options.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(SocketProtocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // A restart must not wait for the connections of the process before it.
    socket.set_reuse_address(true)?;
    // Answers are written at once and are small: waiting to fill a packet only delays them.
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_user_timeout(Some(UNREAD_TIMEOUT))?;
    // By default the kernel lets each buffer grow to several MiB, which count as the process's.
    socket.set_recv_buffer_size(WAITING_RECEIVE_BUFFER)?;
    socket.set_send_buffer_size(SEND_BUFFER)?;
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
    use socket2::SockRef;
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn every_connection_is_bounded_by_the_kernel() {
        let tcp = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let _client = TcpStream::connect(tcp.local_addr().unwrap()).await.unwrap();
        let (stream, _) = tcp.accept().await.unwrap();
        let socket = SockRef::from(&stream);
        assert!(socket.tcp_nodelay().unwrap());
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(UNREAD_TIMEOUT));
        assert_eq!(socket.recv_buffer_size().unwrap(), 2 * WAITING_RECEIVE_BUFFER);
        assert_eq!(socket.send_buffer_size().unwrap(), 2 * SEND_BUFFER);
    }

    #[test]
    fn only_a_shortage_stops_accepting_for_a_while() {
        let shortages = (1..=133).filter(|code| is_shortage(&io::Error::from_raw_os_error(*code)));
        assert_eq!(shortages.collect::<Vec<_>>(), [12, 23, 24, 105]);
    }
}
