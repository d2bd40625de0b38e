//! The chart of many accounts: what it renders, that the linter has nothing to say of it, and what it says after an install; `refused/accounts` has what it refuses.

use gmsa_core::credspec::lint;
use serde_json::Value;

use crate::{files::objects, helm::Helm, rendered::assert_difference, snapshot::assert_file};

/// The chart, from the root of the package, where tests run.
pub const ACCOUNTS: &str = "charts/gmsa-accounts";
pub const VALUES: &str = "tests/chart/values-of-accounts.yaml";

/// Sets of values besides, by their names.
const SETS: [(&str, &str); 2] = [
    ("accounts-kept", "keepGrants=true"),
    ("accounts-labelled", "commonLabels.team=identity,commonLabels.app\\.kubernetes\\.io/name=x,commonAnnotations.a=b"),
];

/// What the chart renders with each set of values.
pub fn every_rendering() -> Vec<String> {
    std::iter::once(render(&[])).chain(SETS.map(|(_, set)| render(&["--set", set]))).collect()
}

fn render(more: &[&str]) -> String {
    let template = ["template", "accounts", ACCOUNTS, "--namespace", "gmsa", "--values", VALUES];
    Helm::new().prints(template.iter().chain(more).copied())
}

#[test]
fn the_list_renders_as_recorded() {
    let listed = render(&[]);
    assert_file("tests/chart/rendered/accounts.yaml", &listed);
    // What is removed from the list is revoked, unless it is asked for otherwise; and no label replaces the chart's own.
    for (name, set) in SETS {
        assert_difference(name, "accounts", &listed, &render(&["--set", set]));
    }
    let report = Helm::new().prints(["lint", "--strict", ACCOUNTS, "--values", VALUES]);
    assert!(report.contains("1 chart(s) linted, 0 chart(s) failed"), "{report}");
    // Without an entry there is nothing to be wrong.
    assert_eq!(Helm::new().prints(["template", "accounts", ACCOUNTS]).trim(), "");
}

#[test]
fn the_linter_has_nothing_to_say_of_what_is_rendered() {
    let objects = objects(&render(&[]));
    let specs: Vec<&Value> = objects.iter().filter(|object| object["kind"] == "GMSACredentialSpec").collect();
    assert_eq!(specs.len(), 4);
    for spec in specs {
        assert_eq!(lint::object(spec), [], "{spec}");
        assert_eq!(spec["metadata"]["annotations"]["helm.sh/resource-policy"], "keep");
    }
}

#[test]
fn the_notes_say_what_there_is_and_what_stays() {
    for (name, more) in [
        ("accounts", &["--values", VALUES][..]),
        ("accounts-none", &[]),
        ("accounts-kept", &["--values", VALUES, "--set", "keepGrants=true"]),
    ] {
        let install = ["install", "accounts", ACCOUNTS, "--namespace", "gmsa", "--dry-run=client"];
        let said = Helm::new().prints(install.iter().chain(more).copied());
        assert_file(format!("tests/chart/notes/{name}.txt"), said.split_once("NOTES:\n").unwrap().1);
    }
}
