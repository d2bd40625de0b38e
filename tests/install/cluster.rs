//! The control plane as people use it: by kubectl. There is no node, so pods are stored and never run.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::control_plane::{Binaries, ControlPlane, PATIENCE, tails};

/// How often a condition is looked at.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// A control plane of its own. It ends with this value.
pub struct Cluster {
    // In the order in which they end.
    control_plane: ControlPlane,
    runtime: Runtime,
    folder: TempDir,
}

impl Cluster {
    /// Starts one, and waits until it takes pods.
    pub fn start() -> Self {
        let binaries = Binaries::find().unwrap_or_else(|missing| panic!("{missing}"));
        assert!(binaries.controller_manager.is_some(), "there is no kube-controller-manager beside kube-apiserver");
        let folder = tempfile::Builder::new().prefix("gmsa-install-").tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let control_plane = runtime.block_on(ControlPlane::start(binaries, folder.path()));
        let cluster = Self { control_plane, runtime, folder };
        cluster.until_pods_are_taken("default");
        cluster
    }

    /// The control plane itself, and what its asynchronous parts run on.
    pub fn control_plane(&self) -> (&ControlPlane, &Runtime) {
        (&self.control_plane, &self.runtime)
    }

    /// Restarts the API server with this audit policy, and gives back the file that it writes its events to.
    pub fn audit(&mut self, policy: &str) -> PathBuf {
        let log = self.runtime.block_on(self.control_plane.audit(policy));
        self.until_pods_are_taken("default");
        log
    }

    /// Restarts the API server with these policies as a file of its own, which it gives back.
    pub fn load_static_policies(&mut self, manifest: &str) -> PathBuf {
        let file = self.runtime.block_on(self.control_plane.load_static_policies(manifest));
        self.until_pods_are_taken("default");
        file
    }

    /// The folder that it keeps everything in.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("admin.kubeconfig")
    }

    /// A program that finds the cluster by `KUBECONFIG`, as the administrator.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        // kubectl keeps its cache at home.
        command.env("KUBECONFIG", self.kubeconfig()).env("HOME", self.folder.path());
        command
    }

    /// Creates a namespace, and waits until it takes pods.
    pub fn create_namespace(&self, namespace: &str) {
        self.kubectl_prints(["create", "namespace", namespace]);
        self.until_pods_are_taken(namespace);
    }

    fn until_pods_are_taken(&self, namespace: &str) {
        self.until("the namespace has its service account", || {
            self.kubectl(["get", "serviceaccount", "default", "--namespace", namespace]).status.success()
        });
    }

    /// Runs `kubectl`.
    pub fn kubectl<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Output {
        self.command("kubectl").args(args).output().expect("`kubectl` must be on the PATH; .ci/run installs it")
    }

    /// What `kubectl` prints, where it must succeed.
    pub fn kubectl_prints<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> String {
        printed(self.kubectl(args))
    }

    /// Runs `kubectl` with this on its standard input.
    pub fn kubectl_with<'a>(&self, args: impl IntoIterator<Item = &'a str>, input: &str) -> Output {
        let mut command = self.command("kubectl");
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("`kubectl` must be on the PATH; .ci/run installs it");
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Applies these objects, which must succeed.
    pub fn apply(&self, objects: &str) -> String {
        printed(self.kubectl_with(["apply", "-f", "-"], objects))
    }

    /// Waits until it is so, and fails with the end of every log where it does not come.
    pub fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let start = Instant::now();
        while !holds() {
            assert!(
                start.elapsed() < PATIENCE,
                "waited {} s in vain: {what}\n{}",
                PATIENCE.as_secs(),
                tails(self.folder())
            );
            sleep(BETWEEN_LOOKS);
        }
    }
}

/// What it printed, where it succeeded.
pub fn printed(output: Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}
