//! The broker's start: from its flags to its ports and tasks.

use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  # Serve with a certificate from files, which are read again when they change
  gmsa-tickets serve --config tickets.yaml --tls-cert tls.crt --tls-key tls.key";

/// What `serve` takes.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: Args) -> ExitCode {
    ExitCode::from(2)
}
