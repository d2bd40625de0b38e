//! `kubectl gmsa`: finds mistakes before they fail a pod.
//!
//! Invariants: no command changes the cluster without `--apply` or `--restart`; no file is overwritten without `--force`; the
//! exit code is 0 where no problems are found, or where the reader of the output has closed the pipe, 1 where there are
//! findings, 2 where something could not be done.

use std::{
    env,
    io::{self, Write as _},
    process::ExitCode,
};

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

mod commands;
mod shared;

use commands::{
    account, can, check, complete, credspec, dns, doctor, explain, grant, outdated, probe, reference, verify, version,
    who_can, why,
};
use gmsa_core::{causes, quote::one_line};
use shared::{Outcome, connection::Connection, not_checked, output::json, print, rules};

const EXIT_CODES: &str =
    "Exit codes: 0 no problems found, 1 problems found, 2 something could not be read, asked or done";

/// YAML is parsed on several threads, which wait for each other in musl's own allocator: that takes twice as long.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Group Managed Service Accounts in Kubernetes: create credential specs, grant them, and find mistakes before a pod fails
#[derive(Debug, Parser)]
#[command(name = "kubectl-gmsa", bin_name = "kubectl gmsa", version, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check manifests, or the workloads of a cluster: what the webhook will do to each pod, and what it will refuse
    Check(check::Options),
    /// Lint and test accounts of Active Directory
    #[command(subcommand)]
    Account(account::Command),
    /// Make and lint credential specs
    #[command(subcommand)]
    Credspec(credspec::Command),
    /// Let a service account use a credential spec
    Grant(grant::Options),
    /// List who may use a credential spec, and why
    WhoCan(who_can::Options),
    /// List the credential specs that a service account may use, and why
    Can(can::Options),
    /// List workloads whose pods carry contents that their credential spec no longer has, and restart them
    Outdated(outdated::Options),
    /// Find the first cause why a workload, or a pod, does not run: from its template to its containers
    Why(why::Options),
    /// Diagnose an installation and the workloads that use it: each line is pass, warn, fail or skip, with what to do
    Doctor(doctor::Options),
    /// Print what has the DNS of a cluster forward a domain to its own DNS servers, for each platform
    Dns(dns::Options),
    /// Verify in a running container that it has its identity in the domain, or find the first cause why not
    Verify(verify::Options),
    /// Make a short-lived pod on Windows nodes, to see whether they give a container its identity
    Probe(probe::Options),
    /// Explain why a pod was refused, does not start, or has no identity: a status code, or a message
    Explain(explain::Options),
    /// Show the version of this program, and of the webhook in the cluster where it can be reached
    Version(version::Options),
    /// Print a completion script for a shell
    Completion {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    #[command(hide = true)]
    Man,
    /// Print this reference as Markdown
    #[command(hide = true)]
    Reference,
    /// Print the page of all rules as Markdown
    #[command(hide = true)]
    Rules,
}

/// The word by which `kubectl_complete-gmsa` asks what may follow. No command of clap's, which would read the words after it.
const COMPLETE: &str = "__complete";

fn main() -> ExitCode {
    let mut words = env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    if words.next().as_deref() == Some(COMPLETE) {
        let answer = complete::complete(&Cli::command(), &words.collect::<Vec<_>>());
        return print(answer).map_or(ExitCode::FAILURE, ExitCode::from);
    }
    let matches = grouped(with_exit_codes(Cli::command())).get_matches();
    let as_json = asks_for_json(&matches);
    match dispatch(Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())) {
        Ok(outcome) => outcome.into(),
        // The reader of the output has closed it (`| head`).
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let error = match not_checked::log_in(&error) {
                Some(remedy) => format!("{}. {remedy}", causes::chain(error.as_ref())),
                None => causes::chain(error.as_ref()),
            };
            let _ = writeln!(io::stderr(), "error: {}", one_line(&error));
            if as_json {
                // Where that cannot be written either, the exit code says it.
                let _ = json::error(&error).and_then(print);
            }
            Outcome::Incomplete.into()
        }
    }
}

/// The commands by what they are for, as the help has them.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Write", &["check", "credspec", "grant", "dns"]),
    ("Find out why", &["why", "explain", "doctor", "verify", "probe"]),
    ("See", &["who-can", "can", "outdated"]),
    ("Directory", &["account"]),
    ("Other", &["version", "completion"]),
];

/// The command line whose help has its commands in groups, each with the first part of what it does.
fn grouped(command: clap::Command) -> clap::Command {
    let line = |name: &&str| {
        let about = command.find_subcommand(name).and_then(clap::Command::get_about).map(ToString::to_string);
        let about = about.unwrap_or_default();
        format!("  {name:10}  {}\n", about.split(": ").next().unwrap_or_default())
    };
    let group =
        |(title, names): &(&str, &[&str])| format!("{title}:\n{}\n", names.iter().map(line).collect::<String>());
    let groups: String = GROUPS.iter().map(group).collect();
    let template = format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{{all-args}}{{after-help}}");
    command
        .override_usage("kubectl gmsa [OPTIONS] <COMMAND>")
        .help_template(template)
        .mut_subcommands(|below| below.hide(true))
}

/// Every command's help ends with them.
fn with_exit_codes(command: clap::Command) -> clap::Command {
    command.after_help(EXIT_CODES).mut_subcommands(with_exit_codes)
}

/// Whether the command is asked for JSON.
fn asks_for_json(mut matches: &ArgMatches) -> bool {
    while let Some((_, below)) = matches.subcommand() {
        matches = below;
    }
    let forms = matches.try_get_raw("output").ok().flatten();
    forms.is_some_and(|mut forms| forms.any(|form| form == "json"))
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn dispatch(cli: Cli) -> anyhow::Result<Outcome> {
    let Cli { connection, command } = cli;
    match command {
        Command::Check(options) => check::run(&options, &connection),
        Command::Account(command) => account::run(&command, &connection),
        Command::Credspec(command) => credspec::run(&command, &connection),
        Command::Grant(options) => grant::run(&options, &connection),
        Command::WhoCan(options) => who_can::run(&options, &connection),
        Command::Can(options) => can::run(&options, &connection),
        Command::Outdated(options) => outdated::run(&options, &connection),
        Command::Why(options) => why::run(&options, &connection),
        Command::Doctor(options) => doctor::run(&options, &connection),
        Command::Dns(options) => dns::run(&options),
        Command::Verify(options) => verify::run(&options, &connection),
        Command::Probe(options) => probe::run(&options, &connection),
        Command::Explain(options) => explain::run(&options),
        Command::Version(options) => version::run(&options, &connection),
        Command::Completion { shell } => {
            let mut script = Vec::new();
            // The name of the program: kubectl completes a plugin by a program of its own.
            clap_complete::generate(shell, &mut Cli::command(), "kubectl-gmsa", &mut script);
            print(script)
        }
        Command::Man => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            print(page)
        }
        Command::Rules => print(rules::page()),
        Command::Reference => {
            let command = Cli::command().after_help(EXIT_CODES);
            print(reference::reference(&command, &grouped(command.clone())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_is_in_one_group() {
        let command = Cli::command();
        let mut shown: Vec<&str> =
            command.get_subcommands().filter(|below| !below.is_hide_set()).map(clap::Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, shown);
    }
}
