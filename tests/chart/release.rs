//! What a release adds to the chart, and the manifests that it is made of: addresses, Artifact Hub's metadata, the manifests of
//! krew, scoop and winget, checksums. `deploy/stamp.py` and `deploy/finish.sh` make them.

use std::{env, fs, path::Path, process::Command};

use serde_json::{Value, json};

use crate::{
    accounts::ACCOUNTS,
    files::{asked, executable, objects, text, yaml},
    helm::CHART,
    snapshot::assert_file,
    tickets::TICKETS,
};

const IMAGE: &str = "registry.example.com/gmsa/gmsa-webhook";
const SOURCE: &str = "https://example.com/gmsa";
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn succeeds(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn stamped() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    succeeds(Command::new("python3").args(["deploy/stamp.py", IMAGE, SOURCE]).arg(folder.path()));
    folder
}

/// `released` holds what a release changes in the charts, as `diff` shows it, and the images and objects of both manifests.
#[test]
fn the_charts_and_manifests_of_a_release_are_as_recorded() {
    let folder = stamped();
    let released = folder.path().to_str().unwrap();
    let mut found = String::new();
    for chart in [CHART, ACCOUNTS, TICKETS] {
        let stamped = format!("{released}/{}", chart.strip_prefix("charts/").unwrap());
        let output = Command::new("diff").args(["-r", "-U0", chart, &stamped]).env("LC_ALL", "C").output().unwrap();
        let difference = String::from_utf8(output.stdout).unwrap().replace(released, "released");
        // Not where lines are and when files were made; the changes of a version have a test of their own.
        let varies = |line: &&str| {
            ["@@", "---", "+++"].iter().any(|mark| line.starts_with(mark)) || line.contains("artifacthub.io/changes")
        };
        found.extend(difference.lines().filter(|line| !varies(line)).flat_map(|line| [line, "\n"]));
    }
    for name in ["gmsa-webhook.yaml", "gmsa-webhook-kubernetes-1.25.yaml", "gmsa-static-policies.yaml"] {
        let manifest = text(folder.path().join(name));
        // Where they differ: the fields that older API servers do not know, and the names of the configurations.
        assert_eq!(manifest.contains("matchConditions:"), name != "gmsa-webhook-kubernetes-1.25.yaml", "{name}");
        assert!(!manifest.contains("placeholder"), "{manifest}");
        found.extend([name, "\n"]);
        let shown = |line: &&str| line.trim().starts_with("image: ") || line.contains("kubeadm:cluster-admins\"]");
        found.extend(manifest.lines().filter(shown).flat_map(|line| ["  ", line.trim(), "\n"]));
        for object in objects(&manifest) {
            let [kind, name] = [&object["kind"], &object["metadata"]["name"]].map(|value| value.as_str().unwrap());
            found.extend(["  ", kind, "/", name, "\n"]);
        }
    }
    assert_file("tests/chart/release/released", &found.replace(VERSION, "VERSION"));
    // What Artifact Hub takes from the sources.
    assert!(Path::new("docs/icon.svg").is_file());
    let crds = yaml(format!("{CHART}/Chart.yaml"))["annotations"]["artifacthub.io/crds"].clone();
    let crds: Value = serde_saphyr::from_str(crds.as_str().unwrap()).unwrap();
    assert_eq!((&crds[0]["kind"], &crds[0]["version"]), (&json!("GMSACredentialSpec"), &json!("v1")));
}

/// What Artifact Hub shows as the changes of a chart, of a version.
fn changes(folder: &Path, chart: &str) -> Vec<Value> {
    let described = yaml(folder.join(chart).join("Chart.yaml"));
    serde_saphyr::from_str(described["annotations"]["artifacthub.io/changes"].as_str().unwrap()).unwrap()
}

