//! The README's session with `kubectl gmsa` is a real one: its commands, run in a folder with the files that it starts from, print what
//! stands there.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use super::{portable, repository, text};

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

/// What a command of the session prints, on both of its streams. No shell runs it: there is none on Windows, and a redirection and
/// one edit are all that the session needs.
fn run(folder: &Path, command: &str) -> String {
    let (command, target) = command.split_once(" > ").unwrap_or((command, ""));
    if let Some(edit) = command.strip_prefix("sed -i ") {
        let (edit, file) = edit.trim_start_matches('\'').split_once("' ").unwrap();
        let [_, old, new, _] = edit.split('/').collect::<Vec<_>>()[..] else { panic!("not a replacement: {edit}") };
        let file = folder.join(file);
        let edited = fs::read_to_string(&file).unwrap();
        let edited: String =
            edited.lines().map(|line| replace_end(line, old.strip_suffix('$').unwrap(), new)).collect();
        fs::write(file, edited).unwrap();
        return String::new();
    }
    let words = command.strip_prefix("kubectl gmsa ").unwrap().split(' ');
    let mut program = Command::new(env!("CARGO_BIN_EXE_kubectl-gmsa"));
    let output = program.args(words).current_dir(folder).stdin(Stdio::null()).output().unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    if target.is_empty() {
        return portable(&format!("{stdout}{stderr}"));
    }
    fs::write(folder.join(target), stdout).unwrap();
    stderr.to_owned()
}

/// The line with `new` where it ends in `old`.
fn replace_end(line: &str, old: &str, new: &str) -> String {
    line.strip_suffix(old).map_or_else(|| format!("{line}\n"), |start| format!("{start}{new}\n"))
}
