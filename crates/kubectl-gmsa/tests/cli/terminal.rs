//! At a terminal: questions, progress and colour.

use std::{
    fs::{File, OpenOptions},
    io::Read as _,
    path::Path,
    process::{Command, Stdio},
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::{
    cluster::kubeconfig,
    program,
    support::{Fault, Gate, SimulatedApi, Verb},
    text,
};

mod picture;

/// A terminal: our end, and the program's.
fn terminal() -> (File, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    (ours.into(), theirs)
}

/// Reads from a terminal until there is this text.
fn read_until(terminal: &mut File, end: &str) -> String {
    let (mut said, mut buffer) = (String::new(), [0; 256]);
    while !said.ends_with(end) {
        let count = terminal.read(&mut buffer).unwrap();
        said.push_str(text(&buffer[..count]));
    }
    said
}

#[test]
fn what_is_missing_is_an_error_at_a_terminal_too() {
    let folder = tempfile::tempdir().unwrap();
    let (_ours, theirs) = terminal();
    let output = program(folder.path())
        .args(["credspec", "new", "--netbios", "CONTOSO"])
        .stdin(Stdio::from(theirs))
        .output()
        .unwrap();
    let missing = "error: missing: --account, --domain, --domain-sid, --domain-guid; or take the domain from the directory: \
        --directory DOMAIN, or from a file: --from-ad FILE, made by: Get-ADDomain | ConvertTo-Json\n";
    assert_eq!((text(&output.stderr), output.status.code()), (missing, Some(2)));
}

/// The report at a terminal.
fn report(folder: &Path, set: impl FnOnce(&mut Command)) -> String {
    let (mut ours, theirs) = terminal();
    let mut command = program(folder);
    command.args(["check", "-f", "a.yaml"]).env("TERM", "xterm").stdout(Stdio::from(theirs));
    set(&mut command);
    let mut child = command.spawn().unwrap();
    drop(command);
    let said = read_until(&mut ours, "1 object\r\n");
    child.wait().unwrap();
    said
}

#[test]
fn colour_is_for_terminals_that_want_it() {
    let folder = tempfile::tempdir().unwrap();
    let spec = "apiVersion: windows.k8s.io/v1\nkind: GMSACredentialSpec\nmetadata: {name: A}\n";
    std::fs::write(folder.path().join("a.yaml"), spec).unwrap();
    assert!(report(folder.path(), |_| {}).contains("\u{1b}[31merror["));
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let plain = report(folder.path(), |command| {
            command.env(name, value);
        });
        assert!(plain.contains("error[") && !plain.contains('\u{1b}'), "{name}: {plain:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_takes_long_is_said_at_a_terminal() {
    let api = SimulatedApi::start().await;
    let gate = Gate::new();
    api.fault(Verb::List, "/gmsacredentialspecs", 1, Fault::Hold(gate.clone()));
    let kubeconfig = kubeconfig(&api);
    let (mut ours, theirs) = terminal();
    let mut child = program(Path::new("."))
        .arg("--kubeconfig")
        .arg(kubeconfig.path())
        .args(["who-can", "--serviceaccount", "shop:web"])
        .stdout(Stdio::null())
        .stderr(Stdio::from(theirs))
        .spawn()
        .unwrap();
    let said = tokio::task::spawn_blocking(move || read_until(&mut ours, "…\r\n")).await.unwrap();
    assert_eq!(said, "reading /apis/windows.k8s.io/v1/gmsacredentialspecs, 0 so far …\r\n");
    gate.open();
    tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap();
}
