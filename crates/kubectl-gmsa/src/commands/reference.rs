//! `docs/cli.md`: the reference, made from the command line itself.

use std::fmt::Write as _;

use clap::Command;

const JSON: &str = "
## JSON

Every command that takes `-o json` prints one object on standard output, also where it fails:

| field | of | |
|---|---|---|
| `version` | all | of this shape: 1. It rises when a field goes or means something else; new fields may come without |
| `exitCode` | all | the exit code of the command |
| `error` | all | why the command could not do its work; nothing but `version` and `exitCode` is then there |
| `totals` | reports, checks | how many objects, findings or checks there are, by severity or result; `ignored` counts those that `--ignore` left out |
| `findings` | reports, grants | each with `level`, `rule`, `file`, `object`, `field`, `message` and, where there is one, `line`, `consequence` and `fix`. Of more than 100 of a \
rule in a file, the last of them says in `more` how many were left out |
| `places` | `check` | each place that names a credential spec, with `file`, `line`, `object`, `slot`, `credentialSpec`, `admitted` and `result`. Of an object of the cluster \
(`-A`) `file` is `NAMESPACE/KIND/NAME`, also in findings, and there is no `line` |
| `checks` | `doctor`, `why`, `verify`, `probe`, `account test` | each with `status` (`pass`, `warn`, `fail`, `skip`), `about`, `text` and, where it does not pass, `rule` and `remedy` |
| `grants` | `who-can`, `can` | each with `binding` and `role` (`kind`, `name` and, in one namespace, `namespace`), and `subject` or `credentialSpec` |
| `explanations` | `explain` | each with `found` and `causes`, which have `phase` (`start`, `running`) where it makes a difference, `rule`, `text` and `remedy`; \
where it is no fault, or not known, `text` says so |
| `accounts` | `account get` | each with `name`, `domain`, `distinguishedName`, `class`, `enabled`, `sid`, `guid`, `dnsHostName`, `servicePrincipalNames`, `encryptionTypes`, \
`passwordInterval` (days), `passwordLastSet` (UTC) and `mayRetrieve` (`null` where it is not known): `sid`, `name`, `kind` (`user`, `group`, `wellKnown`, `missing`, `unknown`) and, of a group, `members` |
| `plugin`, `webhook` | `version` | their versions; `webhook` is a list, which has two during a rollout, and `unknown` says why it is empty |

`credspec new`, `grant` and `check --patched` print manifests, as YAML; `account new` a command or LDIF.
";

/// Every command with its options, as Markdown. `first` is the root with the help that comes first.
pub fn reference(root: &Command, first: &Command) -> String {
    let mut root = root.clone().term_width(100);
    root.build();
    let mut out = "# kubectl gmsa\n\nMade by `kubectl-gmsa reference`: do not edit.\n".to_owned();
    text(&mut out, &first.clone().term_width(100));
    for below in shown(&root) {
        command(&mut out, below, 1);
    }
    out.push_str(JSON);
    out
}

fn command(out: &mut String, this: &Command, depth: usize) {
    let name = this.get_bin_name().unwrap_or_else(|| this.get_name());
    // Writing into a String cannot fail.
    let _ = write!(out, "\n{} `{name}`\n", "#".repeat(depth + 1));
    text(out, this);
    for below in shown(this) {
        command(out, below, depth + 1);
    }
}

fn shown(this: &Command) -> impl Iterator<Item = &Command> {
    this.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
}

/// The help of a command.
fn text(out: &mut String, this: &Command) {
    let help = this.clone().render_long_help().to_string();
    let help = help.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    let _ = write!(out, "\n```text\n{}\n```\n", help.trim());
}
