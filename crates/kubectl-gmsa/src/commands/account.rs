//! `account`: what is wrong with an account of Active Directory, what the directory holds of it, who may retrieve its password, and a new one.

use clap::Subcommand;

use crate::shared::{Outcome, connection::Connection};

mod get;
mod lint;
mod new;
mod test;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what the directory holds of accounts, and who may retrieve their passwords
    Get(get::Options),
    /// Find what is wrong with accounts, before a node asks for their password
    Lint(lint::Options),
    /// Find out whether a user may retrieve the password of an account, without keeping it, and if not, why
    Test(test::Options),
    /// Make an account: print the command or the LDIF that makes it, or make it in the directory
    New(Box<new::Options>),
}

pub fn run(command: &Command, connection: &Connection) -> anyhow::Result<Outcome> {
    match command {
        Command::Get(options) => get::run(options),
        Command::Lint(options) => lint::run(options, connection),
        Command::Test(options) => test::run(options),
        Command::New(options) => new::run(options),
    }
}
