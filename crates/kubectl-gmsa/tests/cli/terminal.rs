//! At a terminal: the questions of `credspec new`, and colour.

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    path::Path,
    process::{Command, Stdio},
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::{
    program,
    support::{Fault, Gate, SimulatedApi, Verb},
    text,
};

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

const ARN: &str = "arn:aws:secretsmanager:us-east-1:123456789012:secret:gmsa-plugin-AbCdEf";

#[test]
fn what_is_missing_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (mut ours, theirs) = terminal();
    let child = program(folder.path())
        .args(["credspec", "new", "--netbios", "CONTOSO"])
        .stdin(Stdio::from(theirs.try_clone().unwrap()))
        .stderr(Stdio::from(theirs))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    for (question, answer) in [
        ("SAM name of the account: ", "WebApp1"),
        ("DNS name of the domain: ", "contoso.com"),
        // Nothing is no answer, and neither is what the linter refuses.
        ("SID of the domain: ", ""),
        ("SID of the domain: ", "S-1-5-21-1-2-3-1103"),
        ("SID of the domain: ", "S-1-5-21-1-2-3"),
        ("GUID of the domain: ", "244818ae-87ac-4fcd-92ec-e79e5252348a"),
        ("DNS name of the forest's root: ", "contoso.com"),
        ("Plugin for hosts that are not joined to the domain (azure, aws, rancher, or nothing): ", "vault"),
        ("Plugin for hosts that are not joined to the domain (azure, aws, rancher, or nothing): ", "aws"),
        ("ARN of the secret or the parameter: ", ARN),
    ] {
        let said = read_until(&mut ours, question);
        // The terminal repeats the answer before.
        assert_eq!(said.lines().last(), Some(question));
        writeln!(ours, "{answer}").unwrap();
    }
    let output = child.wait_with_output().unwrap();
    let flags = ["--account", "WebApp1", "--domain", "contoso.com", "--netbios", "CONTOSO"];
    let more = ["--domain-sid", "S-1-5-21-1-2-3", "--domain-guid", "244818ae-87ac-4fcd-92ec-e79e5252348a"];
    let more = [&more[..], &["--plugin", "aws", "--aws-credential-arn", ARN]].concat();
    let by_flags = program(folder.path()).args(["credspec", "new"]).args(flags).args(more).output().unwrap();
    assert_eq!(text(&output.stdout), text(&by_flags.stdout));
    assert_eq!((output.status.code(), by_flags.status.code()), (Some(0), Some(0)));
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
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("config"), api.kubeconfig()).unwrap();
    let (mut ours, theirs) = terminal();
    let mut child = program(folder.path())
        .args(["--kubeconfig", "config", "can", "shop:web"])
        .stdout(Stdio::null())
        .stderr(Stdio::from(theirs))
        .spawn()
        .unwrap();
    let said = tokio::task::spawn_blocking(move || read_until(&mut ours, "…\r\n")).await.unwrap();
    assert_eq!(said, "reading /apis/windows.k8s.io/v1/gmsacredentialspecs, 0 so far …\r\n");
    gate.open();
    tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_restarted_without_a_yes() {
    let api = super::outdated::behind().await;
    api.fault(Verb::Patch, "/apis/apps/v1/", usize::MAX, Fault::Object(serde_json::json!({})));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("config"), api.kubeconfig()).unwrap();
    for answer in ["", "n", "y"] {
        let (mut ours, theirs) = terminal();
        let child = program(folder.path())
            .args(["--kubeconfig", "config", "outdated", "-A", "--restart"])
            .stdin(Stdio::from(theirs.try_clone().unwrap()))
            .stderr(Stdio::from(theirs))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = tokio::task::spawn_blocking(move || {
            let asked = read_until(&mut ours, "? [y/N] ");
            assert!(asked.ends_with("Restart 2 workloads? [y/N] "), "{asked}");
            writeln!(ours, "{answer}").unwrap();
            child.wait_with_output().unwrap()
        });
        let output = output.await.unwrap();
        if answer == "y" {
            assert_eq!(api.count(Verb::Patch, "/apis/apps/v1/"), 2);
        } else {
            assert!(text(&output.stdout).ends_with("\nnothing was restarted\n"), "{}", text(&output.stdout));
            assert_eq!((output.status.code(), api.count(Verb::Patch, "")), (Some(1), 0));
        }
    }
}