/// Only the changes of this version; each is one sentence, without links, and belongs to one chart.
#[test]
fn the_changes_of_a_chart_are_of_its_version() {
    let folder = tempfile::tempdir().unwrap();
    let sources = folder.path().join("sources");
    fs::create_dir(&sources).unwrap();
    for name in ["charts", "deploy"] {
        succeeds(Command::new("cp").args(["-r", name]).arg(&sources));
    }
    let section = |version: &str, what: &str| format!("## [{version}] - 2026-01-01\n\n### {what}\n\n");
    let log = format!(
        "# Changelog\n\n## [Unreleased]\n\n{}The chart:\n\n- The [chart](docs/install.md) renders `a`: b. More\n  of it.\n- `gmsa-accounts` names entries; and more, by Helm.\n- `check` of a chart.\n- The chart `gmsa-tickets` has values.\n\n{}- Helm, before.\n",
        section(VERSION, "Fixed"),
        section("0.0.1", "Added"),
    );
    fs::write(sources.join("CHANGELOG.md"), log).unwrap();
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    succeeds(Command::new("python3").args(["deploy/stamp.py", IMAGE, SOURCE]).arg(&out).current_dir(&sources));
    let fixed = |description: &str| vec![json!({"kind": "fixed", "description": description})];
    assert_eq!(changes(&out, "gmsa-webhook"), fixed("The chart renders `a`: b."));
    assert_eq!(changes(&out, "gmsa-accounts"), fixed("`gmsa-accounts` names entries"));
    assert_eq!(changes(&out, "gmsa-tickets"), fixed("The chart `gmsa-tickets` has values."));
}

/// The plugin's archives, without the version.
const ARCHIVES: [&str; 5] =
    ["darwin-amd64.tar.gz", "darwin-arm64.tar.gz", "linux-amd64.tar.gz", "linux-arm64.tar.gz", "windows-amd64.zip"];
/// Of "abc", which stands for each.
const CHECKSUM: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// The folder of a release, finished.
fn finished() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for archive in ARCHIVES {
        fs::write(folder.path().join(format!("kubectl-gmsa-{VERSION}-{archive}")), "abc").unwrap();
    }
    succeeds(Command::new("deploy/finish.sh").arg(folder.path()).arg(format!("{SOURCE}/")));
    folder
}

/// Krew, scoop and winget: `release/` has each file, with `VERSION` for the version.
#[test]
fn each_package_manager_gets_the_archives_with_their_checksums() {
    let folder = finished();
    for file in [
        "gmsa.krew.yaml",
        "kubectl-gmsa.json",
        "GMSA-Webhook.kubectl-gmsa.yaml",
        "GMSA-Webhook.kubectl-gmsa.installer.yaml",
        "GMSA-Webhook.kubectl-gmsa.locale.en-US.yaml",
    ] {
        let made = text(folder.path().join(file)).replace(VERSION, "VERSION");
        assert_file(format!("tests/chart/release/{file}"), &made);
    }
    // Krew's index refuses a longer one.
    let krew = yaml(folder.path().join("gmsa.krew.yaml"));
    assert!(krew["spec"]["shortDescription"].as_str().unwrap().len() <= 50);
}

#[test]
fn everything_is_in_the_checksums() {
    let folder = finished();
    let sums = text(folder.path().join("SHA256SUMS"));
    let mut named: Vec<&str> = sums.lines().map(|line| line.split_once("  ").unwrap().1).collect();
    named.push("SHA256SUMS");
    named.sort_unstable();
    let mut files: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    files.sort_unstable();
    assert_eq!(named, files);
    assert_eq!(sums.lines().filter(|line| line.starts_with(CHECKSUM)).count(), ARCHIVES.len());
    succeeds(Command::new("sha256sum").args(["--check", "--quiet", "SHA256SUMS"]).current_dir(folder.path()));
}

/// With stand-ins for buildah and helm, which write down what they are asked for and give a digest for each push; `pushed` has what is printed and asked.
#[test]
fn all_images_and_all_charts_are_pushed() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    for name in ["buildah", "helm"] {
        executable(folder.path().join(name), include_str!("release/pushing"));
    }
    let path = format!("{}:{}", folder.path().display(), env::var("PATH").unwrap());
    let charts = "registry.example.com/gmsa/charts";
    let mut publish = Command::new("deploy/publish.sh");
    let output = publish.args(["release", IMAGE, charts]).env("PATH", path).env("ASKED", &log).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let pushed = String::from_utf8(output.stdout).unwrap() + &text(log);
    assert_file("tests/chart/release/pushed", &asked(&pushed));
}
