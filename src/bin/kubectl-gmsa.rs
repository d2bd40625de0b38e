//! `kubectl gmsa`: the people's tool. Everything it does is in [`gmsa_webhook::cli`].

use std::process::ExitCode;

use clap::Parser as _;
use gmsa_webhook::cli::{Cli, run};

fn main() -> ExitCode {
    run(Cli::parse())
}
