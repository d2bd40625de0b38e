//! The README's session with `kubectl gmsa` is a real one: its commands, run in a folder with the files that it starts from, print what
//! stands there.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use super::{repository, text};

/// What the session starts from.
const FILES: &str = "tests/readme";
const START: &str = "```console\n$ kubectl gmsa ";

#[test]
fn the_session_of_the_readme_is_a_real_one() {
    let root = repository();
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let (before, rest) = readme.split_once(START).unwrap();
    let (session, after) = rest.split_once("```\n").unwrap();
    let session = format!("$ kubectl gmsa {session}");
    let folder = tempfile::tempdir().unwrap();
    for file in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(FILES)).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
    }
    let commands: Vec<&str> = session.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    assert!(commands.len() > 2, "{commands:?}");
    let found: Vec<String> =
        commands.iter().map(|command| format!("$ {command}\n{}", run(folder.path(), command))).collect();
    let found = found.concat();
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        let readme = format!("{before}```console\n{found}```\n{after}");
        fs::write(root.join("README.md"), readme).unwrap();
    }
    assert_eq!(session, found);
}

/// What a command prints in a shell.
fn run(folder: &Path, command: &str) -> String {
    let program = env!("CARGO_BIN_EXE_kubectl-gmsa");
    let command = command.replace("kubectl gmsa", &format!("'{program}'"));
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{command} 2>&1")]).current_dir(folder).stdin(Stdio::null());
    text(&shell.output().unwrap().stdout).to_owned()
}
