//! `docs/cli.md`: the reference, made from the command line itself.

use std::fmt::Write as _;

use clap::Command;

/// Every command with its options, as Markdown.
pub fn reference(root: &Command) -> String {
    let mut root = root.clone().term_width(100);
    root.build();
    let mut out = "# kubectl gmsa\n\nMade by `kubectl-gmsa reference`: do not edit.\n".to_owned();
    command(&mut out, &root, 0);
    out
}

fn command(out: &mut String, this: &Command, depth: usize) {
    if depth > 0 {
        let name = this.get_bin_name().unwrap_or_else(|| this.get_name());
        // Writing into a String cannot fail.
        let _ = write!(out, "\n{} `{name}`\n", "#".repeat(depth + 1));
    }
    let help = this.clone().render_long_help().to_string();
    let help = help.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    let _ = write!(out, "\n```text\n{}\n```\n", help.trim());
    for below in this.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help") {
        command(out, below, depth + 1);
    }
}
