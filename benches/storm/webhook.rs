//! The webhook of a row: this one as it is installed, this one without limits, or another one.

use std::{
    fmt, fs,
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{Child, Stdio},
};

use gmsa_test_support::cgroup::Cgroup;

use super::{
    API_SERVERS, Lab,
    control_plane::{pod_files, until},
};

/// The memory that a webhook may use, in bytes: the chart's limit.
const MEMORY_LIMIT: u64 = 128 << 20;
/// As good as none.
const NO_LIMIT: u64 = 8 << 30;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind<'a> {
    /// This webhook, as the chart runs it.
    Installed,
    /// The same without limits.
    Unlimited,
    /// Another one.
    Other(&'a Path),
}

impl<'a> Kind<'a> {
    pub fn all(other: Option<&'a Path>) -> Vec<Self> {
        [Self::Installed, Self::Unlimited].into_iter().chain(other.map(Self::Other)).collect()
    }
}

impl fmt::Display for Kind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Installed => "this webhook",
            Self::Unlimited => "without limits",
            Self::Other(_) => "the other webhook",
        })
    }
}

/// A process in a memory cgroup. It ends when it is dropped.
pub struct Webhook {
    // The process ends before its group is removed.
    child: Child,
    cgroup: Cgroup,
}

impl Webhook {
    /// Starts it, and waits until it listens.
    pub async fn start(lab: &Lab<'_>, kind: Kind<'_>) -> Self {
        let folder = lab.folder.join("webhook");
        let pod_files = pod_files(&folder, &lab.kubeconfig);
        fs::write(folder.join("kubeconfig"), lab.kubeconfig.to_string()).unwrap();
        fs::write(folder.join("tls.crt"), &lab.certificate.cert).unwrap();
        fs::write(folder.join("tls.key"), &lab.certificate.key).unwrap();
        let limit = if kind == Kind::Installed { MEMORY_LIMIT } else { NO_LIMIT };
        let cgroup = Cgroup::create(limit).expect("this system gives no memory cgroup");
        let mut command = match kind {
            Kind::Installed | Kind::Unlimited => cgroup.command(&lab.args.binary),
            Kind::Other(binary) => {
                // Client libraries look for a pod's credentials below /var/run, which is /run, and nowhere else.
                let mut command = cgroup.command("unshare");
                let bind = r#"mount --bind "$1" /run && exec "$2""#;
                command.args(["--mount", "sh", "-c", bind, "sh"]).arg(pod_files).arg(fs::canonicalize(binary).unwrap());
                command
            }
        };
        let (cert, key) = (folder.join("tls.crt"), folder.join("tls.key"));
        if let Kind::Other(_) = kind {
            let server = lab.control_planes[0].address();
            command.env("TLS_CRT", cert).env("TLS_KEY", key).env("HTTPS_PORT", lab.port.to_string());
            command.env("KUBERNETES_SERVICE_HOST", server.ip().to_string());
            command.env("KUBERNETES_SERVICE_PORT", server.port().to_string());
            command.env("QPS", "1000000").env("BURST", "1000000");
        } else {
            command.env_clear().env("MIMALLOC_PURGE_DELAY", "0").env("LOG_FORMAT", "json");
            command.env("KUBECONFIG", folder.join("kubeconfig"));
            command.arg("--tls-cert").arg(cert).arg("--tls-key").arg(key);
            command.args(["--admin-listen=127.0.0.1:0", &format!("--listen=0.0.0.0:{}", lab.port)]);
        }
        if kind == Kind::Unlimited {
            command.args(["--max-connections=4000", "--max-reviews=4000"]);
        }
        let log = fs::File::create(folder.join("log")).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let mut webhook = Self { child: command.spawn().unwrap(), cgroup };
        until("the webhook listens", async || {
            assert!(webhook.runs(), "the webhook ended: {}", fs::read_to_string(folder.join("log")).unwrap());
            TcpStream::connect(SocketAddr::from((API_SERVERS[0], lab.port))).ok()
        })
        .await;
        webhook
    }

    /// The most memory that was in use so far, the kernel's share included, in MiB.
    pub fn peak(&self) -> u64 {
        self.cgroup.peak().unwrap_or_default() >> 20
    }

    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        // Both fail where the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
