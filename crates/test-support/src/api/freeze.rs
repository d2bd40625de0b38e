//! A connection that can go dead without being closed.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// A stream that passes nothing on once it is frozen. What arrives stays in the kernel, which acknowledges it.
pub(super) struct Freezable {
    stream: TcpStream,
    frozen: Arc<AtomicBool>,
}

impl Freezable {
    pub fn new(stream: TcpStream, frozen: Arc<AtomicBool>) -> Self {
        Self { stream, frozen }
    }

    /// Nothing wakes what is frozen: it never thaws.
    fn unless_frozen<T>(&mut self, poll: impl FnOnce(Pin<&mut TcpStream>) -> Poll<T>) -> Poll<T> {
        if self.frozen.load(Ordering::SeqCst) { Poll::Pending } else { poll(Pin::new(&mut self.stream)) }
    }
}

impl AsyncRead for Freezable {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.unless_frozen(|stream| stream.poll_read(cx, buf))
    }
}

impl AsyncWrite for Freezable {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.unless_frozen(|stream| stream.poll_write(cx, buf))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.unless_frozen(|stream| stream.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.unless_frozen(|stream| stream.poll_shutdown(cx))
    }
}
