//! The signals that end the process: SIGTERM and SIGINT. What follows one is in `serve` of `main.rs`.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM (Kubernetes) and SIGINT (a person).
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Takes over both signals.
    ///
    /// # Errors
    /// Where the system refuses a handler.
    pub fn install() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next one and names it.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
