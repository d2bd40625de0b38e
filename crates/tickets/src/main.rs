//! The program: one of its two commands.
//!
//! Exit codes: 0 after a signal, or where `agent ready` or `agent test` finds no fault; 1 where one does; 2 where it could not start or a
//! part of it failed.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use gmsa_tickets::{agent, serve};
use mimalloc::MiMalloc;
use rustix::process::{Resource, Rlimit, setrlimit};
use zeroizing_alloc::ZeroAlloc;

/// Returns memory to the system soon after a peak, and wipes what is freed: buffers of TLS hold passwords and tickets, too.
#[global_allocator]
static ALLOCATOR: ZeroAlloc<MiMalloc> = ZeroAlloc(MiMalloc);

/// Kerberos tickets of Group Managed Service Accounts (GMSA) for Linux pods in Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "gmsa-tickets", version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the broker, which gives tickets to pods.
    #[command(after_long_help = serve::EXAMPLES)]
    Serve(Box<serve::Args>),
    /// Get tickets for the pod that this runs in, and keep them current.
    #[command(after_long_help = agent::EXAMPLES)]
    Agent(Box<agent::Args>),
}

fn main() -> ExitCode {
    // A core dump would hold keys and passwords.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    match Args::parse().command {
        Command::Serve(args) => serve::run(*args),
        Command::Agent(args) => agent::run(*args),
    }
}
