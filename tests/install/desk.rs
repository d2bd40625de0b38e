//! `deploy/deploy-gmsa-webhook.sh` at work: a folder to run it in, and what a node would do for what it installs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::cluster::{Cluster, printed};

/// The script, from the root of the package, where tests run.
pub const SCRIPT: &str = "deploy/deploy-gmsa-webhook.sh";
/// A CA certificate as far as the API server looks into one, in base64.
pub const CA: &str = include_str!("ca.pem.base64").trim_ascii_end();

/// The script, in a folder of its own.
pub struct Desk<'a> {
    /// The cluster that it is for.
    pub cluster: &'a Cluster,
    folder: tempfile::TempDir,
}

impl<'a> Desk<'a> {
    /// An empty one.
    pub fn new(cluster: &'a Cluster) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        Self { cluster, folder }
    }

    /// Where a file of this name is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the script there.
    pub fn run(&self, args: &[&str]) -> Output {
        let script = fs::canonicalize(SCRIPT).unwrap();
        let mut command = self.cluster.command("bash");
        command.arg(script).args(args).current_dir(self.folder.path()).env("TMPDIR", self.path("tmp"));
        command.output().unwrap()
    }

    /// What the script prints, where it must succeed.
    pub fn prints(&self, args: &[&str]) -> String {
        printed(self.run(args))
    }

    /// The one line with which it gives up.
    pub fn gives_up(&self, args: &[&str]) -> String {
        line_of_giving_up(&self.run(args))
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

    /// An object of the cluster, or of the script's own namespace.
    pub fn get(&self, object: &str) -> Value {
        serde_json::from_str(&self.cluster.kubectl_prints(["get", object, "--namespace", "gmsa-webhook", "-o", "json"]))
            .unwrap()
    }

    /// Whether there is such an object.
    pub fn exists(&self, object: &str) -> bool {
        self.cluster.kubectl(["get", object, "--namespace", "gmsa-webhook"]).status.success()
    }
}

/// The one line with which the script gave up.
pub fn line_of_giving_up(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let line = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(line.lines().count(), 1, "{line}");
    line.trim_end().strip_prefix("deploy-gmsa-webhook.sh: ").unwrap().to_owned()
}

/// While `work` goes on, every pod of the namespace becomes ready, as a node would make it.
pub fn with_a_node<T>(cluster: &Cluster, namespace: &str, work: impl FnOnce() -> T) -> T {
    struct Done<'a>(&'a AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let ready = json!({"status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
            ]}})
            .to_string();
            while !done.load(Ordering::Acquire) {
                // Pods come and go meanwhile: what fails now is made up for in the next round.
                let pods = cluster.kubectl(["get", "pods", "--namespace", namespace, "-o", "name"]);
                for pod in String::from_utf8(pods.stdout).unwrap().lines() {
                    cluster.kubectl([
                        "patch",
                        pod,
                        "--namespace",
                        namespace,
                        "--subresource=status",
                        "--patch",
                        &ready,
                    ]);
                }
                thread::sleep(Duration::from_millis(300));
            }
        });
        let _done = Done(&done);
        work()
    })
}
