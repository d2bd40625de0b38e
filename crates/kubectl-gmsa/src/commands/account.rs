//! `account`: an account as the directory has it, its problems, the hosts that may retrieve its password, and a test of its password.

use clap::Subcommand;

use crate::shared::{Outcome, connection::Connection};

mod lint;
mod test;

const EXAMPLES: &str = "Examples:
  # Lint what PowerShell printed of an account
  kubectl gmsa account lint -f account.json

  # Ask a domain controller for the password of an account
  kubectl gmsa account test WebApp1 --directory contoso.com --directory-user plugin@contoso.com";

#[derive(Debug, Subcommand)]
#[command(after_long_help = EXAMPLES)]
pub enum Command {
    /// Find what is wrong with accounts of Active Directory
    ///
    /// Shows their properties in the directory, before a node asks for their password
    Lint(lint::Options),
    /// Find out whether a user may retrieve an account's password
    ///
    /// The password is not kept. If the user may not, the cause is named. `--ticket` also logs on as the account
    Test(test::Options),
}

pub fn run(command: &Command, connection: &Connection) -> anyhow::Result<Outcome> {
    match command {
        Command::Lint(options) => lint::run(options, connection),
        Command::Test(options) => test::run(options),
    }
}
