//! `credspec`: makes and lints credential specs.

use std::path::Path;

use anyhow::Context as _;
use clap::Subcommand;

use crate::shared::{Outcome, connection::Connection, input};
use gmsa_accounts::powershell;
use gmsa_core::credspec::generate::Domain;

mod lint;
mod new;

const EXAMPLES: &str = "Examples:
  # Make a credential spec, and lint it
  kubectl gmsa credspec new --account WebApp1 --from-ad domain.json --out webapp1.yaml

  # Lint a file
  kubectl gmsa credspec lint -f webapp1.yaml";

#[derive(Debug, Subcommand)]
#[command(after_long_help = EXAMPLES)]
pub enum Command {
    /// Make a credential spec
    ///
    /// From flags, from the directory, or from what PowerShell prints
    New(Box<new::Options>),
    /// Find problems in credential specs
    Lint(Box<lint::Options>),
}

pub fn run(command: &Command, connection: &Connection) -> anyhow::Result<Outcome> {
    match command {
        Command::New(options) => new::run(options),
        Command::Lint(options) => lint::run(options, connection),
    }
}

/// The domain, in any output format of PowerShell.
fn domain(path: &Path) -> anyhow::Result<Domain> {
    powershell::domain(&input::text(path)?).with_context(|| format!("cannot read the domain from {}", path.display()))
}
