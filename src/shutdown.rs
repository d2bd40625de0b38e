//! The end of the process, in order: unready → wait for endpoints to forget us → stop accepting → drain → stop.
//!
//! What always holds: steps are only ever gone forward; whoever waits may give up at a second signal.

use std::{io, time::Duration};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

/// The two facts that the rest of the process waits for.
#[derive(Clone, Debug)]
pub struct Shutdown {
    ending: watch::Sender<bool>,
    closing: watch::Sender<bool>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self { ending: watch::Sender::new(false), closing: watch::Sender::new(false) }
    }
}

impl Shutdown {
    /// True once the process is to end: it is not ready any more, but it still accepts.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        *self.ending.borrow()
    }

    /// Becomes true when sockets are to be closed and requests in flight to be finished.
    #[must_use]
    pub fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }

    /// Withdraws readiness, waits for `delay`, then has sockets closed.
    pub async fn begin(&self, delay: Duration) {
        self.ending.send_replace(true);
        tokio::time::sleep(delay).await;
        self.closing.send_replace(true);
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
