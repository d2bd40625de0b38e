//! A real control plane on loopback: etcd, kube-apiserver and, where it is there, kube-controller-manager.
//!
//! Invariants: everything it writes is in one temporary folder, everything it listens on is a free port of
//! 127.0.0.1, or port 6443 of the address of a node, its credentials are made for this run, and its processes end with it. It
//! decides nothing about what is tested.

use std::{
    fs,
    net::{IpAddr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, SystemTime},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gmsa_edge::tls::issue::Ca;
use rustix::process::Signal;
use serde_json::{Value, json};

mod binaries;
mod caller;
mod client;
mod installation;
mod process;
mod registration;
mod webhook;

pub use binaries::Binaries;
pub use caller::{CALLER, client_certificate};
pub use client::{Client, Refusal};
pub use installation::{
    Account, SERVICE, SPEC, SPECS, USER, create_role, example, grant, install, namespace, pod, register_for,
    service_account, tenants, until_asked,
};
pub use process::{Process, log_of, raise_open_files, tails};
pub use registration::Registration;
pub use webhook::{Scrape, Start, UNTHROTTLED, Webhook, certificate_flags, other_webhook, write_certificate};

pub use crate::api::{PATIENCE, until};

/// How long the certificates and tokens of a run are valid.
pub const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// A control plane that is up. It ends when it is dropped.
pub struct ControlPlane {
    // In the order in which they end.
    controller_manager: Option<Process>,
    api_server: Process,
    etcd: Process,
    /// What calls the API server as an administrator.
    pub client: Client,
    /// Who signed the API server's certificate.
    pub ca: Ca,
    /// The version of the API server: `v1.36.2`.
    pub version: String,
    binaries: Binaries,
    /// Those of etcd: for clients, and for its peers.
    etcd_addresses: [SocketAddr; 2],
    address: SocketAddr,
    folder: PathBuf,
}

impl ControlPlane {
    /// Starts a control plane that keeps everything in `folder`, and waits until it is ready.
    pub async fn start(binaries: Binaries, folder: &Path) -> Self {
        let [address] = free_addresses();
        Self::listening(binaries, folder, address).await
    }

    /// The same for a cluster whose only node has this address: its pods reach the API server, and all controllers run.
    pub async fn start_for_node(binaries: Binaries, folder: &Path, node: IpAddr) -> Self {
        Self::listening(binaries, folder, (node, 6443).into()).await
    }

    async fn listening(binaries: Binaries, folder: &Path, address: SocketAddr) -> Self {
        let ca = Ca::generate("control-plane", SystemTime::now(), LIFETIME).unwrap();
        let tokens = write_credentials(folder, &ca, address);
        caller::write(folder, &ca);
        caller::configure(folder, None);
        let etcd_addresses = free_addresses();
        let [kubeconfig, of_node] = tokens.map(|token| kubeconfig(address, ca.cert_pem(), &token));
        fs::write(folder.join("admin.kubeconfig"), kubeconfig.to_string()).unwrap();
        fs::write(folder.join("node.kubeconfig"), of_node.to_string()).unwrap();

        let etcd = start_etcd(&binaries, folder, etcd_addresses).await;
        let api_server = start_api_server(&binaries, folder, etcd_addresses[0], address);
        let client = Client::new(kubeconfig).await;
        let (controller_manager, version, folder) = (None, String::new(), folder.to_owned());
        let mut started = Self {
            controller_manager,
            api_server,
            etcd,
            client,
            ca,
            version,
            binaries,
            etcd_addresses,
            address,
            folder,
        };
        started.ready().await;
        let version = started.client.get("/version").await.unwrap();
        started.version = String::from(version["gitVersion"].as_str().unwrap());
        started.start_controllers();
        started
    }

    /// Ends everything, without a warning.
    pub fn kill(&mut self) {
        self.controller_manager = None;
        self.api_server.end();
        self.etcd.end();
    }

    /// Starts everything again that [`kill`](Self::kill) has ended, with the objects that there were, and waits until it is ready.
    pub async fn start_again(&mut self) {
        self.etcd = start_etcd(&self.binaries, &self.folder, self.etcd_addresses).await;
        self.restart_api_server().await;
        self.start_controllers();
    }

    /// Ends the API server, without a warning.
    pub fn kill_api_server(&mut self) {
        self.api_server.end();
    }

    /// Starts the API server again, with the objects that it had, and waits until it is ready. It ends before, where it runs.
    pub async fn restart_api_server(&mut self) {
        self.kill_api_server();
        self.api_server = start_api_server(&self.binaries, &self.folder, self.etcd_addresses[0], self.address);
        self.ready().await;
    }

    /// Restarts the API server, which from then on shows a client certificate, with the name [`CALLER`], to these Services:
    /// `NAME.NAMESPACE.svc`, and `:PORT` where that is not 443. Gives back the file with the authority that signed it.
    pub async fn show_a_certificate_to(&mut self, services: &[&str]) -> PathBuf {
        caller::show_to(&self.folder, services);
        self.restart_api_server().await;
        caller::authority(&self.folder)
    }

    /// Restarts the API server, which from then on records events by this audit policy. Gives back the file with the events.
    pub async fn audit(&mut self, policy: &str) -> PathBuf {
        fs::write(self.folder.join(AUDIT_POLICY), policy).unwrap();
        self.restart_api_server().await;
        self.folder.join(AUDIT_LOG)
    }

    /// Restarts the API server, which from then on also enforces the policies of this manifest: files on its disk, no objects. Gives back the file.
    pub async fn load_static_policies(&mut self, manifest: &str) -> PathBuf {
        let policies = self.folder.join(STATIC_POLICIES);
        fs::create_dir(&policies).unwrap();
        let file = policies.join("gmsa.yaml");
        fs::write(&file, manifest).unwrap();
        caller::configure(&self.folder, Some(&policies));
        self.restart_api_server().await;
        file
    }

    /// The CPU time that the API server took so far.
    pub fn api_server_cpu(&self) -> Duration {
        self.api_server.cpu()
    }

    /// Whether it has match conditions, which spare pods without GMSA: they are on by default from Kubernetes 1.28 on.
    pub fn has_match_conditions(&self) -> bool {
        self.minor() >= 28
    }

    /// The second number of the version.
    pub fn minor(&self) -> u32 {
        self.version.split('.').nth(1).unwrap().parse().unwrap()
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A client of etcd's JSON interface, which shows what is stored.
    pub fn etcd(&self) -> Client {
        Client::of_port(self.etcd_addresses[0])
    }

    /// Stops the API server's store, or lets it go on.
    pub fn signal_etcd(&self, signal: Signal) {
        self.etcd.signal(signal);
    }

    /// Credentials for what runs as this service account, which must exist.
    pub async fn kubeconfig_of(&self, namespace: &str, service_account: &str) -> Value {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}/token");
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": LIFETIME.as_secs()},
        });
        let answer = self.client.create(&path, &request).await.unwrap();
        kubeconfig(self.address, self.ca.cert_pem(), answer["status"]["token"].as_str().unwrap())
    }

    /// The folder that it keeps everything in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    async fn ready(&mut self) {
        until("the API server is ready", async || {
            self.etcd.must_run();
            self.api_server.must_run();
            self.client.text("/readyz").await.ok()
        })
        .await;
    }

    /// Starts the controllers that make a workload's pods, a Service's endpoints and a namespace's
    /// life cycle, and the ones that sign certificates and publish the CA; for a node all that there are.
    fn start_controllers(&mut self) {
        let path = &self.folder;
        let controllers = if is_of_node(self.address) {
            "*"
        } else if self.minor() >= 28 {
            "deployment-controller,replicaset-controller,namespace-controller,serviceaccount-controller,\
             endpointslice-controller,validatingadmissionpolicy-status-controller,\
             certificatesigningrequest-signing-controller,root-ca-certificate-publisher-controller"
        } else {
            "deployment,replicaset,namespace,serviceaccount,endpointslice,csrsigning,root-ca-cert-publisher"
        };
        self.controller_manager = self.binaries.controller_manager.as_ref().map(|binary| {
            let mut command = Command::new(binary);
            command.arg("--kubeconfig").arg(path.join("admin.kubeconfig"));
            command.arg(format!("--controllers={controllers}"));
            for (flag, file) in [
                ("--cluster-signing-cert-file", AUTHORITY[0]),
                ("--cluster-signing-key-file", AUTHORITY[1]),
                ("--root-ca-file", AUTHORITY[0]),
            ] {
                command.arg(flag).arg(path.join(file));
            }
            command.args(["--leader-elect=false", "--secure-port=0"]);
            Process::start("kube-controller-manager", path, &mut command)
        });
    }
}

