//! Another webhook with the same paths and environment, such as the one that this webhook replaces.

use std::{
    fs,
    net::{SocketAddr, TcpStream},
    path::Path,
    process::Command,
};

use gmsa_webhook::tls::issue::Issued;
use serde_json::Value;

use super::control_plane::{Process, free_addresses, pod_files, until};

/// So much that no throttle of a client waits.
const UNLIMITED: [(&str, &str); 2] = [("QPS", "1000000"), ("BURST", "1000000")];

/// What `--against` and `--set` say.
pub struct Other<'a> {
    pub binary: &'a Path,
    /// The environment that its chart gives it, each as `NAME=VALUE`.
    pub settings: &'a [String],
}

impl Other<'_> {
    /// Starts it as a pod would, in a mount namespace of its own with the pod's credentials, and waits until it listens. Needs
    /// `unshare`.
    pub async fn start(
        &self,
        name: &str,
        has_throttle: bool,
        folder: &Path,
        kubeconfig: &Value,
        certificate: &Issued,
    ) -> (Process, SocketAddr) {
        let own = folder.join(name);
        let pod_files = pod_files(&own, kubeconfig);
        let (cert, key) = (own.join("tls.crt"), own.join("tls.key"));
        fs::write(&cert, &certificate.cert).unwrap();
        fs::write(&key, &certificate.key).unwrap();
        let [address] = free_addresses();
        let server = kubeconfig["clusters"][0]["cluster"]["server"].as_str().unwrap();
        let (host, port) = server.trim_start_matches("https://").split_once(':').unwrap();

        // Client libraries look for a pod's credentials below /var/run, which is /run, and nowhere else.
        let bind = r#"mount --bind "$1" /run && exec "$2""#;
        let mut command = Command::new("unshare");
        command.args(["--mount", "--user", "--map-root-user", "sh", "-c", bind, "sh"]);
        command.arg(pod_files).arg(fs::canonicalize(self.binary).unwrap());
        command.env("TLS_CRT", cert).env("TLS_KEY", key).env("HTTPS_PORT", address.port().to_string());
        command.env("KUBERNETES_SERVICE_HOST", host).env("KUBERNETES_SERVICE_PORT", port);
        command.envs(self.settings.iter().map(|setting| setting.split_once('=').unwrap()));
        if !has_throttle {
            command.envs(UNLIMITED);
        }
        let mut process = Process::start(name, folder, &mut command);
        until("the other webhook listens", async || {
            process.must_run();
            TcpStream::connect(address).ok()
        })
        .await;
        (process, address)
    }
}
