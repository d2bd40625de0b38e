//! The options of both commands, in a table of `docs/linux-pods.md`.

use clap::{Arg, Args, Command};
use gmsa_test_support::page::{assert_section, table};
use gmsa_tickets::{agent, serve};

/// An option with its value, and what is said of it: in cells.
fn row(command: &str, option: &Arg) -> Vec<String> {
    let takes_value = option.get_action().takes_values();
    let value = option.get_value_names().filter(|_| takes_value).unwrap_or_default().join(" ");
    let name = format!("`{}`", format!("{command} --{} {value}", option.get_long().unwrap_or_default()).trim_end());
    let default =
        option.get_default_values().first().filter(|_| takes_value).map(|default| format!("`{}`", default.display()));
    let help = option.get_help().map(ToString::to_string).unwrap_or_default();
    vec![name, default.unwrap_or_default(), help.trim_end_matches('.').to_owned()]
}

fn rows(name: &str, command: &Command) -> Vec<Vec<String>> {
    let own = command.get_arguments().filter(|option| option.get_long().is_some()).map(|option| row(name, option));
    let below = command.get_subcommands().flat_map(|below| rows(&format!("{name} {}", below.get_name()), below));
    own.chain(below).collect()
}

#[test]
fn the_page_lists_every_option() {
    let serve = serve::Args::augment_args(Command::new("serve"));
    let agent = agent::Args::augment_args(Command::new("agent"));
    let rows = [rows("serve", &serve), rows("agent", &agent)].concat();
    // Promise 2 of the page rests on them.
    for bound in
        [["`serve --authorization-cache-ttl DURATION`", "`10s`"], ["`agent --check-interval DURATION`", "`5m`"]]
    {
        assert!(rows.iter().any(|row| row[..2] == bound), "{bound:?}");
    }
    let text = table(&["`gmsa-tickets`", "Default", ""], rows);
    assert_section("docs/linux-pods.md", "options", "UPDATE_SNAPSHOTS=1 cargo test -p gmsa-tickets", &text);
}
