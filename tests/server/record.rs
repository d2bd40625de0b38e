//! The track record in `docs/measurements.md`: each fault that was found, and the tests that find it again, which must be there.
//! `UPDATE_SNAPSHOTS=1 cargo test --test server record` writes it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::layout::rust_files;
use crate::support::page;

/// The folders in which a folder or a file is a case, named as its test.
const CASES: [&str; 4] = [
    "tests/golden",
    "crates/kubectl-gmsa/tests/cli/cases",
    "crates/kubectl-gmsa/tests/cli/recorded",
    "crates/kubectl-gmsa/tests/cli/simulated",
];

/// Groups of faults, each fault with what finds it again.
type Record = Vec<BTreeMap<String, Vec<BTreeMap<String, Vec<String>>>>>;

fn record() -> Record {
    serde_saphyr::from_str(include_str!("record.yaml")).unwrap()
}

/// What can find a fault again.
struct Finders {
    /// Functions that the test harness runs.
    tests: BTreeSet<String>,
    /// Names of attacks, by words of which `just attacks` picks them.
    attacks: Vec<String>,
    recipes: String,
}

impl Finders {
    fn read() -> Self {
        let mut files = Vec::new();
        for folder in ["src", "crates", "tests"] {
            rust_files(Path::new(folder), &mut files);
        }
        let tests = files.iter().flat_map(|file| tests(&fs::read_to_string(file).unwrap())).collect();
        let attacks: Vec<BTreeMap<String, Value>> =
            serde_saphyr::from_str(&fs::read_to_string("benches/attacks/attacks.yaml").unwrap()).unwrap();
        let attacks = attacks.iter().map(|attack| attack["name"].as_str().unwrap().to_owned()).collect();
        Self { tests, attacks, recipes: fs::read_to_string("justfile").unwrap() }
    }

    fn have(&self, name: &str) -> bool {
        if let Some(command) = name.strip_prefix("just ") {
            let (recipe, word) = command.split_once(' ').unwrap_or((command, ""));
            return self.recipes.contains(&format!("\n{recipe} "))
                && self.attacks.iter().any(|attack| attack.contains(word));
        }
        let is_case = |path: PathBuf| path.is_dir() || path.with_extension("txt").is_file();
        self.tests.contains(name) || CASES.iter().any(|folder| is_case(Path::new(folder).join(name)))
    }
}

/// The functions of a source that the test harness runs: those with an attribute that says so.
fn tests(source: &str) -> BTreeSet<String> {
    let (mut tests, mut is_test) = (BTreeSet::new(), false);
    for line in source.lines().map(str::trim_start) {
        is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        if let Some(rest) = line.trim_start_matches("async ").strip_prefix("fn ") {
            tests.extend(rest.split(['(', '<']).next().filter(|_| is_test).map(str::to_owned));
            is_test = false;
        }
    }
    tests
}

#[test]
fn every_test_of_the_track_record_is_there() {
    let finders = Finders::read();
    let faults = record().into_iter().flatten().flat_map(|(_, faults)| faults).flatten();
    let lost: Vec<_> = faults.flat_map(|(_, tests)| tests).filter(|name| !finders.have(name)).collect();
    assert_eq!(lost, [""; 0]);
}

#[test]
fn only_what_runs_finds_a_fault_again() {
    let finders = Finders::read();
    // A helper of tests, a word of a comment, a recipe that is none.
    for name in ["rust_files", "just attacks bystander", "just attack halves", "none_of_the_tests"] {
        assert!(!finders.have(name), "{name}");
    }
}

#[test]
fn the_page_has_the_track_record() {
    let mut rows = vec!["| Fault | Found again by |\n|---|---|\n".to_owned()];
    for (group, faults) in record().into_iter().flatten() {
        rows.push(format!("| **{group}** | |\n"));
        let row = |(fault, tests): (String, Vec<String>)| format!("| {fault} | `{}` |\n", tests.join("`, `"));
        rows.extend(faults.into_iter().flatten().map(row));
    }
    let command = "UPDATE_SNAPSHOTS=1 cargo test --test server record";
    page::assert_section("docs/measurements.md", "record", command, &rows.concat());
}
