//! Values that the charts refuse, and the whole message for each. A file of `refused/` has options of `helm template`, a line each, and below them,
//! indented, what Helm complains of; a new case has `    ?` there, until `UPDATE_SNAPSHOTS` writes it.

use std::{fs, path::Path, thread};

use gmsa_test_support::rules::families;
use serde_json::Value;

use crate::{
    accounts::{ACCOUNTS, VALUES},
    files::yaml,
    helm::{CHART, Helm},
    snapshot::assert_file,
    tickets::{self, TICKETS},
};

const TAKEN: &str = "(taken)";

/// What a chart, or its schema, complains of, without the frame that Helm puts around it.
pub fn unframed(complaint: &str) -> String {
    let complaint = complaint.replace("\nUse --debug flag to render out invalid YAML\n", "");
    let complaint = complaint.trim();
    // Helm may warn of the values before.
    if let Some((_, error)) = complaint.split_once("Error: execution error at (") {
        return error.split_once("): ").unwrap().1.to_owned();
    }
    let of_schema = "Error: values don't meet the specifications of the schema(s) in the following chart(s):\n";
    match complaint.strip_prefix(of_schema) {
        Some(list) => list.split_once(":\n").unwrap().1.to_owned(),
        None => complaint.to_owned(),
    }
}

/// Whether a message of a chart begins with a value of it, or with an option of Helm; the schema names the path, Helm the version.
fn names_a_value(message: &str, values: &Value) -> bool {
    let Some(message) = message.strip_prefix("values: ") else {
        return message.starts_with("- at '") || message.starts_with("Error: chart requires kubeVersion");
    };
    let name = message.split([' ', ',', ':', '.', '[', '=']).next().unwrap();
    name == "--namespace" || values.get(name).is_some() || message.contains(" is not a value of this chart: ")
}

/// The file as it is with what Helm says now.
fn judged(file: &Path) -> String {
    let template: &[&str] = if file.ends_with("accounts") {
        &["template", "accounts", ACCOUNTS, "--values", VALUES]
    } else if file.ends_with("tickets") {
        &["template", "tickets", TICKETS, "--namespace", "tickets", "--values", tickets::VALUES]
    } else {
        &["template", "gmsa", CHART, "--namespace", "windows"]
    };
    let values = yaml(format!("{}/values.yaml", template[2]));
    let text = fs::read_to_string(file).unwrap();
    let (mut judged, mut options) = (String::new(), Vec::new());
    for line in text.lines() {
        if !line.starts_with(' ') {
            judged.extend([line, "\n"]);
            options.extend(line.split_once(' ').filter(|(option, _)| *option != "#").map(<[&str; 2]>::from));
        } else if !options.is_empty() {
            let output = Helm::new().run(template.iter().copied().chain(options.drain(..).flatten()));
            let said = if output.status.success() {
                TAKEN.to_owned()
            } else {
                unframed(str::from_utf8(&output.stderr).unwrap())
            };
            let named = said.lines().all(|message| message == TAKEN || names_a_value(message, &values));
            assert!(named, "{}: {said}", file.display());
            judged.extend(said.lines().flat_map(|line| ["    ", line, "\n"]));
        }
    }
    assert!(options.is_empty(), "the last case of {} has no line for what is said", file.display());
    judged
}

/// Each message that `kubectl gmsa explain` takes for one of the charts is in one of them.
#[test]
fn the_messages_that_are_explained_are_said() {
    let said: String = fs::read_dir("tests/chart/refused")
        .unwrap()
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    let mut count = 0;
    let words = families().into_iter().flat_map(|family| family.rules).flat_map(|rule| rule.words);
    for text in words.flat_map(|word| word.seen).map(|seen| seen.text) {
        let marks = ["execution error at (gmsa-", "in the following chart(s):\n", "chart requires kubeVersion"];
        if marks.iter().any(|mark| text.contains(mark)) {
            let message = unframed(&text.replace("INSTALLATION FAILED: ", ""));
            assert!(said.contains(&format!("\n    {message}\n")), "no chart says {message}");
            count += 1;
        }
    }
    assert_eq!(count, 3);
}

#[test]
fn values_are_refused_and_taken_as_recorded() {
    let files: Vec<_> = fs::read_dir("tests/chart/refused").unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() > 8, "the cases are gone: {files:?}");
    thread::scope(|scope| {
        for file in &files {
            scope.spawn(move || {
                let judged = judged(file);
                assert_eq!(judged.contains(TAKEN), file.ends_with("taken"), "{}", file.display());
                assert_file(file, &judged);
            });
        }
    });
}
