//! `kubectl gmsa`: finds mistakes before they fail a pod.
//!
//! Invariants: only `--apply`, and the short-lived pod of `probe`, change a cluster; no file is overwritten without `--force`. The exit
//! code is an [`Outcome`], which says what each number means; 2 also for a wrong command line, 0 where the reader of the output has closed the pipe.

use std::{
    env,
    io::{self, Write as _},
    process::ExitCode,
};

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

mod commands;
mod shared;

use commands::{
    account, check, complete, credspec, doctor, explain, grant, outdated, probe, verify, version, who_can, why,
};
use gmsa_core::{causes, quote::one_line};
use shared::{
    Outcome,
    connection::{Connection, HEADING},
    output::json,
    print, print_clean, unread,
};

/// The last lines of every help.
const FOOTER: &str = "Use \"kubectl gmsa --help\" for a list of the options that all commands on a cluster take.
Exit codes: 0 no problems, 1 problems, 2 something could not be read or done";

const EXAMPLES: &str = "Examples:
  # Find mistakes in manifests before they are applied
  kubectl gmsa check -f manifests/

  # Find out why a Deployment does not run
  kubectl gmsa why deploy/web -n shop

  # Check the installation, and what uses it
  kubectl gmsa doctor";

const COMPLETION_EXAMPLES: &str = "Examples:
  # For bash, in this shell
  source <(kubectl gmsa completion bash)

  # For PowerShell
  kubectl gmsa completion powershell | Out-String | Invoke-Expression";

/// YAML is parsed on several threads, which wait for each other in musl's own allocator: that takes twice as long.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Create, grant and check GMSA credential specs, and find out why a pod fails
#[derive(Debug, Parser)]
#[command(name = "kubectl-gmsa", bin_name = "kubectl gmsa", version, propagate_version = true, after_long_help = EXAMPLES)]
struct Cli {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check manifests, or the workloads of a cluster
    ///
    /// Shows what the webhook will do to each pod, and what it will refuse
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
    /// List workloads whose pods carry old contents
    ///
    /// Contents are old once their credential spec has changed
    Outdated(outdated::Options),
    /// Find the first cause why a workload or a pod does not run
    ///
    /// From its template to its containers
    Why(why::Options),
    /// Diagnose an installation and the workloads that use it
    ///
    /// Each line is pass, note, warn, fail or skip, with what to do
    Doctor(doctor::Options),
    /// Verify in a running container that it has its identity
    ///
    /// If it has no identity in the domain, the first cause is named
    Verify(verify::Options),
    /// Try in a short-lived pod whether nodes give an identity
    Probe(probe::Options),
    /// Explain a status code or a message
    ///
    /// Why a pod was refused, does not start, or has no identity
    Explain(explain::Options),
    /// Show the versions of this program and of the webhook
    ///
    /// The webhook's version needs a cluster that can be reached
    Version(version::Options),
    /// Print a completion script for a shell
    #[command(after_long_help = COMPLETION_EXAMPLES)]
    Completion {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
}

/// The word that `kubectl_complete-gmsa` passes to ask for completions. It is not a command of clap, which would parse the words after it.
const COMPLETE: &str = "__complete";

fn main() -> ExitCode {
    let mut words = env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    if words.next().as_deref() == Some(COMPLETE) {
        let answer = complete::complete(&Cli::command(), &words.collect::<Vec<_>>());
        return finish(print_clean(answer), false);
    }
    let matches = helpful(Cli::command()).get_matches();
    let as_json = asks_for_json(&matches);
    finish(dispatch(Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())), as_json)
}

/// The exit code of a result. An error is printed, as JSON too where that was asked for.
fn finish(result: anyhow::Result<Outcome>, as_json: bool) -> ExitCode {
    match result {
        Ok(outcome) => ExitCode::from(outcome as u8),
        // The reader of the output has closed it (`| head`).
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let error = match unread::remedy_of(&error) {
                Some(remedy) => format!("{}. {remedy}", causes::chain(error.as_ref())),
                None => causes::chain(error.as_ref()),
            };
            let _ = writeln!(io::stderr(), "error: {}", one_line(&error));
            if as_json {
                // If standard output fails too, the exit code still reports the error.
                let _ = json::error(&error).and_then(print);
            }
            ExitCode::from(Outcome::Incomplete as u8)
        }
    }
}

/// The commands in the groups that the help shows.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Write", &["check", "credspec new", "credspec lint", "grant"]),
    ("Find out why", &["why", "explain", "doctor", "verify", "probe"]),
    ("See", &["who-can", "outdated"]),
    ("Directory", &["account lint", "account test"]),
    ("Other", &["version", "completion"]),
];

/// The command line with its help: commands in groups, the cluster's options in the long help alone, the same last lines everywhere.
fn helpful(command: clap::Command) -> clap::Command {
    let line = |name: &&str| {
        let below = name.split(' ').try_fold(&command, |above, word| above.find_subcommand(word));
        let about = below.and_then(clap::Command::get_about).map(ToString::to_string).unwrap_or_default();
        format!("  {name:13}  {about}\n")
    };
    let group =
        |(title, names): &(&str, &[&str])| format!("{title}:\n{}\n", names.iter().map(line).collect::<String>());
    let groups: String = GROUPS.iter().map(group).collect();
    let template = format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{{all-args}}{{after-help}}");
    with_footer(command)
        .override_usage("kubectl gmsa [OPTIONS] <COMMAND>")
        .help_template(template)
        .mut_args(
            |option| if option.get_help_heading() == Some(HEADING) { option.hide_short_help(true) } else { option },
        )
        .mut_subcommands(|below| below.hide(true))
}

