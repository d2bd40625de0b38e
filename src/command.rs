//! The server's commands beside `serve`: they print a report and end.

use std::process::ExitCode;

pub mod certs;
pub mod crd;
pub mod install_test;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No problems were found.
    Clean,
    /// The report names problems.
    Findings,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        Self::from(match outcome {
            Outcome::Clean => 0,
            Outcome::Findings => 1,
        })
    }
}
