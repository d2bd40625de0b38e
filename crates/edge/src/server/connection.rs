//! One connection: the wait for a place, the TLS handshake, then HTTP/1.1 by hyper.
//!
//! Invariants: a connection that waits has no state but its socket; a handshake ends after its time limit; a connection is closed
//! when it brings no whole head within the idle limit, when it makes room for another one, and when its client's certificate
//! expires or is no longer trusted. Only an answer for which [`Serving::keeps_decided`] holds keeps it open, and only while no connection waits that has more right to its place:
//! requests with any other answer could be sent one after the other without reading an answer, and hyper would hold all of those.
//!
//! HTTP/2 is not offered. API servers speak HTTP/1.1 to webhooks since Kubernetes 1.16, to spread requests over replicas.
//! Without HTTP/2 there are no control frames to flood a connection with, and one connection is one request at a time.

use std::{
    convert::Infallible,
    future::pending,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    http::{HeaderValue, Method, Request, StatusCode, header::CONNECTION},
};
use futures::FutureExt as _;
use gmsa_core::causes;
use hyper::{
    body::Incoming,
    server::conn::http1::Builder,
    service::{Service as _, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::Watcher,
    service::TowerToHyperService,
};
use rustls::pki_types::UnixTime;
use socket2::SockRef;
use tokio::{
    io::{Interest, Ready},
    net::TcpStream,
    task::yield_now,
    time::{Instant, timeout},
};
use tokio_util::{either::Either, sync::CancellationToken};

use super::{
    handshake::Handshakes,
    places::{Place, Places, source_of},
};
use crate::{
    limits::{HANDSHAKE_TIMEOUT, MAX_HEAD, RECEIVE_BUFFER, WAIT_TIMEOUT},
    metrics::{Counted, EdgeMetrics, Unserved, UnservedLabel},
    telemetry::{LogLimit, cut},
    tls::client_auth::ClientAuth,
};

/// The lines about connections that got no place, and those about handshakes that failed.
pub(super) static DROPPED: LogLimit = LogLimit::new("connection dropped");
pub(super) static FAILED_HANDSHAKES: LogLimit = LogLimit::new("TLS handshake failed");

/// How the connections of a listener are served.
pub struct Serving {
    pub tls: Option<Handshakes>,
    /// Closes the connections of clients that it no longer trusts.
    pub clients: Option<Arc<ClientAuth>>,
    /// Served ones at once.
    pub places: usize,
    /// The most that wait for a place.
    pub waiting: usize,
    /// How long one may bring no whole head of a request.
    pub idle: Duration,
    /// Whether the answer 200 to a POST keeps its connection open. No other answer does: a client can ask for those without any cost, and
    /// hyper would hold as many as it asks for without reading one.
    pub keeps_decided: bool,
    /// Counts connections; without it, they are not logged.
    pub metrics: Option<EdgeMetrics>,
    /// From its cancellation on, every answer closes its connection: API servers then open new ones, to other replicas. A
    /// connection that stays open until the process ends may be closed while a review is on its way, and the API server
    /// does not send that review again.
    pub ending: CancellationToken,
    /// While it is set, every answer closes its connection too: this replica has a fault that others do not have.
    pub fault: Arc<AtomicBool>,
}

impl Serving {
    /// Without TLS and without metrics; each answer closes its connection.
    pub fn new(places: usize, waiting: usize, idle: Duration) -> Self {
        let (ending, fault) = (CancellationToken::new(), Arc::default());
        Self { tls: None, clients: None, places, waiting, idle, keeps_decided: false, metrics: None, ending, fault }
    }
}

/// The parts that all connections of a listener share.
pub(super) struct HttpsService {
    pub serving: Serving,
    pub router: Router,
    pub places: Arc<Places>,
    /// After its cancellation, no connection gets a place, and handshakes stop.
    pub too_late: CancellationToken,
}

impl HttpsService {
    /// Waits for a place for a connection, then serves until the connection ends, or has to. `graceful` lets a request in flight be
    /// answered first.
    pub async fn serve(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, graceful: Watcher) {
        let metrics = self.serving.metrics.as_ref();
        let waiting = metrics.map(|metrics| Counted::new(&metrics.connections_waiting));
        let mut first = [0];
        let placed = async {
            let deadline = Instant::now() + WAIT_TIMEOUT;
            let place = self.places.place(source_of(peer.ip()), stream.peek(&mut first), deadline).await?;
            // A client that has given up meanwhile is not worth a handshake.
            if self.serving.tls.is_some() && is_closed(&stream) { Err(Unserved::Gone) } else { Ok(place) }
        };
        let place = match self.too_late.run_until_cancelled(placed).await {
            Some(Ok(place)) => place,
            Some(Err(unserved)) => {
                if let Some(metrics) = metrics {
                    metrics.connections_unserved.get_or_create(&UnservedLabel { reason: unserved.as_str() }).inc();
                    if unserved == Unserved::NoPlace && DROPPED.admit() {
                        tracing::warn!(%peer, "connection dropped: too many others were served or waited");
                    }
                }
                return;
            }
            None => return,
        };
        drop(waiting);
        // Boxed: a task that waits is as large as what it waits for.
        let mut served = Box::pin(self.serve_at(&place, stream, peer, graceful));
        let has_to_go = async {
            place.close.cancelled().await;
            // What has arrived is read first.
            yield_now().await;
        };
        tokio::select! {
            biased;
            () = &mut served => return,
            () = has_to_go => {}
        }
        if place.is_busy() {
            served.await;
        }
    }

    /// Serves a connection that has a place: TLS, then HTTP.
    async fn serve_at(&self, place: &Arc<Place>, stream: TcpStream, peer: SocketAddr, graceful: Watcher) {
        let Serving { tls, clients, metrics, idle, keeps_decided, ending, fault, .. } = &self.serving;
        let _counted = metrics.as_ref().map(|metrics| Counted::new(&metrics.connections));
        // The buffer was minimal while the connection waited. Where this fails, reading is slower.
        let _ = SockRef::from(&stream).set_recv_buffer_size(RECEIVE_BUFFER);
        let (stream, certificates) = if let Some(tls) = tls {
            let accepted = timeout(HANDSHAKE_TIMEOUT, tls.accept(stream, peer.ip()));
            // Boxed: the task is as large as what it waits for most of the time, not as a handshake.
            let Some(accepted) = self.too_late.run_until_cancelled(Box::pin(accepted)).await else { return };
            let late = |_| io::Error::other(format!("took longer than {HANDSHAKE_TIMEOUT:?}"));
            let stream = match accepted.map_err(late).flatten() {
                Ok(stream) => stream,
                Err(error) => {
                    if let Some(metrics) = metrics {
                        metrics.handshake_failures.inc();
                        if FAILED_HANDSHAKES.admit() {
                            tracing::info!(%peer, cause = cut(&causes::own(&error)), "TLS handshake failed");
                        }
                    }
                    return;
                }
            };
            let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default().to_vec();
            (Either::Right(stream), certificates)
        } else {
            (Either::Left(stream), Vec::new())
        };
        let router = TowerToHyperService::new(self.router.clone());
        let service = service_fn(|mut request: Request<Incoming>| {
            let may_keep = *keeps_decided && request.method() == Method::POST;
            request.extensions_mut().insert(Arc::clone(place));
            let response = router.call(request);
            async move {
                let mut response = response.await?;
                let keeps = may_keep && response.status() == StatusCode::OK;
                if !keeps || ending.is_cancelled() || fault.load(Ordering::Acquire) || place.is_wanted() {
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, Infallible>(response)
            }
        });
        let mut http = Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(*idle).max_buf_size(MAX_HEAD);
        let connection = http.serve_connection(TokioIo::new(stream), service);
        let revoked = async {
            match clients {
                Some(clients) => clients.revoked(&certificates, UnixTime::now).await,
                None => pending().await,
            }
        };
        tokio::select! {
            ended = graceful.watch(connection) => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "connection closed");
                }
            }
            () = revoked => tracing::info!(%peer, "connection closed: its client certificate is no longer trusted"),
        }
    }
}

/// Whether the client has closed its side. What it sent before may still be unread.
fn is_closed(stream: &TcpStream) -> bool {
    stream.ready(Interest::READABLE).now_or_never().is_some_and(|ready| ready.is_ok_and(Ready::is_read_closed))
}

#[cfg(test)]
mod tests;
