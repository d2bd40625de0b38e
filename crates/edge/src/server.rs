//! Connections: a [`Listener`] accepts them, gives each a place when it is its turn, makes the TLS handshake and speaks HTTP/1.1 to
//! the routes of a program.
//!
//! Invariants: nothing in here calls the API server or reads a file.

use axum::body::Body;
use http_body_util::BodyExt as _;
use tokio::time::{sleep, timeout};

use crate::{
    limits::LINGER_TIMEOUT,
    telemetry::{LogLimit, PERIOD, report_dropped},
};

mod connection;
mod handshake;
mod listener;
mod places;
mod threads;

pub use connection::Serving;
use connection::{DROPPED, FAILED_HANDSHAKES};
pub use handshake::Handshakes;
use listener::SHORTAGES;
pub use listener::{Listener, socket_address};
pub use places::{Busy, Place, Places};
pub use threads::{MAX_THREADS, for_handshakes, runtime, serving_threads};

/// Reads and drops what a client is still sending, for a while.
pub async fn linger(mut body: Body) {
    // Ends at end of body, disconnect or timeout.
    let _ = timeout(LINGER_TIMEOUT, async { while let Some(Ok(_)) = body.frame().await {} }).await;
}

/// Logs after each period how many lines about clients were left out in it: lines about connections, and the program's `own`. And how many lines
/// of any kind were dropped.
pub async fn summarize_log(own: &'static [&'static LogLimit]) {
    let mut dropped_lines = 0;
    loop {
        sleep(PERIOD).await;
        dropped_lines = report_dropped(dropped_lines);
        [&DROPPED, &FAILED_HANDSHAKES, &SHORTAGES].into_iter().chain(own.iter().copied()).for_each(LogLimit::summarize);
    }
}
