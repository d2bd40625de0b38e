//! One connection: HTTP/1.1 on a byte stream, one exchange after the other.
//!
//! Invariants: between two exchanges a connection holds its stream and nothing of HTTP. hyper gets the stream when
//! the first byte of a request is there and returns it when the answer is written: its buffers would be most of an idle
//! connection's memory, and its header timeout would also run while a kept-alive connection is idle (the API server keeps
//! one for 90 s). A request whose body was not read to its end closes the connection, so no body is ever read as a request.
//!
//! The time for writing an answer is limited here, because hyper has a limit for reading heads only, and the wrappers of streams
//! that exist (tokio-io-timeout) start the time again with every byte that a slow reader takes.
//!
//! HTTP/2 is not offered. API servers speak HTTP/1.1 to webhooks since Kubernetes 1.16, to spread requests over replicas.
//! Without HTTP/2 there are no control frames to flood a connection with, and one connection is one request at a time.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    Router,
    http::{HeaderValue, Request, header},
};
use bytes::{Buf as _, Bytes};
use hyper::{
    body::{Body, Frame, Incoming, SizeHint},
    server::conn::http1::{Builder, Parts},
    service::{Service as _, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf},
    sync::Notify,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    limits::{HEADER_TIMEOUT, LINGER_BYTES, LINGER_TIMEOUT, MAX_HEAD, WRITE_TIMEOUT},
    seats::Seat,
};

/// How long an idle connection may still bring a request during shutdown. The API server does not repeat a request that it
/// sent while the connection was being closed, so a connection in use is better closed by the answer to its next request.
const LAST_CALL: Duration = Duration::from_millis(500);

/// Serves requests until the client closes, the connection is idle for `idle`, or `closing` is cancelled: then a request in flight
/// is answered, and an idle connection has [`LAST_CALL`] left. `seat` is the connection's among those that the listener counts.
pub(super) async fn serve<S>(mut stream: S, router: Router, seat: Arc<Seat>, idle: Duration, closing: CancellationToken)
where
    S: AsyncBufRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut early = Bytes::new();
    while !early.is_empty() || request_comes(&mut stream, idle, &closing).await {
        // Boxed, so that an idle connection's task is small.
        let exchanged = Box::pin(exchange(stream, early, router.clone(), Arc::clone(&seat), &closing)).await;
        let Some((returned, rest)) = exchanged else { return };
        (stream, early) = (returned, rest);
        seat.mark_idle();
    }
    close(stream).await;
}

/// Waits for the first byte of a request. False when none comes any more.
async fn request_comes<S: AsyncBufRead + Unpin>(stream: &mut S, idle: Duration, closing: &CancellationToken) -> bool {
    let last_call = async {
        closing.cancelled().await;
        sleep(LAST_CALL).await;
    };
    tokio::select! {
        biased;
        bytes = stream.fill_buf() => bytes.is_ok_and(|bytes| !bytes.is_empty()),
        () = last_call => false,
        () = sleep(idle) => false,
    }
}

/// Reads a request and writes the answer; several, one after the other, where the client sends them without waiting (HTTP
/// pipelining). Returns the stream and the bytes that were read after the last request; `None` where the connection is closed.
async fn exchange<S>(
    stream: S,
    early: Bytes,
    router: Router,
    seat: Arc<Seat>,
    closing: &CancellationToken,
) -> Option<(S, Bytes)>
where
    S: AsyncBufRead + AsyncWrite + Unpin + Send + 'static,
{
    let progress = Arc::new(Progress::new(seat));
    let router = TowerToHyperService::new(router);
    let service = service_fn(|request: Request<Incoming>| {
        let progress = Arc::clone(&progress);
        let response = router.call(progress.begin(request));
        let closing = closing.clone();
        Box::pin(async move {
            let mut response = response.await;
            let mut is_last = closing.is_cancelled() || !progress.body_read.load(Relaxed);
            if let Ok(response) = &mut response {
                // `Bound::leaving` asks for it while the replica ends.
                is_last |= response.headers().contains_key(header::CONNECTION);
                if is_last {
                    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                }
            }
            progress.answer(is_last);
            response
        })
    });
    let io = TokioIo::new(Tracked { stream, early, progress: Arc::clone(&progress) });
    let mut connection = Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .serve_connection(io, service);
    let exchanged = poll_fn(|cx| match Pin::new(&mut connection).poll(cx) {
        Poll::Pending if progress.is_done() => Poll::Ready(Ok(true)),
        Poll::Pending => Poll::Pending,
        Poll::Ready(result) => Poll::Ready(result.map(|()| false)),
    });
    let not_read = async {
        progress.answered.notified().await;
        // A pipelined request may be worked on when the time is over: what counts is whether there is something to read.
        while timeout(WRITE_TIMEOUT, progress.answered.notified()).await.is_ok() || !progress.unflushed.load(Relaxed) {}
    };
    let result = tokio::select! {
        biased;
        result = exchanged => result,
        () = not_read => {
            tracing::debug!("connection closed: the client does not read the answer");
            return None;
        }
    };
    let Parts { io, read_buf, .. } = connection.into_parts();
    let Tracked { stream, .. } = io.into_inner();
    match result {
        // Even without bytes it would keep hyper's read buffer allocated.
        Ok(true) => return Some((stream, if read_buf.is_empty() { Bytes::new() } else { read_buf })),
        Ok(false) => {}
        Err(error) => tracing::debug!(%error, "connection closed"),
    }
    progress.seat.mark_idle_if_busy();
    close(stream).await;
    None
}

