//! The examples of the help, as `docs/cli.md` has them, are run one after the other in a folder with the files that they name: what they print is in
//! `tests/examples/transcript`. Without a cluster, examples that need one end there. An example for a directory is only parsed, in `main.rs`.

use std::{collections::BTreeSet, fmt::Write as _, fs, path::Path};

use serde_json::Value;

use super::{
    cases::{Case, tests},
    portable, recorded, repository, run, text, words,
};

/// A script for a shell is longer.
const LINES: usize = 40;

/// The files that the examples name.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let own = tests();
    for (from, to) in [
        ("readme/domain.txt", "domain.json"),
        ("fixtures/forest.ldif", "contoso.ldif"),
        ("examples/describe.txt", "describe.txt"),
    ] {
        fs::copy(own.join(from), folder.path().join(to)).unwrap();
    }
    for (case, from, to) in
        [("account-lint", "account.json", "account.json"), ("new-from-docker", "spec.json", "docker.json")]
    {
        let case = Case::read(&own.join(format!("cli/cases/{case}.txt")));
        fs::copy(case.folder.path().join(from), folder.path().join(to)).unwrap();
    }
    fs::create_dir(folder.path().join("manifests")).unwrap();
    for entry in fs::read_dir(repository().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            fs::copy(&path, folder.path().join("manifests").join(path.file_name().unwrap())).unwrap();
        }
    }
    fs::write(folder.path().join("gmsa.json"), recorded::healthy().to_string()).unwrap();
    folder
}

/// The part of a line of a shell that is a command of this program.
fn own(line: &str) -> Option<&str> {
    line.split(['|', '<', '>', '(', ')']).find_map(|part| part.trim().strip_prefix("kubectl gmsa "))
}

#[test]
fn every_example_prints_what_is_written() {
    let page = fs::read_to_string(repository().join("docs/cli.md")).unwrap();
    let blocks = page.split("\nExamples:\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let mut lines: Vec<&str> = blocks.flat_map(str::lines).filter(|line| own(line).is_some()).map(str::trim).collect();
    // One makes a file that others read.
    lines.sort_by_key(|line| !line.contains("--out "));
    let mut seen = BTreeSet::new();
    lines.retain(|line| seen.insert(*line));
    assert!(lines.len() >= 40, "{lines:?}");
    let length = page.split_whitespace().count();
    assert!(length <= 4000, "{length} words in docs/cli.md: say less of an option, or say it once for all commands");
    let folder = folder();
    let mut transcript = String::new();
    for line in lines {
        let command = own(line).unwrap();
        let _ = writeln!(transcript, "$ {line}");
        if ["--directory contoso.com", "--directory ldaps"].iter().any(|asks| command.contains(asks)) {
            transcript.push_str("(asks a directory)\n\n");
            continue;
        }
        let stdin = if command.starts_with("explain") { "describe.txt" } else { "manifests/deployment-pod.yaml" };
        let output = run(folder.path(), &words(command), &fs::read(folder.path().join(stdin)).unwrap());
        let printed = [text(&output.stdout), text(&output.stderr)].concat();
        let printed =
            portable(&printed).replace("manifests\\", "manifests/").replace(env!("CARGO_PKG_VERSION"), "VERSION");
        for line in printed.lines().take(LINES) {
            transcript.extend([line, "\n"]);
        }
        if printed.lines().count() > LINES {
            transcript.push_str("(and so on)\n");
        }
        let _ = writeln!(transcript, "exit code {}\n", output.status.code().unwrap());
    }
    let file = tests().join("examples/transcript");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&file, &transcript).unwrap();
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), transcript);
}

/// K9s puts the values of its own variables where their names are, and runs the command.
#[test]
fn the_commands_of_k9s_are_commands_of_this_program() {
    let text_of_file = fs::read_to_string(repository().join("docs/k9s-plugins.yaml")).unwrap();
    let plugins: Value = serde_saphyr::from_str(&text_of_file).unwrap();
    let lines = text_of_file.lines().filter(|line| !line.starts_with('#')).count();
    assert!(lines <= 20, "{lines} lines");
    let mut keys = Vec::new();
    for (name, plugin) in plugins["plugins"].as_object().unwrap() {
        let field = |field: &str| plugin[field].as_str().unwrap_or_else(|| panic!("{name} has no {field}"));
        assert_eq!((field("command"), &plugin["background"]), ("sh", &Value::Bool(false)), "{name}");
        assert!(!field("description").is_empty());
        keys.push(field("shortCut"));
        for scope in plugin["scopes"].as_array().unwrap() {
            let script = plugin["args"][1].as_str().unwrap();
            let values = [
                ("$RESOURCE_NAME", scope.as_str().unwrap()),
                ("$NAMESPACE", "shop"),
                ("$NAME", "web"),
                ("$CONTEXT", "prod"),
            ];
            let line = values.iter().fold(script.to_owned(), |line, (variable, value)| line.replace(variable, value));
            assert!(!line.contains('$'), "{line}");
            let output = run(Path::new("."), &words(own(&line).unwrap()), b"");
            let said = "error: there is no context \"prod\" in the kubeconfig\n";
            assert_eq!((text(&output.stderr), output.status.code()), (said, Some(2)), "{line}");
        }
    }
    keys.sort_unstable();
    assert_eq!(keys, ["Shift-W", "Shift-Y"]);
}