/// The audit policy, where there is one, and the events that it has recorded.
const AUDIT_POLICY: &str = "audit-policy.yaml";
const AUDIT_LOG: &str = "audit.log";

/// The folder with policies that are no objects.
const STATIC_POLICIES: &str = "static-policies";

/// The name of a node with these credentials.
pub const NODE: &str = "node";

/// The files with the certificate of who signs for the cluster, and its key.
const AUTHORITY: [&str; 2] = ["authority.crt", "authority.key"];

/// The addresses of Services, and that of the API server among them.
const SERVICES: &str = "10.0.0.0/24";
const SERVICES_OF_NODE: (&str, &str) = ("10.96.0.0/16", "10.96.0.1");

fn is_of_node(address: SocketAddr) -> bool {
    !address.ip().is_loopback()
}

/// Writes what the API server and the controllers are started with, and gives the administrator's token, and that of a node.
fn write_credentials(folder: &Path, ca: &Ca, address: SocketAddr) -> [String; 2] {
    let of_api_server = [address.ip().to_string(), SERVICES_OF_NODE.1.to_owned()];
    let of_service_accounts = ["kubernetes.default.svc".to_owned()];
    for (name, hosts) in [("api-server", &of_api_server[..]), ("service-accounts", &of_service_accounts)] {
        let issued = ca.issue("gmsa-webhook", hosts, SystemTime::now(), LIFETIME).unwrap().0;
        fs::write(folder.join(name).with_extension("crt"), issued.cert).unwrap();
        fs::write(folder.join(name).with_extension("key"), issued.key).unwrap();
    }
    for (file, pem) in AUTHORITY.into_iter().zip([ca.cert_pem(), &ca.key_pem()]) {
        fs::write(folder.join(file), pem).unwrap();
    }
    let tokens = [(); 2].map(|()| {
        let mut random = [0; 16];
        getrandom::fill(&mut random).unwrap();
        format!("{:032x}", u128::from_be_bytes(random))
    });
    let [admin, node] = &tokens;
    let users = format!("{admin},admin,admin,system:masters\n{node},system:node:{NODE},node,system:nodes\n");
    fs::write(folder.join("tokens.csv"), users).unwrap();
    tokens
}

