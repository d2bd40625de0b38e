//! The sidecar's program: it gets tickets from the broker and keeps them in files that the pod's other containers read.

use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  # Keep the tickets of the credential spec webapp1 in /var/run/gmsa
  gmsa-tickets agent --credential-spec webapp1";

/// What `agent` takes.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: Args) -> ExitCode {
    ExitCode::from(2)
}
