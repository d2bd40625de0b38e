//! A folder of its own for a cluster, as on the desk of its administrator: the files there, and the commands that are run there.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    cluster::{BETWEEN_LOOKS, Cluster, Feature, printed},
    helm::CHART,
};

/// A CA certificate as far as the API server looks into one, in base64.
pub const CA: &str = include_str!("objects/ca.pem.base64").trim_ascii_end();

/// Where tests read what they do, and what they expect.
const DATA: &str = "tests/install";

/// The cases of a file: a line, and below it, indented, what is said.
pub fn cases(file: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(Path::new(DATA).join(file)).unwrap();
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines.len() % 2, 0, "{file}: a case is two lines");
    lines.chunks(2).map(|case| (case[0].to_owned(), case[1].trim_start().to_owned())).collect()
}

/// The first block of a page in this language with this text in it.
pub fn block(page: &str, language: &str, text: &str) -> String {
    let found = blocks(page, language).into_iter().find(|block| block.contains(text));
    found.unwrap_or_else(|| panic!("{page} has no block with {text}"))
}

/// The blocks of a page in this language.
pub fn blocks(page: &str, language: &str) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap();
    let start = format!("```{language}\n");
    text.split(&start).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// A line of `doctor`, `why` and `probe`.
#[derive(Deserialize)]
pub struct Line {
    pub status: String,
    pub about: String,
    pub text: String,
    #[serde(default)]
    pub rule: String,
    #[serde(default)]
    pub remedy: String,
}

impl Line {
    /// What it says without its sentence: those are asserted by the cases in `crates/kubectl-gmsa/tests/cli`.
    pub fn outcome(&self) -> String {
        format!("{} {} {}", self.status, self.about, self.rule).trim_end().to_owned()
    }
}

/// The folder, and its cluster.
pub struct Desk<'c> {
    /// The cluster that it is for.
    pub cluster: &'c Cluster,
    folder: tempfile::TempDir,
}

impl<'c> Desk<'c> {
    /// An empty one.
    pub fn new(cluster: &'c Cluster) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        Self { cluster, folder }
    }

    /// A desk with the folders of the repository.
    pub fn in_repository(cluster: &'c Cluster) -> Self {
        let desk = Self::new(cluster);
        for name in ["charts", "deploy", "certs", "examples", "tests"] {
            symlink(fs::canonicalize(name).unwrap(), desk.path(name)).unwrap();
        }
        desk
    }

    /// Where a file of this name is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Reads a file.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Writes a file.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// What is in its folder, temporary files included.
    pub fn files(&self) -> Vec<String> {
        let names = |folder: &Path| -> Vec<String> {
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        };
        let mut files = [names(self.folder.path()), names(&self.path("tmp"))].concat();
        files.retain(|name| name != "tmp");
        files.sort();
        files
    }

    /// Runs commands in a shell.
    pub fn shell(&self, commands: &str) -> Output {
        let mut command = self.cluster.command("bash");
        command.args(["-euo", "pipefail", "-c", commands]).current_dir(self.folder.path()).stdin(Stdio::null());
        command.output().unwrap()
    }

    /// What commands print, where they must succeed.
    pub fn run(&self, commands: &str) -> String {
        printed(self.shell(commands))
    }

