//! The end of a program: after a signal it is unready, and each connection is closed after its next answer; after a delay, in which the
//! endpoints forget this replica, it stops accepting, and lets the requests in flight finish. A second SIGTERM ends the delay, and the requests
//! in flight still finish; SIGINT while it is ending ends it at once.
//! `LAST_CALL` in `listener.rs` is the time of idle connections.
//!
//! Invariant: every task has an owner, and a task that ends unexpectedly before the first signal ends the process.

use std::{io, time::Duration};

use axum::Router;
use thiserror::Error;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    task::JoinSet,
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use crate::{
    Program,
    server::{Listener, summarize_log},
    telemetry::LogLimit,
};

/// The tasks of a process. None of them ends on its own.
pub type Tasks = JoinSet<()>;

const TERMINATE: &str = "SIGTERM";
const INTERRUPT: &str = "SIGINT";

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
            _ = self.terminate.recv() => TERMINATE,
            _ = self.interrupt.recv() => INTERRUPT,
        }
    }
}

fn end_at_once() {
    tracing::warn!(signal = INTERRUPT, "ended at once by a second signal");
}

/// Why a program ended other than by its signals.
#[derive(Debug, Error)]
pub enum EndError {
    #[error("a part of the server ended unexpectedly")]
    Task,
    #[error("the {0}'s listener ended unexpectedly")]
    Listener(&'static str),
}

/// A program whose ports are bound.
pub struct Bound {
    pub program: Program,
    /// Its port and its routes.
    pub main: (Listener, Router),
    /// The admin port, which answers until the process ends.
    pub admin: (Listener, Router),
    /// Tasks that must run while it serves.
    pub tasks: Tasks,
    pub signals: Signals,
    /// Cancelled by the first signal: that of [`Readiness`](crate::admin::Readiness) and of [`Serving`](crate::server::Serving).
    pub ending: CancellationToken,
    /// How long to serve after the first signal: endpoints and API servers must have learned of it.
    pub delay: Duration,
    /// How long requests in flight may take after the socket is closed.
    pub drain: Duration,
    /// The program's own log lines about clients.
    pub log_limits: &'static [&'static LogLimit],
}

impl Bound {
    /// Serves until a signal, and then until the requests in flight are answered.
    ///
    /// # Errors
    /// Where a task or the listener has ended.
    pub async fn serve(self) -> Result<(), EndError> {
        let Self { program, main: (listener, router), admin, mut tasks, mut signals, ending, delay, drain, log_limits } =
            self;
        let closing = CancellationToken::new();
        tasks.spawn(async move {
            admin.0.serve(admin.1, CancellationToken::new(), drain).await;
        });
        tasks.spawn(summarize_log(log_limits));
        let mut served = tokio::spawn(listener.serve(router, closing.clone(), drain));
        tokio::select! {
            signal = signals.next() => tracing::info!(signal, "ending"),
            _ = tasks.join_next() => return Err(EndError::Task),
            _ = &mut served => return Err(EndError::Listener(program.noun)),
        }
        ending.cancel();
        tokio::select! {
            () = sleep(delay) => {}
            _ = signals.terminate.recv() => tracing::info!(signal = TERMINATE, "ending without further delay"),
            _ = signals.interrupt.recv() => {
                end_at_once();
                return Ok(());
            }
        }
        closing.cancel();
        tokio::select! {
            dropped = served => {
                let dropped = dropped.map_err(|_| EndError::Listener(program.noun))?;
                tracing::info!(dropped_connections = dropped, "ended");
            }
            _ = signals.interrupt.recv() => end_at_once(),
        }
        Ok(())
    }
}
