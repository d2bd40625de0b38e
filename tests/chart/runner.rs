//! Walks the release workflow as a runner does: job after job, each in a folder of its own, with the rules of upload-artifact and download-artifact for paths. The
//! steps' own commands run, and so do `finish.sh`, `publish.sh` and `notes.py`; what takes a compiler, a registry or GitHub is a stand-in, which fails where a file
//! that it is given is not there, and writes down what it was asked for.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::{
    files::{asked, executable, text, yaml},
    snapshot::assert_file,
};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What the expressions of the workflow are. An unknown expression fails the walk.
const CONTEXT: [(&str, &str); 4] = [
    ("vars.REGISTRY", "registry.example.com/gmsa"),
    ("github.server_url", "https://git.example.com"),
    ("github.repository", "gmsa/gmsa-webhook"),
    ("github.token", "token"),
];

/// What `deploy/dist.sh` leaves in `target/release-VERSION`, apart from what `finish.sh` adds; what the job for macOS adds; and what `finish.sh` and the signing add.
const MADE_BY_DIST: &str = include_str!("runner/made-by-dist");
const MADE_ON_MACOS: &str = include_str!("runner/made-on-macos");
const ADDED: &str = include_str!("runner/added");

/// Programs that do nothing here.
const SILENT: [&str; 3] = ["apt-get", "git", "rustup"];
/// Programs that write down what they are asked for, and fail where it names a file that there is not.
const RECORDED: [&str; 4] = ["buildah", "cosign", "gh", "helm"];
const RECORD: &str = include_str!("runner/record");
const SUDO: &str = include_str!("runner/sudo");
/// They make the same files by the same arguments.
const DIST: &str = include_str!("runner/dist.sh");
const PLUGIN: &str = include_str!("runner/plugin.sh");

fn of_this_version(text: &str) -> String {
    text.replace("VERSION", VERSION)
}

/// All files below a folder, by their path in it.
fn files(folder: &Path) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            found.extend(files(&entry.path()).into_iter().map(|(path, file)| (format!("{name}/{path}"), file)));
        } else {
            found.insert(name, entry.path());
        }
    }
    found
}

/// Whether a name fits a pattern whose only wildcard is `*`, which stands for no slash.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            let most = name.find('/').unwrap_or(name.len());
            (0..=most).any(|at| fits(rest, &name[at..]))
        }),
    }
}

/// What upload-artifact takes of a workspace, by the path in the artifact: files, and all that is in folders, that fit one of the paths. The root is the part of the path
/// before its first wildcard, of several paths what all of those begin with.
/// <https://github.com/actions/upload-artifact#upload-using-multiple-paths-and-exclusions>
fn uploaded(workspace: &Path, paths: &str) -> BTreeMap<String, PathBuf> {
    let patterns: Vec<&str> =
        paths.lines().map(|path| path.trim().trim_end_matches('/')).filter(|path| !path.is_empty()).collect();
    let root_of = |pattern: &&str| -> Vec<String> {
        let parts = pattern.split('/').take_while(|part| !part.contains('*')).map(str::to_owned);
        let parts: Vec<String> = parts.collect();
        let is_file = workspace.join(pattern).is_file();
        parts[..parts.len() - usize::from(is_file)].to_vec()
    };
    let roots: Vec<Vec<String>> = patterns.iter().map(root_of).collect();
    let shared = (0..roots[0].len()).take_while(|at| roots.iter().all(|root| root.get(*at) == Some(&roots[0][*at])));
    let root = roots[0][..shared.count()].iter().fold(String::new(), |root, part| root + part + "/");
    let below = |file: &String, pattern: &&str| {
        let depth = pattern.split('/').count();
        fits(pattern, &file.split('/').take(depth).collect::<Vec<_>>().join("/"))
    };
    let taken = files(workspace).into_iter().filter(|(file, _)| patterns.iter().any(|pattern| below(file, pattern)));
    taken.map(|(file, path)| (file.strip_prefix(&root).unwrap().to_owned(), path)).collect()
}

#[test]
fn artifacts_have_the_paths_that_the_action_gives_them() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["target/release-1/a", "target/release-1/b/c", "target/debug/d", "macos/e"] {
        fs::create_dir_all(folder.path().join(file).parent().unwrap()).unwrap();
        fs::write(folder.path().join(file), "").unwrap();
    }
    for (path, expected) in [
        ("target/release-*/", &["release-1/a", "release-1/b/c"][..]),
        ("target/release-1/", &["a", "b/c"]),
        ("target/release-*/*", &["release-1/a", "release-1/b/c"]),
        ("macos/e", &["e"]),
        ("macos/\ntarget/release-1/", &["macos/e", "target/release-1/a", "target/release-1/b/c"]),
        ("target/release-1/\ntarget/debug/", &["debug/d", "release-1/a", "release-1/b/c"]),
        ("nothing/", &[]),
    ] {
        assert_eq!(uploaded(folder.path(), path).into_keys().collect::<Vec<_>>(), expected, "{path}");
    }
}

