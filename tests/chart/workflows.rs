//! What the workflows promise about releases: only commits of main, in an environment that can be protected, by tools that no push to a branch changes.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};

use crate::files::{executable, yaml};

fn workflow(name: &str) -> Value {
    yaml(format!(".github/workflows/{name}.yml"))
}

/// Runs git in a folder, which must succeed.
fn git(folder: &Path, args: &[&str]) -> String {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"];
    let output = Command::new("git").args(identity).args(args).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn only_a_commit_of_main_is_released() {
    let release = workflow("release");
    let jobs = release["jobs"].as_object().unwrap();
    for (name, job) in jobs {
        let needs = match name.as_str() {
            "tag" => Value::Null,
            "publish" => json!(["build", "macos"]),
            _ => json!("tag"),
        };
        assert_eq!(job["needs"], needs, "{name}");
    }
    assert_eq!(jobs["publish"]["environment"], "release");
    let steps = jobs["tag"]["steps"].as_array().unwrap();
    assert_eq!(steps[0]["with"]["fetch-depth"], 0);

    let folder = tempfile::tempdir().unwrap();
    let (origin, clone) = (folder.path().join("origin"), folder.path().join("clone"));
    fs::create_dir(&origin).unwrap();
    git(&origin, &["init", "--quiet", "--initial-branch=main"]);
    git(&origin, &["commit", "--quiet", "--allow-empty", "--message=one"]);
    let before = git(&origin, &["rev-parse", "HEAD"]);
    git(&origin, &["commit", "--quiet", "--allow-empty", "--message=two"]);
    let main = git(&origin, &["rev-parse", "HEAD"]);
    git(&origin, &["checkout", "--quiet", "-b", "other"]);
    git(&origin, &["commit", "--quiet", "--allow-empty", "--message=three"]);
    let other = git(&origin, &["rev-parse", "HEAD"]);
    git(folder.path(), &["clone", "--quiet", "origin", "clone"]);
    for (commit, code, said) in
        [(before, 0, ""), (main, 0, ""), (other, 1, "::error::v1.2.3 is on no commit of main\n")]
    {
        let mut step = Command::new("bash");
        step.args(["-e", "-c", steps[1]["run"].as_str().unwrap()]).current_dir(&clone);
        let output = step.env("GITHUB_SHA", commit).env("GITHUB_REF_NAME", "v1.2.3").output().unwrap();
        assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stdout).as_ref()), (Some(code), said));
    }
}