/// Adds the footer to the help of every command, after the examples.
fn with_footer(command: clap::Command) -> clap::Command {
    let examples = command.get_after_long_help().map(|examples| format!("{examples}\n\n")).unwrap_or_default();
    command.after_help(FOOTER).after_long_help(format!("{examples}{FOOTER}")).mut_subcommands(with_footer)
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
        Command::Outdated(options) => outdated::run(&options, &connection),
        Command::Why(options) => why::run(&options, &connection),
        Command::Doctor(options) => doctor::run(&options, &connection),
        Command::Verify(options) => verify::run(&options, &connection),
        Command::Probe(options) => probe::run(&options, &connection),
        Command::Explain(options) => explain::run(&options),
        Command::Version(options) => version::run(&options, &connection),
        Command::Completion { shell } => {
            let mut script = Vec::new();
            // The name of the program: kubectl asks a separate program for the completions of a plugin.
            clap_complete::generate(shell, &mut Cli::command(), "kubectl-gmsa", &mut script);
            print_clean(script)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    mod pages;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// A command and all below it that are shown, each by its words.
    fn commands(command: &clap::Command, words: &str, found: &mut Vec<(String, clap::Command)>) {
        for below in command.get_subcommands().filter(|below| !pages::HIDDEN.contains(&below.get_name())) {
            let words = format!("{words} {}", below.get_name());
            found.push((words.trim_start().to_owned(), below.clone()));
            commands(below, &words, found);
        }
    }

    fn all() -> Vec<(String, clap::Command)> {
        let mut root = helpful(Cli::command());
        root.build();
        let mut found = vec![(String::new(), root.clone())];
        commands(&root, "", &mut found);
        found
    }

    #[test]
    fn every_command_is_in_one_group() {
        let all = all();
        let mut shown: Vec<&str> = all
            .iter()
            .filter(|(words, this)| !words.is_empty() && !this.has_subcommands())
            .map(|(words, _)| words.as_str())
            .collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, shown);
    }

    /// The rows of a terminal, 80 columns wide, that a text takes.
    fn rows(text: &str) -> usize {
        text.trim_end().lines().map(|line| line.chars().count().div_ceil(80).max(1)).sum()
    }

    #[test]
    fn short_help_fits_a_screen() {
        let rows: Vec<(String, usize)> =
            all().into_iter().map(|(words, mut this)| (words, rows(&this.render_help().to_string()))).collect();
        // A screen has 24 rows; what has more options fits a window of 40.
        let tall = rows.iter().filter(|(_, rows)| *rows > 24).count();
        assert!(tall <= 6 && rows.iter().all(|(_, rows)| *rows <= 40), "{rows:?}");
    }

    /// Flags that are not shown with a list of values name them in words.
    #[test]
    fn every_value_of_an_option_is_in_its_help() {
        for (words, this) in all() {
            for option in this.get_arguments().filter(|option| option.is_hide_possible_values_set()) {
                let help = option.get_help().map(ToString::to_string).unwrap_or_default();
                for value in option.get_possible_values().iter().map(clap::builder::PossibleValue::get_name) {
                    assert!(help.contains(value), "{words} --{}: {value}", option.get_id());
                }
            }
        }
    }

    /// The words of a command line, quotes removed.
    fn typed(line: &str) -> Vec<String> {
        let parts = line.split('"').enumerate();
        let words = parts.flat_map(|(i, part)| if i % 2 == 1 { vec![part] } else { part.split_whitespace().collect() });
        words.map(str::to_owned).collect()
    }

    /// The commands of this program in a line of a shell.
    fn of_this_program(line: &str) -> impl Iterator<Item = &str> {
        let found = line.split(['|', '<', '>', '(', ')']).map(str::trim);
        found.filter_map(|part| part.strip_prefix("kubectl gmsa"))
    }

    #[test]
    fn every_command_has_examples_that_parse() {
        let mut count = 0;
        for (words, this) in all() {
            let help = this.clone().render_long_help().to_string();
            let (_, examples) = help.split_once("\nExamples:\n").unwrap_or_else(|| panic!("{words:?} has no examples"));
            let (examples, footer) = examples.split_once("\n\nUse ").unwrap();
            assert_eq!(format!("Use {}", footer.trim_end()), FOOTER, "{words}");
            let (mut lines, mut own) = (0, 0);
            for example in examples.split("\n\n") {
                let (about, line) = example.split_once('\n').unwrap();
                assert!(about.starts_with("  # ") && !line.contains('\n'), "{example:?}");
                for command in of_this_program(line) {
                    let matches = Cli::command()
                        .try_get_matches_from([&["kubectl gmsa".to_owned()], &typed(command)[..]].concat());
                    let matches = matches.unwrap_or_else(|error| panic!("{line}: {error}"));
                    Cli::from_arg_matches(&matches).unwrap();
                    own += usize::from(command.trim_start().starts_with(&words));
                }
                lines += 1;
            }
            assert!((2..=4).contains(&lines), "{words}: {lines} examples");
            assert!(own == lines, "{words}: an example of another command");
            count += lines;
        }
        assert!(count >= 40, "{count}");
    }
}
