//! The names of a program, wherever it writes them, and how it runs.

use std::{error::Error, io, process::ExitCode};

use gmsa_core::causes::chain;
use tokio::runtime::Handle;

use crate::{
    server::{for_handshakes, runtime},
    telemetry::{self, Endpoint, LogArgs, Traces},
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
    /// Runs a server with a log, and with traces where a collector is named and can be used: `serve` gets the threads of handshakes. Returns the
    /// exit code: 0, or 2 after an error, which is logged.
    ///
    /// # Errors
    /// Where the system gives no threads.
    pub fn run<E: AsRef<dyn Error>>(
        self,
        log: LogArgs,
        collector: Option<&Endpoint>,
        serve: impl AsyncFnOnce(Handle) -> Result<(), E>,
    ) -> io::Result<ExitCode> {
        let (runtime, handshakes) = (runtime()?, for_handshakes()?);
        let traces = collector.map(|collector| Traces::start(self, collector, runtime.handle().clone())).transpose();
        let _log = telemetry::init(&self, log, traces.as_ref().ok().and_then(Option::as_ref));
        if let Err(error) = &traces {
            tracing::error!("no traces are exported: {}", chain(error));
        }
        let ended = runtime.block_on(serve(handshakes.handle().clone()));
        if let Err(error) = &ended {
            tracing::error!("{}", chain(error.as_ref()));
        }
        if let Ok(Some(traces)) = traces {
            traces.shutdown();
        }
        Ok(ExitCode::from(if ended.is_ok() { 0 } else { 2 }))
    }
}

/// The program of the unit tests.
#[cfg(test)]
pub(crate) const TESTED: Program =
    Program { name: "gmsa-webhook", version: "1.2.3", noun: "webhook", spans: "gmsa_webhook::trace" };