/// A team or an address that is nobody's must not be released.
#[test]
fn a_placeholder_stops_a_tag() {
    let steps = workflow("release")["jobs"]["tag"]["steps"].clone();
    let step = steps.as_array().unwrap().iter().find(|step| step["name"] == "No placeholder is left").unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join(".github")).unwrap();
    let run = || {
        let mut bash = Command::new("bash");
        let output =
            bash.args(["-e", "-c", step["run"].as_str().unwrap()]).current_dir(folder.path()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let files = ["SECURITY-INSIGHTS.yml", ".github/CODEOWNERS"];
    let texts = files.map(|file| fs::read_to_string(file).unwrap());
    let replaced =
        |text: &str| text.replace("https://localhost", "https://git.example.com").replace("@example/", "@team/");
    for left in [Some(0), Some(1), None] {
        for (at, (file, text)) in files.iter().zip(&texts).enumerate() {
            let text = if left == Some(at) { text.clone() } else { replaced(text) };
            fs::write(folder.path().join(file), text).unwrap();
        }
        let (code, said) = run();
        assert_eq!(code, Some(i32::from(left.is_some())), "{said}");
        assert_eq!(said.ends_with("::error::replace these placeholders\n"), left.is_some(), "{said}");
        assert!(left.is_none_or(|at| said.starts_with(files[at])), "{said}");
    }
    // A file that is not there has no placeholder either.
    for file in files {
        let text = fs::read_to_string(folder.path().join(file)).unwrap();
        fs::write(folder.path().join(file), "").unwrap();
        let missing = (Some(1), format!("::error::{file} is missing or empty\n"));
        assert_eq!(run(), missing);
        fs::remove_file(folder.path().join(file)).unwrap();
        assert_eq!(run(), missing);
        fs::write(folder.path().join(file), text).unwrap();
    }
}

/// A checked-out action has no repository of its own, and a server of its own has another issuer.
#[test]
fn the_action_verifies_by_the_issuer_of_its_server() {
    let action = yaml("action.yml");
    let install = action["runs"]["steps"][1].clone();
    let repository = "${{ inputs.server }}/${{ github.action_repository || github.repository }}";
    assert_eq!(install["env"]["RELEASES"], format!("{repository}/releases/download"));
    assert_eq!(install["env"]["WORKFLOW"], format!("{repository}/.github/workflows/release.yml"));
    assert_eq!(action["inputs"]["server"]["default"], "${{ github.server_url }}");
    for (source, issuer) in [
        ("https://github.com/gmsa/gmsa-webhook", "https://token.actions.githubusercontent.com"),
        ("https://git.example.com/gmsa/gmsa-webhook", "https://git.example.com/_services/token"),
        ("https://octocorp.ghe.com/gmsa/gmsa-webhook", "https://token.actions.octocorp.ghe.com"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let asked = folder.path().join("asked");
        let record = format!("#!/bin/bash\nprintf '%s\\n' \"$0\" \"$@\" >>{}\n", asked.display());
        executable(folder.path().join("curl"), &record);
        executable(folder.path().join("cosign"), &format!("{record}exit 1\n"));
        let path = format!("{}:/usr/bin:/bin", folder.path().display());
        let mut step = Command::new("deploy/action.sh");
        let (releases, workflow) =
            (format!("{source}/releases/download"), format!("{source}/.github/workflows/release.yml"));
        step.args(["install", &releases, &workflow]).env("PATH", path);
        step.env("RUNNER_OS", "Linux").env("RUNNER_ARCH", "X64");
        let output = step.env("RUNNER_TEMP", folder.path()).env("GITHUB_PATH", "/dev/null").output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let asked = fs::read_to_string(asked).unwrap();
        let version = env!("CARGO_PKG_VERSION");
        for line in
            [issuer.to_owned(), format!("{workflow}@refs/tags/v{version}"), format!("{releases}/v{version}/SHA256SUMS")]
        {
            assert!(asked.lines().any(|said| said == line), "{line}: {asked}");
        }
    }
}

#[test]
fn what_the_workflows_run_is_pinned_to_a_commit() {
    let is_commit = |text: &str| text.len() == 40 && text.chars().all(|c| c.is_ascii_hexdigit());
    let steps = workflow("ci")["jobs"]["e2e"]["steps"].clone();
    let tool = steps.as_array().unwrap().iter().find_map(|step| step["env"]["SETUP_ENVTEST"].as_str()).unwrap();
    assert!(is_commit(tool.rsplit_once('@').unwrap().1), "{tool}");
    let actions = |steps: &Value| -> Vec<String> {
        let used = steps.as_array().unwrap().iter().filter_map(|step| step["uses"].as_str());
        used.map(str::to_owned).collect()
    };
    let mut used = Vec::new();
    let mut files = 0;
    for file in fs::read_dir(".github/workflows").unwrap() {
        let path = file.unwrap().path();
        let jobs = workflow(path.file_stem().unwrap().to_str().unwrap())["jobs"].clone();
        used.extend(jobs.as_object().unwrap().values().flat_map(|job| actions(&job["steps"])));
        files += 1;
    }
    assert!(files >= 4, "{files}");
    let action = yaml("action.yml");
    let installer = actions(&action["runs"]["steps"]);
    // A release is verified by the cosign that signed it.
    assert!(installer.len() == 1 && used.contains(&installer[0]), "{installer:?}");
    for action in used {
        assert!(is_commit(action.rsplit_once('@').unwrap().1), "{action}");
    }
}
