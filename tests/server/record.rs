//! The track record in `docs/measurements.md`: each test that it names is there.

use std::{collections::BTreeSet, fs, path::Path};

/// The folders in which a folder of files is a case, and its name that of the test.
const CASES: [&str; 3] = ["tests/golden", "crates/kubectl-gmsa/tests/cli", "crates/kubectl-gmsa/tests/cli/recorded"];

#[test]
fn every_test_of_the_track_record_is_there() {
    let page = fs::read_to_string("docs/measurements.md").unwrap();
    let (_, record) = page.split_once("\n## Track record\n").unwrap();
    let rows = record.lines().filter_map(|line| line.strip_suffix(" |")?.rsplit_once(" | "));
    let named: BTreeSet<_> = rows.flat_map(|(_, tests)| tests.split('`').skip(1).step_by(2)).collect();
    assert!(named.len() > 40, "{named:?}");
    let mut functions = BTreeSet::new();
    for folder in ["src", "crates", "tests"] {
        collect(Path::new(folder), &mut functions);
    }
    let attacks = fs::read_to_string("benches/attacks/cases.rs").unwrap();
    let recipes = fs::read_to_string("justfile").unwrap();
    let there = |name: &str| match name.strip_prefix("just ") {
        Some(command) => {
            let (recipe, word) = command.split_once(' ').unwrap_or((command, ""));
            recipes.contains(&format!("\n{recipe} ")) && attacks.contains(word)
        }
        None => functions.contains(name) || CASES.iter().any(|folder| Path::new(folder).join(name).is_dir()),
    };
    let lost: Vec<_> = named.into_iter().filter(|name| !there(name)).collect();
    assert_eq!(lost, [""; 0]);
}

/// The names of all functions below a folder.
fn collect(folder: &Path, functions: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, functions);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path).unwrap();
            let names = source.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
            functions.extend(names.map(str::to_owned));
        }
    }
}
