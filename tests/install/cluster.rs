//! The control plane as people use it: by kubectl, helm and the plugin. There is no node, so pods are stored and never run.

use std::{
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::{
    control_plane::{Binaries, ControlPlane, PATIENCE, tails},
    helm::Helm,
};

/// How often a condition is looked at.
pub const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// What not every supported version of Kubernetes has.
#[derive(Clone, Copy, Debug)]
pub enum Feature {
    MatchConditions,
    Guard,
    /// An object that breaks a rule of its schema already stays editable elsewhere.
    Ratcheting,
    StaticPolicies,
    SchedulingGates,
    NativeSidecars,
    /// Resources of a pod as a whole, the newest field of those that only Linux has.
    PodResources,
}

/// A control plane of its own. It ends with this value.
pub struct Cluster {
    // In the order in which they end.
    control_plane: ControlPlane,
    runtime: Runtime,
    folder: TempDir,
}

/// The built plugin.
pub fn plugin() -> PathBuf {
    // Built beside the server: `just e2e-install` does that.
    let plugin = Path::new(env!("CARGO_BIN_EXE_gmsa-webhook")).with_file_name("kubectl-gmsa");
    assert!(plugin.is_file(), "cargo build -p kubectl-gmsa must come first");
    plugin
}

/// The path of this process with the plugin on it.
pub fn path_with_plugin() -> std::ffi::OsString {
    let path = env::var_os("PATH").unwrap_or_default();
    let folder = plugin().parent().unwrap().to_owned();
    env::join_paths([folder].into_iter().chain(env::split_paths(&path))).unwrap()
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

    /// What the chart renders for this version of Kubernetes, as the release `gmsa`.
    pub fn template<'a>(&'a self, args: impl IntoIterator<Item = &'a str>) -> String {
        let version = ["--kube-version", &self.control_plane.version];
        Helm::new().template(version.into_iter().chain(args))
    }

    /// Whether the API server has this.
    pub fn has(&self, feature: Feature) -> bool {
        let has_field = |field: &str| self.kubectl(&format!("explain pod.spec.{field}")).status.success();
        match feature {
            Feature::MatchConditions => self.control_plane.has_match_conditions(),
            // Both are on by default from Kubernetes 1.30 on.
            Feature::Guard | Feature::Ratcheting => self
                .prints("get --raw /apis/admissionregistration.k8s.io/v1")
                .contains("\"validatingadmissionpolicies\""),
            Feature::StaticPolicies => self
                .prints("get --raw /metrics")
                .contains("kubernetes_feature_enabled{name=\"ManifestBasedAdmissionControlConfig\""),
            // On by default from Kubernetes 1.29 on.
            Feature::NativeSidecars => self.control_plane.minor() >= 29,
            Feature::SchedulingGates => has_field("schedulingGates"),
            Feature::PodResources => has_field("resources"),
        }
    }

    /// Whether the API server lacks this; what is left out for it says so.
    pub fn lacks(&self, feature: Feature) -> bool {
        let lacks = !self.has(feature);
        if lacks {
            println!("left out: kube-apiserver {} has no {feature:?}", self.control_plane.version);
        }
        lacks
    }

    /// The folder that it keeps everything in.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("admin.kubeconfig")
    }

    /// A new kubeconfig of a service account.
    pub fn kubeconfig_of(&self, namespace: &str, account: &str) -> PathBuf {
        let credentials = self.runtime.block_on(self.control_plane.kubeconfig_of(namespace, account));
        let file = self.folder.path().join(format!("{account}.kubeconfig"));
        fs::write(&file, credentials.to_string()).unwrap();
        file
    }

    /// A program that finds the cluster by `KUBECONFIG`, as the administrator, and the plugin on its path.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        // kubectl keeps its cache at home.
        command.env("KUBECONFIG", self.kubeconfig()).env("HOME", self.folder.path()).env("PATH", path_with_plugin());
        command
    }

    /// Creates a namespace, and waits until it takes pods.
    pub fn create_namespace(&self, namespace: &str) {
        self.prints(&format!("create namespace {namespace}"));
        self.until_pods_are_taken(namespace);
    }

    fn until_pods_are_taken(&self, namespace: &str) {
        let account = format!("serviceaccount default -n {namespace}");
        self.until("the namespace has its service account", || self.exists(&account));
    }

    /// Applies a CRD of ours or of before, and waits until its kind is served.
    pub fn define(&self, crd: &str) {
        self.apply(crd);
        self.until("the kind is served", || self.exists("gmsacredentialspecs"));
    }

    /// Runs `kubectl` with the words of this line.
    pub fn kubectl(&self, line: &str) -> Output {
        self.kubectl_with(line, "")
    }

    /// What `kubectl` prints, where it must succeed.
    pub fn prints(&self, line: &str) -> String {
        printed(self.kubectl(line))
    }

    /// What `kubectl get` shows of this.
    pub fn get(&self, line: &str) -> Value {
        serde_json::from_str(&self.prints(&format!("get {line} -o json"))).unwrap()
    }

    /// The items of what `kubectl get` shows of this.
    pub fn list(&self, line: &str) -> Vec<Value> {
        self.get(line)["items"].as_array().cloned().unwrap()
    }

    /// The names of what `kubectl get` finds, a line each.
    pub fn names(&self, line: &str) -> String {
        self.prints(&format!("get {line} -o name"))
    }

    /// Whether `kubectl get` finds it.
    pub fn exists(&self, line: &str) -> bool {
        self.kubectl(&format!("get {line}")).status.success()
    }

    /// The identity of an object: another one of the same name has another.
    pub fn uid(&self, line: &str) -> Value {
        self.get(line)["metadata"]["uid"].clone()
    }

    /// What `kubectl` complains of where it changes an object: an array is a JSON patch.
    pub fn patch(&self, line: &str, change: &Value) -> Option<String> {
        let kind = change.is_array().then_some("--type=json");
        let mut command = self.command("kubectl");
        command.arg("patch").args(line.split_whitespace()).args(kind).args(["--patch", &change.to_string()]);
        complaint(command.output().unwrap())
    }

    /// Changes an object, which must succeed.
    pub fn change(&self, line: &str, change: &Value) {
        assert_eq!(self.patch(line, change), None, "{line}: {change}");
    }

    /// Runs `kubectl` with this on its standard input.
    pub fn kubectl_with(&self, line: &str, input: &str) -> Output {
        let mut command = self.command("kubectl");
        command.args(line.split_whitespace()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("`kubectl` must be on the PATH; .ci/run installs it");
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Applies these objects, which must succeed.
    pub fn apply(&self, objects: &str) -> String {
        printed(self.kubectl_with("apply -f -", objects))
    }

    /// Runs `helm` with the words of this line.
    pub fn helm(&self, line: &str) -> Output {
        Helm::of_cluster(&self.kubeconfig()).run(line.split_whitespace())
    }

    /// What `helm` prints, where it must succeed.
    pub fn helm_prints(&self, line: &str) -> String {
        printed(self.helm(line))
    }

    /// What `helm` complains of, where it must fail: what the chart says, without Helm's words before it.
    pub fn helm_refuses(&self, line: &str) -> String {
        let said = complaint(self.helm(line)).unwrap_or_else(|| panic!("helm accepted it: {line}"));
        said.rsplit_once("): ").map_or(said.clone(), |(_, said)| said.to_owned())
    }

    /// Waits until `holds` is true; on a timeout, fails with the end of every log.
    pub fn until(&self, what: &str, holds: impl Fn() -> bool) {
        self.found(what, || holds().then_some(()));
    }

    /// The same, until there is something to give back.
    pub fn found<T>(&self, what: &str, look: impl Fn() -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(start.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain: {what}\n{}", tails(self.folder()));
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

/// What it complains of, or `None` where it succeeded.
pub fn complaint(output: Output) -> Option<String> {
    let errors = String::from_utf8(output.stderr).unwrap();
    (!output.status.success()).then(|| errors.trim().to_owned())
}