/// A runner, with what the jobs leave for each other.
struct Runner {
    folder: tempfile::TempDir,
    workflow: Value,
    artifacts: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    /// What was attested: the name and the digest, or the file.
    attested: Vec<String>,
}

impl Runner {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let programs = folder.path().join("programs");
        fs::create_dir(&programs).unwrap();
        for name in SILENT {
            executable(programs.join(name), "#!/bin/sh\n");
        }
        for name in RECORDED {
            executable(programs.join(name), RECORD);
        }
        executable(programs.join("sudo"), SUDO);
        let workflow = yaml(".github/workflows/release.yml");
        Self { folder, workflow, artifacts: BTreeMap::new(), attested: Vec::new() }
    }

    /// What checkout brings: as much of the sources as the steps read, of a commit whose changes have the section of the release.
    fn check_out(workspace: &Path) {
        for file in ["Cargo.toml", "deploy/finish.sh", "deploy/publish.sh", "deploy/notes.py", "examples/credspec.yaml"]
        {
            fs::create_dir_all(workspace.join(file).parent().unwrap()).unwrap();
            fs::copy(file, workspace.join(file)).unwrap();
        }
        // What a fork replaces before its first release.
        for file in ["SECURITY-INSIGHTS.yml", ".github/CODEOWNERS"] {
            fs::create_dir_all(workspace.join(file).parent().unwrap()).unwrap();
            let replaced =
                text(file).replace("https://localhost", "https://git.example.com").replace("@example/", "@team/");
            fs::write(workspace.join(file), replaced).unwrap();
        }
        fs::write(
            workspace.join("CHANGELOG.md"),
            format!("# Changelog\n\n## [{VERSION}] - 2026-01-01\n\n### Added\n\n- All of it.\n"),
        )
        .unwrap();
        assert!(text("deploy/dist.sh").contains("\nfolder=$target_folder/release-$version\n"));
        executable(
            workspace.join("deploy/dist.sh"),
            &of_this_version(&DIST.replace("FILES", &MADE_BY_DIST.trim_end().replace('\n', " "))),
        );
        executable(workspace.join("deploy/plugin.sh"), &of_this_version(PLUGIN));
    }

    /// The text with its expressions evaluated.
    fn evaluated(&self, text: &str, outputs: &BTreeMap<String, String>) -> String {
        let mut parts = text.split("${{");
        let mut out = parts.next().unwrap().to_owned();
        for part in parts {
            let (expression, rest) = part.split_once("}}").unwrap();
            let expression = expression.trim();
            let known = CONTEXT.iter().find(|(name, _)| *name == expression).map(|(_, value)| (*value).to_owned());
            let of_env = expression
                .strip_prefix("env.")
                .map(|name| self.evaluated(self.workflow["env"][name].as_str().unwrap(), outputs));
            let value = known.or(of_env).or_else(|| outputs.get(expression).cloned());
            out += &value.unwrap_or_else(|| panic!("{expression} has no value"));
            out += rest;
        }
        out
    }

    fn walk(&mut self, job: &str) {
        let workspace = self.folder.path().join(job);
        fs::create_dir(&workspace).unwrap();
        let mut outputs = BTreeMap::new();
        for step in self.workflow["jobs"][job]["steps"].as_array().unwrap().clone() {
            let with = |name: &str| self.evaluated(step["with"][name].as_str().unwrap_or_default(), &outputs);
            match step["uses"].as_str().map_or("", |uses| uses.split('@').next().unwrap()) {
                "" => self.run(&workspace, &step, &mut outputs),
                "actions/checkout" => Self::check_out(&workspace),
                "actions/upload-artifact" => {
                    let taken = uploaded(&workspace, &with("path"));
                    assert!(!taken.is_empty(), "{job}: no files were found with the path {}", with("path"));
                    let taken = taken.into_iter().map(|(name, file)| (name, fs::read(file).unwrap())).collect();
                    let name = with("name");
                    self.artifacts.insert(name, taken);
                }
                "actions/download-artifact" => {
                    let is_merged = step["with"]["merge-multiple"] == true;
                    for (name, held) in self.artifacts.iter().filter(|(name, _)| fits(&with("pattern"), name)) {
                        let to = workspace.join(with("path")).join(if is_merged { "" } else { name });
                        for (file, bytes) in held {
                            fs::create_dir_all(to.join(file).parent().unwrap()).unwrap();
                            fs::write(to.join(file), bytes).unwrap();
                        }
                    }
                }
                "actions/attest-build-provenance" => {
                    let (file, name, digest) =
                        (with("subject-checksums"), with("subject-name"), with("subject-digest"));
                    if file.is_empty() {
                        assert!(digest.starts_with("sha256:") && digest.len() == 71, "{name}: {digest:?}");
                        assert_eq!(step["with"]["push-to-registry"], true, "{name}");
                        self.attested.push(name);
                    } else {
                        assert!(workspace.join(&file).is_file(), "{file}");
                        self.attested.push(file);
                    }
                }
                "sigstore/cosign-installer" => {}
                other => panic!("nothing is known of {other}"),
            }
        }
    }

    /// Runs a step's commands, as GitHub does where no shell is named.
    fn run(&self, workspace: &Path, step: &Value, outputs: &mut BTreeMap<String, String>) {
        let path = format!("{}:{}", self.folder.path().join("programs").display(), env::var("PATH").unwrap());
        let written = workspace.join(".outputs");
        fs::write(&written, "").unwrap();
        let mut bash = Command::new("bash");
        bash.args(["-e", "-c", step["run"].as_str().unwrap()]).current_dir(workspace).env("PATH", path);
        bash.env("ASKED", self.folder.path().join("asked")).env("GITHUB_OUTPUT", &written).env("GITHUB_ACTOR", "actor");
        bash.env("GITHUB_REF_NAME", format!("v{VERSION}"))
            .env("GITHUB_SHA", "0")
            .env("CARGO_HOME", "/")
            .env("RUSTUP_HOME", "/");
        for env in [&self.workflow["env"], &step["env"]] {
            for (name, value) in env.as_object().into_iter().flatten() {
                bash.env(name, self.evaluated(value.as_str().unwrap(), outputs));
            }
        }
        let output = bash.output().unwrap();
        assert!(output.status.success(), "{}: {}", step["run"], String::from_utf8_lossy(&output.stderr));
        let id = step["id"].as_str().unwrap_or_default();
        for line in text(&written).lines() {
            let (name, value) = line.split_once('=').unwrap();
            outputs.insert(format!("steps.{id}.outputs.{name}"), value.to_owned());
        }
        fs::remove_file(written).unwrap();
    }
}

