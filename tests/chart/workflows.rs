//! What the workflows promise about releases: only commits of main, in an environment that can be protected, by tools that no push to a branch changes.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};

use crate::files::yaml;

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
