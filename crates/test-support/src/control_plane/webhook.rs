//! The built binary of the webhook as a process, and what its admin port says; and another webhook.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gmsa_edge::tls::issue::Issued;
use serde_json::Value;

use super::{Client, Process, until};
use crate::cgroup::{self, Cgroup};

/// How a webhook is started.
pub struct Start<'a> {
    pub binary: &'a Path,
    /// What is its own goes into `NAME` in `folder`, its log to `NAME.log`.
    pub folder: &'a Path,
    pub name: &'a str,
    pub kubeconfig: &'a Value,
    pub flags: &'a [String],
    /// Port 0 is a free one.
    pub listen: SocketAddr,
    pub cgroup: Option<Cgroup>,
}

impl Start<'_> {
    /// Starts it, and waits until it is ready.
    pub async fn run(self) -> Webhook {
        let credentials = self.folder.join(self.name).with_extension("kubeconfig");
        fs::write(&credentials, self.kubeconfig.to_string()).unwrap();
        let mut command = cgroup::command(self.cgroup.as_ref(), self.binary);
        // The image sets it too.
        command.env_clear().env("MIMALLOC_PURGE_DELAY", "0");
        command.env("KUBECONFIG", credentials).env("LOG_FORMAT", "json").args(self.flags);
        command.args(["--listen", &self.listen.to_string(), "--admin-listen", "127.0.0.1:0"]);
        let mut process = Process::start(self.name, self.folder, &mut command).within(self.cgroup);
        let (address, admin_address) = until("the webhook listens", async || {
            process.must_run();
            addresses(&process.log())
        })
        .await;
        let admin = Client::of_port(admin_address);
        until("the webhook is ready", async || {
            process.must_run();
            admin.text("/readyz").await.ok()
        })
        .await;
        Webhook { process, address, admin_address, admin }
    }
}

pub struct Webhook {
    pub process: Process,
    /// Its address for the API server.
    pub address: SocketAddr,
    pub admin_address: SocketAddr,
    /// What asks its admin port.
    pub admin: Client,
}

impl Webhook {
    /// Starts the webhook with these credentials and flags, and waits until it is ready. What is its own goes into
    /// `NAME` in `folder`, its log to `NAME.log`. Port 0 is a free one.
    pub async fn start(
        binary: &str,
        folder: &Path,
        name: &str,
        kubeconfig: &Value,
        flags: &[String],
        port: u16,
    ) -> Self {
        let listen = ([127, 0, 0, 1], port).into();
        Start { binary: Path::new(binary), folder, name, kubeconfig, flags, listen, cgroup: None }.run().await
    }

    /// Its metrics, as they are now.
    pub async fn scrape(&self) -> Scrape {
        Scrape(self.admin.text("/metrics").await.unwrap())
    }

    /// Ends it as a kubelet does, and waits until it has ended.
    pub async fn end(mut self) {
        self.process.terminate();
        until("the webhook has ended", async || self.process.has_ended().then_some(())).await;
    }

    /// Ends it at once, as an outage does.
    pub fn kill(&mut self) {
        self.process.end();
    }
}

/// Writes a certificate and its key into a folder, which it creates.
pub fn write_certificate(folder: &Path, certificate: &Issued) -> [PathBuf; 2] {
    fs::create_dir_all(folder).unwrap();
    let files = ["tls.crt", "tls.key"].map(|file| folder.join(file));
    for (file, pem) in files.iter().zip([&certificate.cert, &certificate.key]) {
        fs::write(file, pem).unwrap();
    }
    files
}

/// The same, and the flags that name the files.
pub fn certificate_flags(folder: &Path, certificate: &Issued) -> [String; 2] {
    let [cert, key] = write_certificate(folder, certificate);
    [format!("--tls-cert={}", cert.display()), format!("--tls-key={}", key.display())]
}

/// A command for another webhook with the same paths and environment, such as the one that this webhook replaces. It starts as a
/// pod would, in a mount namespace of its own with the pod's credentials; what is its own goes into `folder`. It needs `unshare`.
pub fn other_webhook(
    cgroup: Option<&Cgroup>,
    binary: &Path,
    folder: &Path,
    kubeconfig: &Value,
    certificate: &Issued,
    port: u16,
) -> Command {
    let [cert, key] = write_certificate(folder, certificate);
    let run = folder.join("run");
    let account = run.join("secrets/kubernetes.io/serviceaccount");
    fs::create_dir_all(&account).unwrap();
    let cluster = &kubeconfig["clusters"][0]["cluster"];
    let ca = STANDARD.decode(cluster["certificate-authority-data"].as_str().unwrap()).unwrap();
    fs::write(account.join("ca.crt"), ca).unwrap();
    fs::write(account.join("token"), kubeconfig["users"][0]["user"]["token"].as_str().unwrap()).unwrap();
    fs::write(account.join("namespace"), "gmsa-webhook").unwrap();
    let (host, port_of_api) = cluster["server"].as_str().unwrap()["https://".len()..].split_once(':').unwrap();
    // Client libraries look for a pod's credentials below /var/run, which is /run, and nowhere else.
    let bind = r#"mount --bind "$1" /run && exec "$2""#;
    let mut command = cgroup::command(cgroup, "unshare");
    command.args(["--mount", "--user", "--map-root-user", "sh", "-c", bind, "sh"]);
    command.arg(run).arg(fs::canonicalize(binary).unwrap());
    command.env("TLS_CRT", cert).env("TLS_KEY", key).env("HTTPS_PORT", port.to_string());
    command.env("KUBERNETES_SERVICE_HOST", host).env("KUBERNETES_SERVICE_PORT", port_of_api);
    command
}

/// The environment with which no throttle of its client waits.
pub const UNTHROTTLED: [(&str, &str); 2] = [("QPS", "1000000"), ("BURST", "1000000")];

/// Where it listens, by its log: the webhook's address and the admin port's.
fn addresses(log: &str) -> Option<(SocketAddr, SocketAddr)> {
    let mut lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let serving = lines.find(|line| line["message"] == "serving")?;
    let address = |field: &str| serving[field].as_str().unwrap().parse().unwrap();
    Some((address("address"), address("admin")))
}

pub struct Scrape(String);

impl Scrape {
    /// What another program's scrape brought.
    pub fn of(text: String) -> Self {
        Self(text)
    }

    /// The samples of this name that have all of these labels (`path="mutate"`): their labels, and their values.
    pub fn samples(&self, name: &str, labels: &[&str]) -> impl Iterator<Item = (&str, f64)> {
        self.0.lines().filter_map(move |line| {
            let (series, value) = line.rsplit_once(' ')?;
            let (of, with) = series.split_once('{').unwrap_or((series, ""));
            let matches = of == name && labels.iter().all(|label| with.contains(label));
            matches.then(|| (with, value.parse().unwrap()))
        })
    }

    /// Their sum.
    pub fn sum(&self, name: &str, labels: &[&str]) -> f64 {
        self.samples(name, labels).map(|(_, value)| value).sum()
    }
}