#[test]
fn a_release_is_published_with_everything_in_it() {
    let mut runner = Runner::new();
    for job in ["tag", "build", "macos", "publish"] {
        runner.walk(job);
    }
    assert_eq!(runner.workflow["jobs"].as_object().unwrap().len(), 4);
    let all = of_this_version(&[MADE_BY_DIST, MADE_ON_MACOS, ADDED].concat());
    let all: BTreeSet<String> = all.lines().map(str::to_owned).collect();
    let release = runner.folder.path().join("publish/release");
    assert_eq!(files(&release).into_keys().collect::<BTreeSet<_>>(), all);
    // Every file but the checksums and their signature is in the checksums.
    let sums = text(release.join("SHA256SUMS"));
    assert_eq!(sums.lines().count(), all.len() - 2);

    let log = text(runner.folder.path().join("asked"));
    let created = log.lines().find_map(|line| line.strip_prefix("gh release create ")).unwrap();
    let files: BTreeSet<String> =
        created.split(' ').filter_map(|word| word.strip_prefix("release/")).map(str::to_owned).collect();
    assert_eq!(files, all);
    // What is pushed, signed and attested, with the bill of materials of each program for what holds it, or installs it.
    let attested = runner.attested.iter().flat_map(|name| ["attested ", name, "\n"]).collect::<String>();
    assert_file("tests/chart/runner/asked", &asked(&(log + &attested)));
}

/// docs/install.md says for each of them how it is verified.
#[test]
fn what_is_attached_can_be_verified_by_a_line_of_the_page() {
    let page = text("docs/install.md");
    for line in [
        "cosign verify REGISTRY/gmsa-webhook:",
        "cosign verify REGISTRY/gmsa-tickets:",
        "cosign verify REGISTRY/kubectl-gmsa:",
        "cosign verify REGISTRY/charts/gmsa-webhook:",
        "cosign verify REGISTRY/charts/gmsa-accounts:",
        "cosign verify REGISTRY/charts/gmsa-tickets:",
        "cosign verify-attestation --type cyclonedx REGISTRY/gmsa-webhook:",
        "cosign verify-attestation --type cyclonedx REGISTRY/charts/gmsa-webhook:",
        "cosign verify-attestation --type cyclonedx REGISTRY/gmsa-tickets:",
        "cosign verify-attestation --type cyclonedx REGISTRY/charts/gmsa-tickets:",
        "cosign verify-attestation --type cyclonedx REGISTRY/kubectl-gmsa:",
        "gh attestation verify oci://REGISTRY/gmsa-webhook:",
        "gh attestation verify oci://REGISTRY/gmsa-tickets:",
        "gh attestation verify oci://REGISTRY/kubectl-gmsa:",
        "gh attestation verify oci://REGISTRY/charts/gmsa-webhook:",
        "gh attestation verify oci://REGISTRY/charts/gmsa-accounts:",
        "gh attestation verify oci://REGISTRY/charts/gmsa-tickets:",
        "gh attestation verify kubectl-gmsa-",
    ] {
        assert!(page.lines().any(|said| said.starts_with(line)), "{line}");
    }
}
