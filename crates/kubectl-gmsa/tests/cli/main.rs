//! `kubectl gmsa` as people run it: the built program, its exact output, its exit code.
//!
//! Commands and their output are in [`cases`], sessions with a cluster that changes in [`simulated`].
//! `UPDATE_SNAPSHOTS=1 cargo test -p kubectl-gmsa` writes what comes out now, for a reviewer to read.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot run the program must fail"
)]

use std::{
    fs,
    io::{self, Seek as _, Write as _},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use gmsa_test_support as support;

mod agreement;
mod bundle;
mod calls;
mod cases;
mod cluster;
#[cfg(unix)]
mod complete;
mod connect;
mod examples;
mod hostile;
mod nodes;
mod probe;
mod readme;
mod recorded;
mod simulated;
#[cfg(unix)]
mod terminal;
mod verify;
mod windows;

/// The folder of the whole project.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-gmsa"));
    command.current_dir(folder).env_clear().env("HOME", "/nonexistent");
    command
}

fn run(folder: &Path, arguments: &[&str], stdin: &[u8]) -> Output {
    let mut program = program(folder);
    program.args(arguments);
    finished(program, stdin)
}

/// What comes out of a program that reads this.
fn finished(mut program: Command, stdin: &[u8]) -> Output {
    let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A program that does not read its input closes it.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    child.wait_with_output().unwrap()
}

/// The words of a command line, quotes removed.
fn words(command: &str) -> Vec<&str> {
    let parts = command.split('"').enumerate();
    parts.flat_map(|(i, part)| if i % 2 == 1 { vec![part] } else { part.split_whitespace().collect() }).collect()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The output with paths and errors of the system as Unix writes them; on Unix it is the output.
fn portable(output: &str) -> String {
    // ERROR_FILE_NOT_FOUND, ERROR_PATH_NOT_FOUND, ERROR_FILE_EXISTS and WSAECONNREFUSED.
    let codes = [
        (2, "No such file or directory (os error 2)"),
        (3, "No such file or directory (os error 2)"),
        (80, "File exists (os error 17)"),
        (10061, "Connection refused (os error 111)"),
    ];
    let of_windows = codes.iter().filter(|_| cfg!(windows));
    of_windows.fold(output.replace(".\\", "./"), |output, (own, said)| {
        output.replace(&io::Error::from_raw_os_error(*own).to_string(), said)
    })
}

/// Compares output with a file; an empty output has none.
fn compare(file: &Path, output: &str) -> Option<String> {
    compare_exactly(file, &portable(output))
}

fn compare_exactly(file: &Path, found: &str) -> Option<String> {
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        if found.is_empty() { drop(fs::remove_file(file)) } else { fs::write(file, found).unwrap() }
    }
    let expected = fs::read_to_string(file).unwrap_or_default();
    (expected != found).then(|| format!("{}:\n--- expected\n{expected}--- found\n{found}", file.display()))
}

/// What a run printed, on both streams, and its exit code.
fn shown(output: &Output) -> String {
    format!("{}{}exit {}\n", text(&output.stdout), text(&output.stderr), output.status.code().unwrap())
}

/// The parts that a report calls unreadable, each with the reason.
fn unreadable(report: &str) -> Vec<String> {
    let lines: Vec<&str> = report.lines().collect();
    let pairs = lines.windows(2).filter_map(|pair| Some((pair[0].strip_prefix("error[unreadable] ")?, pair[1])));
    pairs.map(|(place, reason)| format!("{place}: {}", reason.trim_start())).collect()
}

#[test]
fn hostile_files_are_reported_and_the_rest_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("binary.yaml"), [b'a', b':', 0xff, 0xfe, 0]).unwrap();
    fs::write(path("zeros.yaml"), [0u8; 1000]).unwrap();
    fs::write(path("bomb.yaml"), format!("a: &a [x,x,x,x,x,x,x,x,x]\n{}", bomb())).unwrap();
    fs::write(path("deep.yaml"), "[".repeat(100_000)).unwrap();
    fs::write(path("good.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n").unwrap();
    let mut huge = fs::File::create(path("huge.yaml")).unwrap();
    huge.seek(io::SeekFrom::Start(100 * 1024 * 1024)).unwrap();
    huge.write_all(b"a").unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(folder.path(), path("loop")).unwrap();
        std::os::unix::fs::symlink("dangling", path("nowhere.yaml")).unwrap();
    }
    let expected = [
        "./binary.yaml:1: expected text in UTF-8 or UTF-16",
        "./bomb.yaml:4: expected aliases to repeat at most 5000 values",
        "./deep.yaml:1: recursion limit exceeded",
        "./huge.yaml: expected at most 67108864 bytes in all manifests: name fewer files, or allow more with --max-size",
        #[cfg(unix)]
        "./nowhere.yaml: cannot be read: No such file or directory (os error 2)",
        "./zeros.yaml:1: unexpected character: `\\u{0}'",
    ];
    let output = run(folder.path(), &["check", "-f", "."], b"");
    assert_eq!(output.status.code(), Some(2));
    let report = portable(text(&output.stdout));
    assert_eq!(unreadable(&report), expected);
    assert!(report.ends_with(&format!("\n{} could not be checked in 1 object\n", expected.len())));
}

/// Each line repeats the one above nine times.
fn bomb() -> String {
    let line = |(name, of): (char, char)| format!("{name}: &{name} [{}]\n", vec![format!("*{of}"); 9].join(","));
    ('b'..='i').zip('a'..).map(line).collect::<Vec<_>>().concat()
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let document = "apiVersion: windows.k8s.io/v1\nkind: GMSACredentialSpec\nmetadata: {name: A}\n---\n".repeat(2000);
    fs::write(folder.path().join("many.yaml"), document).unwrap();
    for arguments in [&["check", "-f", "many.yaml"][..], &["__complete", ""]] {
        let mut child = program(folder.path());
        let mut child = child.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((text(&output.stderr), output.status.code()), ("", Some(0)), "{arguments:?}");
    }
}

#[test]
fn shells_are_served() {
    let folder = tempfile::tempdir().unwrap();
    for (shell, part) in [
        ("bash", "_kubectl__gmsa() {"),
        ("zsh", "#compdef kubectl-gmsa"),
        ("fish", "complete -c kubectl-gmsa"),
        ("powershell", "Register-ArgumentCompleter -Native -CommandName 'kubectl-gmsa'"),
    ] {
        let output = run(folder.path(), &["completion", shell], b"");
        assert!(text(&output.stdout).contains(part), "{shell}");
    }
}
