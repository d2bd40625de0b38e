//! A real control plane on loopback, for tests: etcd, kube-apiserver and kube-controller-manager on free ports, below a folder of
//! their own. There is no node: pods are stored and never run.
//!
//! The binaries are looked for in `KUBEBUILDER_ASSETS`, by default `/usr/local/kubebuilder/bin`. Where they are not there, a test that
//! needs them says so in one line and passes.

use std::{
    env, fs,
    io::{self, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// How long anything may take to come true.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// How often it is looked whether it has.
const PAUSE: Duration = Duration::from_millis(200);

/// A running control plane. It ends with this value.
pub struct ControlPlane {
    folder: TempDir,
    // The last one started comes first: nothing loses what it talks to before it ends itself.
    processes: Vec<Child>,
}

impl ControlPlane {
    /// Starts one, and waits until it is ready. `None` where the binaries are not there.
    pub fn start() -> Option<Self> {
        let assets = env::var_os("KUBEBUILDER_ASSETS").unwrap_or_else(|| "/usr/local/kubebuilder/bin".into());
        let assets = PathBuf::from(assets);
        if ["etcd", "kube-apiserver", "kube-controller-manager"].iter().any(|binary| !assets.join(binary).is_file()) {
            // Not by eprintln!, which a test that passes does not show.
            writeln!(io::stderr(), "no control plane in {}: not tested on one", assets.display()).unwrap();
            return None;
        }
        let mut plane = Self { folder: tempfile::tempdir().unwrap(), processes: Vec::new() };
        let [client, peer, api] = free_ports();
        let path = |name: &str| plane.folder.path().join(name).display().to_string();
        let (key, public_key) = (path("service-accounts.key"), path("service-accounts.pub"));
        let kubeconfig = path("kubeconfig");
        let (etcd, certificates, tokens) = (path("etcd"), path("certificates"), path("tokens.csv"));
        let pair = rcgen::KeyPair::generate().unwrap();
        fs::write(&key, pair.serialize_pem()).unwrap();
        fs::write(&public_key, pair.public_key_pem()).unwrap();
        fs::write(&tokens, "admin-token,admin,admin-uid,system:masters\n").unwrap();
        fs::write(&kubeconfig, admin_kubeconfig(api)).unwrap();

        let client = format!("http://127.0.0.1:{client}");
        let peer = format!("http://127.0.0.1:{peer}");
        plane.spawn(
            &assets.join("etcd"),
            &[
                ("data-dir", etcd.as_str()),
                ("listen-client-urls", &client),
                ("advertise-client-urls", &client),
                ("listen-peer-urls", &peer),
                ("initial-advertise-peer-urls", &peer),
                ("initial-cluster", &format!("default={peer}")),
                ("unsafe-no-fsync", "true"),
            ],
        );
        plane.spawn(
            &assets.join("kube-apiserver"),
            &[
                ("etcd-servers", client.as_str()),
                ("bind-address", "127.0.0.1"),
                ("advertise-address", "127.0.0.1"),
                ("secure-port", &api.to_string()),
                ("cert-dir", &certificates),
                ("service-cluster-ip-range", "10.0.0.0/24"),
                ("service-account-issuer", "https://kubernetes.default.svc"),
                ("service-account-key-file", &public_key),
                ("service-account-signing-key-file", &key),
                ("token-auth-file", &tokens),
                ("authorization-mode", "RBAC"),
            ],
        );
        plane.until("the API server is ready", |plane| plane.kubectl(["get", "--raw", "/readyz"]).status.success());
        plane.spawn(
            &assets.join("kube-controller-manager"),
            &[
                ("kubeconfig", kubeconfig.as_str()),
                ("service-account-private-key-file", &key),
                ("leader-elect", "false"),
                ("secure-port", "0"),
            ],
        );
        plane.until("the default service account is there", |plane| {
            plane.kubectl(["get", "serviceaccount", "default"]).status.success()
        });
        Some(plane)
    }

    fn spawn(&mut self, binary: &Path, flags: &[(&str, &str)]) {
        let log = self.folder.path().join(format!("{}.log", binary.file_name().unwrap().display()));
        let log = fs::File::create(log).unwrap();
        let child = Command::new(binary)
            .args(flags.iter().map(|(name, value)| format!("--{name}={value}")))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.processes.insert(0, child);
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// A `kubectl`, or any other program that reads `KUBECONFIG`, set up for the administrator.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        // kubectl keeps its cache at home.
        command.env("KUBECONFIG", self.kubeconfig()).env("HOME", self.folder.path());
        command
    }

    /// Runs `kubectl`.
    pub fn kubectl<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Output {
        self.command("kubectl").args(args).output().expect("`kubectl` must be on the PATH for this test; .ci/run installs it")
    }

    /// What `kubectl` prints, where it must succeed.
    pub fn kubectl_prints<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> String {
        printed(self.kubectl(args))
    }

    /// Runs `kubectl` with this on its standard input.
    pub fn kubectl_with<'a>(&self, args: impl IntoIterator<Item = &'a str>, input: &str) -> Output {
        let mut child = self
            .command("kubectl")
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Applies these objects, which must succeed.
    pub fn apply(&self, objects: &str) -> String {
        printed(self.kubectl_with(["apply", "-f", "-"], objects))
    }

    /// Waits until it is so, and fails where it does not come.
    pub fn until(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let start = Instant::now();
        while !holds(self) {
            assert!(start.elapsed() < PATIENCE, "waited in vain until {what}; {}", self.last_words());
            sleep(PAUSE);
        }
    }
}

impl ControlPlane {
    /// The last line of each process.
    fn last_words(&self) -> String {
        let logs = ["etcd", "kube-apiserver", "kube-controller-manager"].map(|name| {
            let log = fs::read_to_string(self.folder.path().join(format!("{name}.log"))).unwrap_or_default();
            format!("{name}: {}", log.lines().last().unwrap_or_default())
        });
        logs.join("; ")
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // It may be gone already; there is nobody left to tell otherwise.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// What it printed, where it succeeded.
pub fn printed(output: Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// Ports that were free a moment ago.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

fn admin_kubeconfig(port: u16) -> String {
    format!(
        r"apiVersion: v1
kind: Config
clusters: [{{name: test, cluster: {{server: 'https://127.0.0.1:{port}', insecure-skip-tls-verify: true}}}}]
users: [{{name: admin, user: {{token: admin-token}}}}]
contexts: [{{name: test, context: {{cluster: test, user: admin}}}}]
current-context: test
"
    )
}
