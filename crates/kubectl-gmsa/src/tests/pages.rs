//! The page that is written from the program: `docs/cli.md` from the command line.

use std::{fmt::Write as _, fs, iter, path::Path};

use clap::{Arg, Args as _, Command, CommandFactory as _};

use crate::{
    Cli, FOOTER, HEADING, helpful,
    shared::{connection::Connection, directory::HEADING as DIRECTORY},
};

/// Hidden commands.
pub const HIDDEN: [&str; 1] = ["help"];

const JSON: &str = "
## JSON

Every command that takes `-o json` prints one object on standard output, also where it fails. `doctor --list` and a wrong command line print text:

| field | of | |
|---|---|---|
| `version` | all | of this shape: 1. It rises when a field goes or means something else; new fields may come without |
| `exitCode` | all | the exit code of the command |
| `error` | all | why the command failed; beside it are `version` and `exitCode` alone |
| `totals` | reports, checks | the numbers of objects, findings or checks, by severity or result; `ignored` is what `--ignore` left out |
| `findings` | reports, grants | each with `level`, `rule`, `file`, `object`, `field`, `message` and, where there is one, `line`, `consequence` and `fix`. After 100 of a rule in a file, \
the last says in `more` how many are left out |
| `places` | `check` | each place that names a credential spec, with `file`, `line`, `object`, `slot`, `credentialSpec`, `admitted` and `result`. For the cluster (`-A`) \
`file` is `NAMESPACE/KIND/NAME`, also in findings, without `line` |
| `checks` | `doctor`, `why`, `verify`, `probe`, `account test` | each with `status` (`pass`, `note`, `warn`, `fail`, `skip`), `about`, `text` and, where it does not pass, `rule` and `remedy` |
| `grants` | `who-can` | each with `binding` and `role` (`kind`, `name` and, in one namespace, `namespace`), and `subject` or `credentialSpec` |
| `actAsPods` | `who-can` | who may act as their pods: as in `grants`, with `may`, words of `kubectl` |
| `explanations` | `explain` | each with `found` and `causes`, which have `rule`, `text`, `remedy` and, where it matters, `phase` (`start`, `running`). \
`text` says what is no fault or not known |
| `plugin`, `webhook` | `version` | their versions; `webhook` is a list, of two during a rollout; `unknown` says why it is empty |

`credspec new` and `grant` print manifests, as YAML.
";

/// Compares the page with what it must hold, or writes it.
fn compare(page: &str, expected: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&file, expected).unwrap();
    }
    assert_eq!(fs::read_to_string(&file).unwrap().replace("\r\n", "\n"), expected, "{page}");
}

#[test]
fn the_reference_is_what_the_help_says() {
    compare("cli.md", &reference(&helpful(Cli::command())));
}

/// The options of the connection.
fn options() -> String {
    let cluster = Connection::augment_args(Command::new("options"));
    let mut only = bare(cluster).next_line_help(true).help_template("{all-args}");
    format!("Every command that asks a cluster takes these options:\n\n{}", only.render_help())
}

/// Every command with its options, as Markdown. Shared options are listed once.
fn reference(root: &Command) -> String {
    let root = &root
        .clone()
        .mut_args(|option| if option.get_help_heading() == Some(HEADING) { option.hide(true) } else { option });
    let mut below = root.clone().mut_subcommands(bare);
    below.build();
    let mut out =
        "# kubectl gmsa\n\nWritten by `UPDATE_SNAPSHOTS=1 cargo test -p kubectl-gmsa`: do not edit.\n".to_owned();
    block(&mut out, &root.clone().render_long_help().to_string());
    out.push_str("\n## Options of the cluster\n");
    block(&mut out, &options());
    out.push_str("\n## Options of the directory\n");
    block(&mut out, &directory(&below));
    for below in shown(&below) {
        command(&mut out, below, 1);
    }
    out.push_str(JSON);
    out
}

/// The options of the directory, and the commands that take them.
fn directory(root: &Command) -> String {
    let all = shown(root).flat_map(|below| iter::once(below).chain(shown(below)));
    let takers: Vec<&Command> = all.filter(|this| this.get_arguments().any(is_of_directory)).collect();
    let names = takers.iter().filter_map(|this| this.get_bin_name()?.strip_prefix(root.get_bin_name()?));
    let names: Vec<_> = names.map(str::trim_start).collect();
    let options = takers.iter().take(1).flat_map(|this| this.get_arguments()).filter(|option| is_of_directory(option));
    let mut only = bare(Command::new("directory")).help_template("{all-args}");
    only = options.fold(only, |only, option| only.arg(option.clone().hide(false)));
    format!("They are options of {}:\n\n{}", names.join(", "), only.render_long_help())
}

fn is_of_directory(option: &Arg) -> bool {
    option.get_help_heading() == Some(DIRECTORY)
}

/// The command without options that all commands share, and without the directory's.
fn bare(command: Command) -> Command {
    let hidden = command.mut_args(|option| if is_of_directory(&option) { option.hide(true) } else { option });
    hidden.disable_help_flag(true).disable_help_subcommand(true).disable_version_flag(true).mut_subcommands(bare)
}

fn command(out: &mut String, this: &Command, depth: usize) {
    let name = this.get_bin_name().unwrap_or_else(|| this.get_name());
    let _ = write!(out, "\n{} `{name}`\n", "#".repeat(depth + 1));
    block(out, this.clone().render_long_help().to_string().trim_end().trim_end_matches(FOOTER));
    for below in shown(this) {
        command(out, below, depth + 1);
    }
}

fn shown(this: &Command) -> impl Iterator<Item = &Command> {
    this.get_subcommands().filter(|below| !HIDDEN.contains(&below.get_name()))
}

/// A block of preformatted text.
fn block(out: &mut String, text: &str) {
    let text = text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    let _ = write!(out, "\n```text\n{}\n```\n", text.trim());
}