/// Closes the connection so that a client that is still writing can read its answer: a socket that is closed while there
/// are bytes to read resets the connection, and the client loses what it has not read yet.
async fn close<S: AsyncBufRead + AsyncWrite + Unpin>(mut stream: S) {
    let drained = async {
        stream.shutdown().await?;
        let mut left = LINGER_BYTES;
        loop {
            let read = stream.fill_buf().await?.len();
            if read == 0 || read > left {
                return io::Result::Ok(());
            }
            left -= read;
            stream.consume(read);
        }
    };
    // The client has disconnected, or the time is over.
    let _ = timeout(LINGER_TIMEOUT, drained).await;
}

/// How far an exchange is. Only the connection's own task looks at it, so `Relaxed` is enough; hyper's service shares it.
struct Progress {
    seat: Arc<Seat>,
    /// The body of the request was read to its end.
    body_read: AtomicBool,
    /// There is an answer, which hyper writes.
    answered: Notify,
    /// The newest request is answered, and its answer lets another one come on the connection.
    keeps: AtomicBool,
    /// The stream holds bytes that are not flushed yet.
    unflushed: AtomicBool,
}

impl Progress {
    fn new(seat: Arc<Seat>) -> Self {
        let no = || AtomicBool::new(false);
        Self { seat, body_read: no(), answered: Notify::new(), keeps: no(), unflushed: no() }
    }

    fn begin(self: &Arc<Self>, request: Request<Incoming>) -> Request<TrackedBody> {
        self.keeps.store(false, Relaxed);
        self.body_read.store(false, Relaxed);
        if request.body().is_end_stream() {
            self.read_whole_body();
        } else {
            // A pipelined request before this one may have marked the seat as busy.
            self.seat.mark_idle_if_busy();
        }
        request.map(|body| TrackedBody { body, progress: Arc::clone(self) })
    }

    fn read_whole_body(&self) {
        self.body_read.store(true, Relaxed);
        self.seat.mark_busy();
    }

    fn answer(&self, is_last: bool) {
        self.keeps.store(!is_last, Relaxed);
        // While the answer to an earlier pipelined request is not read yet, the time for that one continues.
        if !self.unflushed.load(Relaxed) {
            self.answered.notify_one();
        }
    }

    /// Whether a request is answered, its answer is written, and another one may come: hyper itself ends a connection's last
    /// exchange. It passes on all that it has of an answer before it waits, and these routers' answers are in memory as a
    /// whole.
    fn is_done(&self) -> bool {
        self.keeps.load(Relaxed) && !self.unflushed.load(Relaxed)
    }
}

/// The body of a request, which records when it is complete.
struct TrackedBody {
    body: Incoming,
    progress: Arc<Progress>,
}

impl Body for TrackedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if frame.is_none() || self.body.is_end_stream() {
            self.progress.read_whole_body();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A byte stream that begins with `early` and notes what is not flushed.
struct Tracked<S> {
    stream: S,
    early: Bytes,
    progress: Arc<Progress>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Tracked<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.early.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buf);
        }
        let length = self.early.len().min(buf.remaining());
        buf.put_slice(&self.early.copy_to_bytes(length));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Tracked<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.progress.unflushed.store(true, Relaxed);
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.progress.unflushed.store(false, Relaxed);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.progress.unflushed.store(true, Relaxed);
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests;
