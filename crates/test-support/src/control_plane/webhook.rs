//! The built binary of the webhook as a process, and what its admin port says.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gmsa_webhook::tls::issue::Issued;
use serde_json::Value;

use super::{Client, Process, until};

/// A webhook that is ready.
pub struct Webhook {
    process: Process,
    /// Its address for the API server.
    pub address: SocketAddr,
    /// What asks its admin port.
    pub admin: Client,
}

impl Webhook {
    /// Starts the webhook with somebody's credentials and a serving certificate, and waits until it is ready. What is its
    /// own goes into `NAME` in `folder`, its log to `NAME.log`. Port 0 is a free one.
    pub async fn start(
        binary: &str,
        folder: &Path,
        name: &str,
        kubeconfig: &Value,
        certificate: &Issued,
        port: u16,
    ) -> Self {
        let own = folder.join(name);
        fs::create_dir(&own).unwrap();
        let (cert, key) = (own.join("tls.crt"), own.join("tls.key"));
        fs::write(&cert, &certificate.cert).unwrap();
        fs::write(&key, &certificate.key).unwrap();
        let pair = [format!("--tls-cert={}", cert.display()), format!("--tls-key={}", key.display())];
        Self::start_with(binary, folder, name, kubeconfig, &pair, port).await
    }

    /// Starts the webhook with somebody's credentials and these flags, and waits until it is ready.
    pub async fn start_with(
        binary: &str,
        folder: &Path,
        name: &str,
        kubeconfig: &Value,
        flags: &[String],
        port: u16,
    ) -> Self {
        let credentials = folder.join(name).with_extension("kubeconfig");
        fs::write(&credentials, kubeconfig.to_string()).unwrap();
        let mut command = Command::new(binary);
        command.env_clear().env("KUBECONFIG", credentials).env("LOG_FORMAT", "json").args(flags);
        command.args(["--listen", &format!("127.0.0.1:{port}"), "--admin-listen", "127.0.0.1:0"]);
        let mut process = Process::start(name, folder, &mut command);
        let (address, admin) = until("the webhook listens", async || {
            process.must_run();
            addresses(&process.log())
        })
        .await;
        let admin = Client::with(kube::Config::new(format!("http://{admin}").parse().unwrap()));
        until("the webhook is ready", async || {
            process.must_run();
            admin.text("/readyz").await.ok()
        })
        .await;
        Self { process, address, admin }
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

/// Writes what a pod finds below `/run` into `run` in `folder`, for a webhook that reads a pod's credentials and no kubeconfig.
pub fn pod_files(folder: &Path, kubeconfig: &Value) -> PathBuf {
    let run = folder.join("run");
    let account = run.join("secrets/kubernetes.io/serviceaccount");
    fs::create_dir_all(&account).unwrap();
    let ca = &kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"];
    fs::write(account.join("ca.crt"), STANDARD.decode(ca.as_str().unwrap()).unwrap()).unwrap();
    fs::write(account.join("token"), kubeconfig["users"][0]["user"]["token"].as_str().unwrap()).unwrap();
    fs::write(account.join("namespace"), "gmsa-webhook").unwrap();
    run
}

/// Where it listens, by its log: the webhook's address and the admin port's.
fn addresses(log: &str) -> Option<(SocketAddr, SocketAddr)> {
    let mut lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let serving = lines.find(|line| line["message"] == "serving")?;
    let address = |field: &str| serving[field].as_str().unwrap().parse().unwrap();
    Some((address("address"), address("admin")))
}

/// What a scrape brought.
pub struct Scrape(String);

impl Scrape {
    /// What another program's scrape brought.
    pub fn of(text: String) -> Self {
        Self(text)
    }

    /// The families, each with its type, in their order.
    pub fn families(&self) -> Vec<(&str, &str)> {
        self.0.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect()
    }

    /// The sum of the samples of this name that have all of these labels (`path="mutate"`).
    pub fn sum(&self, name: &str, labels: &[&str]) -> f64 {
        let samples = self.0.lines().filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            let (of, with) = series.split_once('{').unwrap_or((series, ""));
            let matches = of == name && labels.iter().all(|label| with.contains(label));
            matches.then(|| value.parse::<f64>().unwrap())
        });
        samples.sum()
    }
}