    /// Runs the commands in backquotes, with these words for the placeholders.
    pub fn follow(&self, remedy: &str, words: &[(&str, &str)]) {
        for command in remedy.split('`').skip(1).step_by(2) {
            let words = [("CHART", CHART)].iter().chain(words);
            let command = words.fold(command.to_owned(), |command, (from, to)| command.replace(from, to));
            let output = self.shell(&command);
            assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }

    /// Runs the script that installs.
    pub fn script(&self, args: &[&str]) -> Output {
        self.script_with(args, &[])
    }

    /// The same, with this environment besides.
    pub fn script_with(&self, args: &[&str], env: &[(&str, &str)]) -> Output {
        let mut command = self.cluster.command("bash");
        command
            .arg(fs::canonicalize("deploy/deploy-gmsa-webhook.sh").unwrap())
            .args(args)
            .current_dir(self.folder.path());
        command.env("TMPDIR", self.path("tmp")).envs(env.iter().copied()).output().unwrap()
    }

    /// What the script prints, where it must succeed.
    pub fn installs(&self, args: &[&str]) -> String {
        printed(self.script(args))
    }

    /// `kubectl gmsa`.
    pub fn plugin(&self, line: &str) -> Output {
        let mut command = self.cluster.command("kubectl");
        command.arg("gmsa").args(line.split_whitespace()).current_dir(self.folder.path()).stdin(Stdio::null());
        command.output().unwrap()
    }

    /// What `kubectl gmsa` prints, and its exit code; it must have nothing to complain of, but may say what it waits for.
    pub fn gmsa(&self, line: &str) -> (String, i32) {
        let output = self.plugin(line);
        let errors = String::from_utf8_lossy(&output.stderr);
        let waits = |said: &str| line.contains("--wait") && said.starts_with("waiting: ");
        assert!(errors.lines().all(waits), "kubectl gmsa {line}: {errors}");
        (String::from_utf8(output.stdout).unwrap(), output.status.code().unwrap())
    }

    /// The findings of `kubectl gmsa`, each by its level, its rule and its object, and the exit code.
    pub fn finds(&self, line: &str) -> (Vec<String>, i32) {
        let (report, code) = self.gmsa(&format!("{line} -o json"));
        let report: Value = serde_json::from_str(&report).unwrap();
        let words = |found: &Value| ["level", "rule", "object"].map(|field| found[field].as_str().unwrap()).join(" ");
        (report["findings"].as_array().unwrap().iter().map(words).collect(), code)
    }

    /// The lines of `doctor`, `why` or `probe`, and the exit code.
    pub fn lines(&self, line: &str) -> (Vec<Line>, i32) {
        let (report, code) = self.gmsa(&format!("{line} -o json"));
        let mut report: Value = serde_json::from_str(&report).unwrap();
        (serde_json::from_value(report["checks"].take()).unwrap(), code)
    }

    /// The outcomes of the lines that begin so.
    pub fn outcomes(&self, line: &str, about: &str) -> Vec<String> {
        let (lines, _) = self.lines(line);
        lines.iter().filter(|line| line.about.starts_with(about)).map(Line::outcome).collect()
    }

    /// The outcome of each line, and the exit code, are those of this file. `UPDATE_SNAPSHOTS` writes it.
    pub fn assert_outcomes(&self, line: &str, file: &str) {
        let (lines, code) = self.lines(line);
        let outcomes: String = lines.iter().map(|line| line.outcome() + "\n").collect();
        let of_version = if self.cluster.has(Feature::MatchConditions) { "" } else { "without-match-conditions" };
        let file = Path::new(DATA).join("outcomes").join(of_version).join(file);
        let found = format!("{outcomes}exit {code}\n");
        if env::var_os("UPDATE_SNAPSHOTS").is_some() {
            fs::write(&file, &found).unwrap();
        }
        assert_eq!(found, fs::read_to_string(&file).unwrap(), "{line}: {}", file.display());
    }
}

/// The one line with which the script gave up.
pub fn line_of_giving_up(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let line = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(line.lines().count(), 1, "{line}");
    line.trim_end().strip_prefix("deploy-gmsa-webhook.sh: ").unwrap().to_owned()
}

/// While `work` goes on, every pod of the namespace `gmsa-webhook` becomes ready, as a node would make it.
pub fn with_a_node<T>(cluster: &Cluster, work: impl FnOnce() -> T) -> T {
    let condition = json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let ready = json!({"status": {"phase": "Running", "conditions": [condition]}});
    let run_pods = || {
        // Pods come and go meanwhile: what fails now is made up for in the next round.
        let pods = cluster.kubectl("get pods -n gmsa-webhook -o name");
        for pod in String::from_utf8(pods.stdout).unwrap().lines() {
            cluster.patch(&format!("{pod} -n gmsa-webhook --subresource=status"), &ready);
        }
    };
    alongside(run_pods, work)
}

/// While `work` goes on, does this again and again.
pub fn alongside<T>(again: impl Fn() + Send, work: impl FnOnce() -> T) -> T {
    let (working, is_over) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            while is_over.recv_timeout(BETWEEN_LOOKS) == Err(RecvTimeoutError::Timeout) {
                again();
            }
        });
        // It goes with a panic too.
        let _working = working;
        work()
    })
}
