//! The names of a program, wherever it writes them.

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
}

/// The program of the unit tests.
#[cfg(test)]
pub(crate) const TESTED: Program =
    Program { name: "gmsa-webhook", version: "1.2.3", noun: "webhook", spans: "gmsa_webhook::trace" };
