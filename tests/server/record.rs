//! The track record in `docs/measurements.md`: each fault that was found, and the tests that find it again, which must be there.
//! `UPDATE_SNAPSHOTS=1 cargo test --test server record` writes it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use super::layout::rust_files;
use crate::support::page;

/// The folders in which a folder of files is a case, named as its test.
const CASES: [&str; 4] = [
    "tests/golden",
    "crates/kubectl-gmsa/tests/cli",
    "crates/kubectl-gmsa/tests/cli/recorded",
    "crates/kubectl-gmsa/tests/cli/simulated",
];

/// Groups of faults, each fault with what finds it again.
type Record = Vec<BTreeMap<String, Vec<BTreeMap<String, Vec<String>>>>>;

fn record() -> Record {
    serde_saphyr::from_str(include_str!("record.yaml")).unwrap()
}

#[test]
fn every_test_of_the_track_record_is_there() {
    let mut files = Vec::new();
    for folder in ["src", "crates", "tests"] {
        rust_files(Path::new(folder), &mut files);
    }
    let mut functions = BTreeSet::new();
    for file in files {
        let source = fs::read_to_string(file).unwrap();
        let names = source.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
        functions.extend(names.map(str::to_owned));
    }
    let attacks = fs::read_to_string("benches/attacks/attacks.yaml").unwrap();
    let recipes = fs::read_to_string("justfile").unwrap();
    let is_lost = |name: &String| match name.strip_prefix("just ") {
        Some(command) => {
            let (recipe, word) = command.split_once(' ').unwrap_or((command, ""));
            !recipes.contains(&format!("\n{recipe} ")) || !attacks.contains(word)
        }
        None => !functions.contains(name) && !CASES.iter().any(|folder| Path::new(folder).join(name).is_dir()),
    };
    let faults = record().into_iter().flatten().flat_map(|(_, faults)| faults).flatten();
    let lost: Vec<_> = faults.flat_map(|(_, tests)| tests).filter(is_lost).collect();
    assert_eq!(lost, [""; 0]);
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
