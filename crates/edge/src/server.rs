//! Connections: a [`Listener`] accepts them, gives each a place when it is its turn, makes the TLS handshake and speaks HTTP/1.1 to
//! the routes of a program.
//!
//! Invariants: nothing in here calls the API server or reads a file.

use tokio::time::sleep;

use crate::telemetry::{LogLimit, PERIOD};

mod connection;
mod handshake;
mod listener;
mod places;
mod threads;

pub use connection::Serving;
use connection::{DROPPED, FAILED_HANDSHAKES};
pub use handshake::Handshakes;
pub use listener::Listener;
use listener::SHORTAGES;
pub use places::{Busy, Place};
pub use threads::{MAX_THREADS, for_handshakes, threads};

/// Logs after each period how many lines about clients were left out in it: those of connections, and the program's `own`.
pub async fn summarize_log(own: &'static [&'static LogLimit]) {
    loop {
        sleep(PERIOD).await;
        [&DROPPED, &FAILED_HANDSHAKES, &SHORTAGES].into_iter().chain(own.iter().copied()).for_each(LogLimit::summarize);
    }
}
