//! The names of a program, wherever it writes them, and how it runs.

use std::{error::Error, io, process::ExitCode};

use gmsa_core::causes::chain;
use tokio::runtime::Handle;

use crate::{
    server::{for_handshakes, runtime},
    telemetry::{self, CRATE, Endpoint, Levels, LogFormat, Traces},
};

/// A program that serves with this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// `gmsa-webhook`: in certificates, spans, annotations and `managedFields`. With `_` for `-`, the names of its metrics and of its
    /// modules in the log begin with it.
    pub name: &'static str,
    /// Its version, in spans.
    pub version: &'static str,
    /// `webhook`: what messages and help texts of metrics call it.
    pub noun: &'static str,
    /// The target of the spans that are exported. No log line has it.
    pub spans: &'static str,
}

impl Program {
    /// The name as Rust and Prometheus write it.
    #[must_use]
    pub fn module(&self) -> String {
        self.name.replace('-', "_")
    }

    /// Runs a server with a log, and with traces where a collector is named: `serve` gets the threads of handshakes. Returns the exit code: 0, or 2
    /// after an error, which is logged.
    ///
    /// # Errors
    /// Where the system gives no threads.
    pub fn run<S, E>(
        self,
        levels: Levels,
        format: LogFormat,
        collector: Option<&Endpoint>,
        serve: impl FnOnce(Handle) -> S,
    ) -> io::Result<ExitCode>
    where
        S: Future<Output = Result<(), E>>,
        E: AsRef<dyn Error + 'static>,
    {
        let runtime = runtime()?;
        let started = collector.map(|collector| Traces::start(self, collector, runtime.handle().clone())).transpose();
        // A server works without traces: a collector that cannot be used is logged, once there is a log.
        let (traces, failed) = started.map_or_else(|error| (None, Some(error)), |traces| (traces, None));
        let _log = telemetry::init(&self, levels, format, traces.as_ref());
        if let Some(error) = failed {
            tracing::error!(target: CRATE, "no traces are exported: {}", chain(&error));
        }
        let handshakes = for_handshakes()?;
        let ended = runtime.block_on(serve(handshakes.handle().clone())).map_or_else(
            |error| {
                tracing::error!(target: CRATE, "{}", chain(error.as_ref()));
                ExitCode::from(2)
            },
            |()| ExitCode::SUCCESS,
        );
        if let Some(traces) = traces {
            traces.shutdown();
        }
        Ok(ended)
    }
}

/// The program of the unit tests.
#[cfg(test)]
pub(crate) const TESTED: Program =
    Program { name: "gmsa-webhook", version: "1.2.3", noun: "webhook", spans: "gmsa_webhook::trace" };
