//! TLS handshakes: few are computed at once, on threads of their own, and addresses take turns.
//!
//! A whole `ClientHello` costs a client nothing, because it can send the same bytes again and again. The server signs each time.
//!
//! A *turn* is a slot in which one message of a handshake is computed; an address queues for one. There are [`HANDSHAKES_PER_CORE`] turns for each thread that serves connections, more
//! than threads that compute: the others wait for one.
//!
//! Invariants: no thread that serves connections uses a key; an address holds at most half of the turns, those that wait for a thread included;
//! a handshake that waits for its client has no turn, so it delays no other one.

use std::{future::ready, io, net::IpAddr, sync::Arc};

use rustls::{ServerConfig, ServerConnection};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    runtime::Handle,
    time::Instant,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{
    places::{Places, source_of},
    threads::serving_threads,
};
use crate::limits::{HANDSHAKES_PER_CORE, MAX_READ, TLS_OUTPUT, WAIT_TIMEOUT};

/// An address may take a turn while it holds fewer turns than remain free: alone it holds at most half of them.
const SHARE: usize = 1;

/// The handshakes of a listener.
#[derive(Debug)]
pub struct Handshakes {
    tls: Arc<ServerConfig>,
    threads: Handle,
    /// A message is computed only within a turn.
    turns: Arc<Places>,
    /// Each one in progress has a clone.
    in_progress: Arc<()>,
}

impl Handshakes {
    /// Handshakes that are computed on the blocking threads of this runtime.
    pub fn new(tls: Arc<ServerConfig>, threads: Handle) -> Self {
        // A connection that waits for a turn has a place, so their number is bounded.
        let turns = Places::new(HANDSHAKES_PER_CORE * serving_threads(), SHARE, usize::MAX);
        Self { tls, threads, turns, in_progress: Arc::default() }
    }

    /// Whether a handshake is in progress.
    pub(super) fn are_in_progress(&self) -> bool {
        Arc::strong_count(&self.in_progress) > 1
    }

    /// Makes a TLS connection from a connection that has sent something.
    ///
    /// # Errors
    /// Where the client disconnects or breaks the protocol, and where it gets no turn.
    pub(super) async fn accept(&self, mut stream: TcpStream, peer: IpAddr) -> io::Result<TlsStream<TcpStream>> {
        let _in_progress = Arc::clone(&self.in_progress);
        let mut tls = ServerConnection::new(Arc::clone(&self.tls)).map_err(io::Error::other)?;
        tls.set_buffer_limit(Some(TLS_OUTPUT));
        while tls.is_handshaking() {
            let mut received = Vec::with_capacity(MAX_READ);
            if stream.read_buf(&mut received).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let turn = self.turns.place(source_of(peer), ready(Ok(1)), Instant::now() + WAIT_TIMEOUT).await;
            let turn = turn.map_err(|_| io::Error::other("too many handshakes wait"))?;
            let computed = self.threads.spawn_blocking(move || {
                let _turn = turn;
                compute(tls, &received)
            });
            let (connection, answer, outcome) = computed.await??;
            stream.write_all(&answer).await?;
            outcome.map_err(io::Error::other)?;
            tls = connection;
        }
        // The handshake is complete: the acceptor only wraps it.
        TlsAcceptor::from(Arc::clone(&self.tls)).accept_with(stream, |fresh| *fresh = tls).await
    }
}

/// Takes in what a client has sent; gives the connection, what to answer, and what is wrong with it.
fn compute(
    mut tls: ServerConnection,
    mut received: &[u8],
) -> io::Result<(ServerConnection, Vec<u8>, Result<(), rustls::Error>)> {
    let (mut answer, mut outcome) = (Vec::new(), Ok(()));
    while !received.is_empty() && outcome.is_ok() {
        // After `close_notify` rustls reads no more.
        if tls.read_tls(&mut received)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        outcome = tls.process_new_packets().map(drop);
    }
    while tls.wants_write() {
        tls.write_tls(&mut answer)?;
    }
    Ok((tls, answer, outcome))
}

#[cfg(test)]
mod tests;
