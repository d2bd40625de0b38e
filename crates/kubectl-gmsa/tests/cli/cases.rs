//! Cases: the files of `tests/cli/cases`, and of `tests/cli/recorded` those that are run with `--from` a bundle of a cluster.
//!
//! A case begins with what is typed and printed: `$ VARIABLE=VALUE kubectl gmsa ARGUMENTS`, standard output, each line of standard error after `2> `,
//! and `exit CODE`; then the next command. Its input follows, each file after a line `-- NAME --`:
//!
//! - `stdin` is what is piped into each command;
//! - `bundle.yaml` is what the case changes in the bundle of the healthy cluster ([`recorded`]);
//! - `unix` says that the case is run only there;
//! - any other file is in the folder in which the commands are run.
//!
//! Input that is not lines of text in UTF-8 is in a folder beside the case, with its name. A command may also name a file of `tests/fixtures`.

use std::{
    ffi::OsStr,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::{NamedTempFile, TempDir};

use super::{compare_exactly, finished, portable, program, recorded, text, words};

/// A case, with its input in a folder.
pub struct Case {
    /// The words of each command, its variables first.
    pub commands: Vec<String>,
    pub folder: TempDir,
    bundle: Option<NamedTempFile>,
    input: String,
}

/// The name of the file that begins after this line.
fn file_name(line: &str) -> Option<&str> {
    line.strip_prefix("-- ")?.strip_suffix(" --\n")
}

/// Copies the files of a folder, if it is there.
fn copy(from: &Path, to: &Path, is_wanted: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(from).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap();
        if is_wanted(name) {
            fs::copy(&path, to.join(name)).unwrap();
        }
    }
}

impl Case {
    pub fn read(file: &Path) -> Self {
        let case = fs::read_to_string(file).unwrap();
        let (mut session, mut files) = (String::new(), Vec::new());
        for line in case.split_inclusive('\n') {
            match (file_name(line), files.last_mut()) {
                (Some(name), _) => files.push((name, String::new())),
                (None, Some((_, contents))) => contents.push_str(line),
                (None, None) => session.push_str(line),
            }
        }
        let commands: Vec<_> = session.lines().filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned).collect();
        let folder = tempfile::tempdir().unwrap();
        let is_named = |name: &str| commands.iter().any(|command| command.contains(name));
        copy(&tests().join("fixtures"), folder.path(), is_named);
        copy(&file.with_extension(""), folder.path(), |_| true);
        let mut bundle = None;
        for (name, contents) in &files {
            if *name == "bundle.yaml" {
                bundle = Some(recorded::bundle(contents));
                continue;
            }
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, contents).unwrap();
        }
        let input = case[session.len()..].to_owned();
        Self { commands, folder, bundle, input }
    }

    fn is_run_here(&self) -> bool {
        cfg!(unix) || !self.folder.path().join("unix").exists()
    }

    /// The program as it is typed, in the folder of the case.
    pub fn typed(&self, command: &str) -> Command {
        let (variables, arguments) = command.split_once("kubectl gmsa").unwrap_or_else(|| panic!("{command}"));
        let mut program = program(self.folder.path());
        program.envs(words(variables).iter().filter_map(|word| word.split_once('='))).args(words(arguments));
        if let Some(bundle) = &self.bundle {
            program.arg("--from").arg(bundle.path());
        }
        program
    }

    /// What is typed and printed.
    fn session(&self) -> String {
        let stdin = fs::read(self.folder.path().join("stdin")).unwrap_or_default();
        let mut session = String::new();
        for command in &self.commands {
            let output = finished(self.typed(command), &stdin);
            let _ = write!(session, "$ {command}\n{}", text(&output.stdout));
            for line in text(&output.stderr).lines() {
                let _ = writeln!(session, "2> {line}");
            }
            let _ = writeln!(session, "exit {}", output.status.code().unwrap());
        }
        session
    }
}

pub fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

#[test]
fn every_case_comes_out_as_written() {
    let entries = ["cli/cases", "cli/recorded"].map(|folder| fs::read_dir(tests().join(folder)).unwrap());
    let mut files: Vec<PathBuf> = entries.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some());
    files.sort();
    assert!(files.len() > 20, "the cases are gone: {files:?}");
    let mut wrong = Vec::new();
    for file in files {
        let case = Case::read(&file);
        assert_ne!(case.commands, [""; 0], "{} has no command", file.display());
        if case.is_run_here() {
            wrong.extend(compare_exactly(&file, &(portable(&case.session()) + &case.input)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
