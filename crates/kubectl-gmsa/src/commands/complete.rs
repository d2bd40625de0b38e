//! `__complete`: the completions of a command line, for `kubectl gmsa <TAB>`.
//!
//! kubectl runs `kubectl_complete-gmsa` with the words after `kubectl gmsa`, to complete the last one. It reads a candidate on
//! each line, with a description after a tab, and a last line `:DIRECTIVE`: `GetPluginCompletions` in kubectl's `pkg/cmd/plugin`, and
//! `ShellCompDirective` in cobra.

use clap::{Arg, ArgAction, Command, ValueHint};

/// Cobra's directive that lets the shell complete names of files.
const FILES: &str = ":0";
/// Cobra's directive that turns completion of file names off.
const NO_FILES: &str = ":4";

/// The answer for the words after `kubectl gmsa`.
pub fn complete(root: &Command, words: &[String]) -> String {
    let mut root = root.clone();
    root.build();
    let (typed, before) = words.split_last().map_or(("", &[][..]), |(typed, before)| (typed.as_str(), before));
    let (mut command, mut option, mut positionals) = (&root, None, 0);
    for word in before {
        if option.take().is_some() {
            // The value of the previous option.
        } else if word.starts_with('-') {
            option = find_option(command, word).filter(|option| {
                matches!(option.get_action(), ArgAction::Set | ArgAction::Append) && !option.is_require_equals_set()
            });
        } else if let Some(below) = command.find_subcommand(word) {
            command = below;
        } else {
            positionals += 1;
        }
    }
    let (candidates, directive) = if let Some(option) = option {
        values(option, "")
    } else if let Some((name, _)) = typed.split_once('=').filter(|(name, _)| name.starts_with("--")) {
        find_option(command, name).map_or((Vec::new(), NO_FILES), |option| values(option, &format!("{name}=")))
    } else if typed.starts_with('-') {
        let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
        let lines =
            shown.filter_map(|argument| Some(line(&format!("--{}", argument.get_long()?), argument.get_help())));
        (lines.collect(), NO_FILES)
    } else if command.has_subcommands() && positionals == 0 {
        let shown = command.get_subcommands().filter(|below| !below.is_hide_set());
        (shown.map(|below| line(below.get_name(), below.get_about())).collect(), NO_FILES)
    } else {
        command.get_positionals().nth(positionals).map_or((Vec::new(), NO_FILES), |argument| values(argument, ""))
    };
    let lines = candidates.iter().filter(|line| line.starts_with(typed)).map(String::as_str);
    lines.chain([directive]).flat_map(|line| [line, "\n"]).collect()
}

fn find_option<'c>(command: &'c Command, word: &str) -> Option<&'c Arg> {
    command.get_arguments().find(|argument| match word.strip_prefix("--") {
        Some(name) => argument.get_long() == Some(name),
        None => argument.get_short().is_some_and(|short| word == format!("-{short}")),
    })
}

/// The values that an argument can have, each after `start`.
fn values(argument: &Arg, start: &str) -> (Vec<String>, &'static str) {
    let possible = argument.get_possible_values();
    let known = possible.iter().filter(|value| !value.is_hide_set());
    let lines = known.map(|value| line(&format!("{start}{}", value.get_name()), value.get_help())).collect();
    let names_files =
        matches!(argument.get_value_hint(), ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath);
    (lines, if names_files { FILES } else { NO_FILES })
}

/// A candidate, and the first line of its description.
fn line(candidate: &str, help: Option<&clap::builder::StyledStr>) -> String {
    let help = help.map(ToString::to_string).unwrap_or_default();
    match help.lines().next() {
        Some(help) => format!("{candidate}\t{help}"),
        None => candidate.to_owned(),
    }
}
