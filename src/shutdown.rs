//! The end of the process, in order: unready → wait until no endpoint names this replica → stop accepting → drain → stop.
//!
//! `bin/gmsa-webhook/main.rs` takes the steps. From the first on, [`Bound::leaving`](crate::server::Bound::leaving) has each
//! connection closed after its next answer (`Connection: close`).
//!
//! Invariants: the steps are only taken forward, and a second signal ends the wait.

use std::{io, time::Duration};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The two steps that the rest of the process waits for.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    ending: CancellationToken,
    closing: CancellationToken,
}

impl Shutdown {
    /// Cancelled once the process is to end: it is not ready any more, but it still accepts. What is connected should go
    /// elsewhere.
    #[must_use]
    pub fn ending(&self) -> CancellationToken {
        self.ending.clone()
    }

    /// Cancelled when sockets are to be closed and requests in flight to be finished.
    #[must_use]
    pub fn closing(&self) -> CancellationToken {
        self.closing.clone()
    }

    /// Withdraws readiness, waits for `delay`, then has sockets closed.
    pub async fn begin(&self, delay: Duration) {
        self.ending.cancel();
        tokio::time::sleep(delay).await;
        self.closing.cancel();
    }
}

/// SIGTERM (Kubernetes) and SIGINT (a person).
#[derive(Debug)]
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
