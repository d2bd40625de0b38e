//! One connection: HTTP/1.1 or HTTP/2 on a byte stream, with a limit on idling and on slow request heads.
//!
//! hyper's own header time-out also runs while a kept-alive connection rests between two requests; the API server keeps
//! such connections for 90 s, and must not have one closed under a review. So the two are told apart here.

use std::{
    io,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    Router,
    http::{HeaderValue, header},
};
use hyper::{
    server::conn::{http1, http2},
    service::{Service as _, service_fn},
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::graceful::GracefulConnection,
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::watch,
    time::Instant,
};

use super::{
    limits::{HEADER_TIMEOUT, IDLE_TIMEOUT},
    listener::told_to_close,
};

/// Concurrent streams on one HTTP/2 connection.
const MAX_STREAMS: u32 = 256;

/// The largest request head, in bytes.
const MAX_HEAD: usize = 16 * 1024;

/// How long a connection of HTTP/1.1 may still bring a request once it is told to close. The API server speaks HTTP/1.1 to a
/// webhook behind a Service and does not repeat a request that was on its way while the connection was closed: a connection
/// in use is better ended by the answer to its next request.
const LAST_CALL: Duration = Duration::from_millis(500);

/// Which HTTP the client chose by ALPN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// Serves requests until the client closes, the connection idles for too long, or `closing` becomes true and the requests
/// in flight are answered.
pub(super) async fn serve<S>(stream: S, protocol: Protocol, router: Router, closing: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Activity::default();
    let router = TowerToHyperService::new(router);
    let (counted, told) = (activity.clone(), closing.clone());
    let service = service_fn(move |request| {
        let busy = counted.begin();
        let response = router.call(request);
        let last = protocol == Protocol::Http1 && *told.borrow();
        async move {
            let mut response = response.await;
            if let (true, Ok(response)) = (last, &mut response) {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            drop(busy);
            response
        }
    });
    let watched = TokioIo::new(Watched { stream, activity: activity.clone(), heads: protocol == Protocol::Http1 });
    let result = match protocol {
        Protocol::Http1 => {
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(MAX_HEAD.max(64 * 1024));
            drive(builder.serve_connection(watched, service), &activity, protocol, closing).await
        }
        Protocol::Http2 => {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder
                .timer(TokioTimer::new())
                .max_concurrent_streams(MAX_STREAMS)
                .max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX));
            drive(builder.serve_connection(watched, service), &activity, protocol, closing).await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "connection ended");
    }
}

async fn drive<C, E>(
    connection: C,
    activity: &Activity,
    protocol: Protocol,
    mut closing: watch::Receiver<bool>,
) -> Result<(), String>
where
    C: GracefulConnection<Error = E> + Future<Output = Result<(), E>>,
    E: std::fmt::Display,
{
    let mut connection = pin!(connection);
    let (mut told, mut asked_to_close) = (false, false);
    let mut last_call = Instant::now();
    loop {
        let expiry = activity.expiry();
        tokio::select! {
            biased;
            result = &mut connection => return result.map_err(|error| error.to_string()),
            () = told_to_close(&mut closing), if !told => {
                told = true;
                // HTTP/2 says which request was the last.
                last_call = Instant::now() + if protocol == Protocol::Http1 { LAST_CALL } else { Duration::ZERO };
            }
            () = tokio::time::sleep_until(last_call), if told && !asked_to_close => {
                asked_to_close = true;
                connection.as_mut().graceful_shutdown();
            }
            () = tokio::time::sleep_until(expiry) => match activity.expired(Instant::now()) {
                None => {}
                Some(Expired::Head) => return Err("the request's head took too long".to_owned()),
                Some(Expired::Idle) if asked_to_close => return Err("the client did not close".to_owned()),
                Some(Expired::Idle) => {
                    asked_to_close = true;
                    activity.rest();
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
}

/// What a connection is doing.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Nothing, since then.
    Idle(Instant),
    /// Reading the head of a request that began then.
    Head(Instant),
    /// Answering so many requests.
    Busy(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expired {
    Idle,
    Head,
}

/// What a connection is doing, shared by its byte stream, its service and its watchdog.
#[derive(Clone, Debug)]
struct Activity(Arc<Mutex<Phase>>);

impl Default for Activity {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Phase::Idle(Instant::now()))))
    }
}

impl Activity {
    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bytes_came(&self) {
        let mut phase = self.phase();
        if let Phase::Idle(_) = *phase {
            *phase = Phase::Head(Instant::now());
        }
    }

    fn begin(&self) -> Busy {
        let mut phase = self.phase();
        *phase = Phase::Busy(if let Phase::Busy(requests) = *phase { requests + 1 } else { 1 });
        Busy(self.clone())
    }

    fn rest(&self) {
        *self.phase() = Phase::Idle(Instant::now());
    }

    /// When to look again at the earliest.
    fn expiry(&self) -> Instant {
        match *self.phase() {
            Phase::Idle(since) => (since + IDLE_TIMEOUT).min(Instant::now() + HEADER_TIMEOUT),
            Phase::Head(since) => since + HEADER_TIMEOUT,
            Phase::Busy(_) => Instant::now() + HEADER_TIMEOUT,
        }
    }

    fn expired(&self, now: Instant) -> Option<Expired> {
        match *self.phase() {
            Phase::Idle(since) if now >= since + IDLE_TIMEOUT => Some(Expired::Idle),
            Phase::Head(since) if now >= since + HEADER_TIMEOUT => Some(Expired::Head),
            _ => None,
        }
    }
}

/// A request being answered; dropped also where its client has gone.
struct Busy(Activity);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut phase = self.0.phase();
        *phase = match *phase {
            Phase::Busy(requests) if requests > 1 => Phase::Busy(requests - 1),
            _ => Phase::Idle(Instant::now()),
        };
    }
}

/// A byte stream that says when bytes come.
struct Watched<S> {
    stream: S,
    activity: Activity,
    /// Whether bytes on an idle connection are the head of a request. On HTTP/2 they may be a ping.
    heads: bool,
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if self.heads && buf.filled().len() > before {
            self.activity.bytes_came();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
