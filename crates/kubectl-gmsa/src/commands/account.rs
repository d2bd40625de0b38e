//! `account`: what the directory holds of an account, what is wrong with it, and who may retrieve its password.

use clap::Subcommand;

use crate::shared::{Outcome, connection::Connection};

mod head;
mod lint;
mod test;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what the directory holds of accounts, and find what is wrong with them before a node asks for their password
    Lint(lint::Options),
    /// Find out whether a user may retrieve the password of an account, without keeping it, and if not, why
    Test(test::Options),
}

pub fn run(command: &Command, connection: &Connection) -> anyhow::Result<Outcome> {
    match command {
        Command::Lint(options) => lint::run(options, connection),
        Command::Test(options) => test::run(options),
    }
}