async fn start_etcd(binaries: &Binaries, folder: &Path, [address, peer]: [SocketAddr; 2]) -> Process {
    let mut command = Command::new(&binaries.etcd);
    command.args(["--unsafe-no-fsync", "--data-dir"]).arg(folder.join("etcd"));
    command.arg(format!("--listen-client-urls=http://{address}"));
    command.arg(format!("--advertise-client-urls=http://{address}"));
    command.arg(format!("--listen-peer-urls=http://{peer}"));
    let mut etcd = Process::start("etcd", folder, &mut command);
    etcd.until_it_listens(address).await;
    etcd
}

fn start_api_server(binaries: &Binaries, folder: &Path, etcd: SocketAddr, address: SocketAddr) -> Process {
    let mut command = Command::new(&binaries.api_server);
    command.arg(format!("--etcd-servers=http://{etcd}"));
    command.arg(format!("--bind-address={}", address.ip())).arg(format!("--advertise-address={}", address.ip()));
    command.arg(format!("--secure-port={}", address.port()));
    for (flag, file) in [
        ("--tls-cert-file", "api-server.crt"),
        ("--tls-private-key-file", "api-server.key"),
        // The API server takes the public key from a certificate too.
        ("--service-account-key-file", "service-accounts.crt"),
        ("--service-account-signing-key-file", "service-accounts.key"),
        ("--token-auth-file", "tokens.csv"),
        ("--admission-control-config-file", caller::ADMISSION),
    ] {
        command.arg(flag).arg(folder.join(file));
    }
    command.arg("--service-account-issuer=https://kubernetes.default.svc");
    if is_of_node(address) {
        command.args(["--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction"]);
        command.arg("--kubelet-preferred-address-types=InternalIP");
        command.arg(format!("--service-cluster-ip-range={}", SERVICES_OF_NODE.0));
    } else {
        command.args(["--authorization-mode=RBAC", "--endpoint-reconciler-type=none"]);
        command.arg(format!("--service-cluster-ip-range={SERVICES}"));
    }
    if folder.join(AUDIT_POLICY).exists() {
        command.arg("--audit-policy-file").arg(folder.join(AUDIT_POLICY));
        command.arg("--audit-log-path").arg(folder.join(AUDIT_LOG)).arg("--audit-log-mode=blocking");
    }
    if folder.join(STATIC_POLICIES).exists() {
        // On by default from Kubernetes 1.37 on.
        command.arg("--feature-gates=ManifestBasedAdmissionControlConfig=true");
    }
    // A benchmark must not wait for limits that are meant for a whole cluster.
    command.args(["--max-requests-inflight=4000", "--max-mutating-requests-inflight=2000"]);
    Process::start("kube-apiserver", folder, &mut command)
}

/// Different addresses without a listener. Their ports are below the system's ephemeral ports, so
/// that no other process gets one before it is listened on.
pub fn free_addresses<const N: usize>() -> [SocketAddr; N] {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    // Another process that does the same begins elsewhere.
    let first = std::process::id().wrapping_mul(97);
    [(); N].map(|()| {
        loop {
            let number = first.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed));
            let port = u16::try_from(20_000 + number % 10_000).unwrap();
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            if TcpListener::bind(address).is_ok() {
                return address;
            }
        }
    })
}

fn kubeconfig(address: SocketAddr, ca_pem: &str, token: &str) -> Value {
    let ca = STANDARD.encode(ca_pem);
    let cluster = json!({"server": format!("https://{address}"), "certificate-authority-data": ca});
    crate::kubeconfig(cluster, json!({"token": token}))
}
