//! The faults, in the order in which they come.

use std::{fs, path::PathBuf, time::Duration};

use futures::future::join_all;
use rustix::process::Signal;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    Deployment,
    proxy::Watches,
    replica::{Log, Replica},
    traffic::Traffic,
};
use crate::{
    certificates::{SECRET, ask, signing, until_another_signs},
    control_plane::{SERVICE, until},
};

/// How long a fault lasts, where it has no length of its own.
const LENGTH: Duration = Duration::from_secs(15);
/// How long etcd is stopped, and logs are not read.
const LONG: Duration = Duration::from_secs(20);
/// How long watches are stalled: longer than the webhook takes to find out.
const STALLED: Duration = Duration::from_secs(90);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Nothing,
    RollingRestart,
    Killed,
    Hangs,
    AllKilled,
    ApiServerRestarted,
    EtcdStopped,
    Watch(Watches),
    Rotation,
    SecretDamaged,
    SecretDeleted,
    LogNotRead,
    LogDiskFull,
    Clock,
}

/// Every fault, its name, and whether it may refuse pods: the aim of the others is that none is refused.
pub const FAULTS: [(Fault, &str, bool); 18] = [
    (Fault::Nothing, "no fault", false),
    (Fault::RollingRestart, "rolling restart of the replicas", false),
    (Fault::Killed, "one replica: kill -9", true),
    (Fault::Hangs, "one replica hangs for 20 s", true),
    (Fault::AllKilled, "all replicas: kill -9 at once", true),
    (Fault::ApiServerRestarted, "API server: kill -9, restarted", true),
    (Fault::EtcdStopped, "etcd stopped for 20 s", true),
    (Fault::Watch(Watches::Cut), "watch cut for 15 s", false),
    (Fault::Watch(Watches::Stalled), "watch stalled for 90 s", false),
    (Fault::Watch(Watches::Answered(410)), "watch answered with 410 for 15 s", false),
    (Fault::Watch(Watches::Answered(429)), "watch answered with 429 for 15 s", false),
    (Fault::Watch(Watches::Answered(500)), "watch answered with 500 for 15 s", false),
    (Fault::Rotation, "certificates and CA rotated", false),
    (Fault::SecretDamaged, "Secret with the certificates damaged", false),
    (Fault::SecretDeleted, "Secret deleted, created again after 15 s", false),
    (Fault::LogNotRead, "log not read for 20 s", false),
    (Fault::LogDiskFull, "log on a full disk, from one rolling restart to the next", false),
    (Fault::Clock, "clock set 100 days ahead, certificate due for renewal", false),
];

impl Fault {
    /// What must be there before it begins; nothing where this machine cannot have it.
    pub async fn prepare(self, deployment: &mut Deployment) -> Option<()> {
        if self == Self::Clock {
            let library = faketime()?;
            let time = deployment.start.folder.join("time");
            fs::write(&time, "-100d\n").unwrap();
            deployment.start.clock = Some((library, time));
            // Replicas with the right clock would issue certificates dated today.
            let ended = deployment.replicas.drain(..);
            let replicas = ended.map(|replica| deployment.balancer.remove(replica.address)).count();
            deployment.client().merge(SECRET, &json!({"data": null})).await.unwrap();
            for _ in 0..replicas {
                deployment.add().await;
            }
        }
        Some(())
    }

    /// Lets it happen. Gives when it was over, and when the credential spec changed.
    pub async fn run(self, deployment: &mut Deployment, traffic: &Traffic) -> (Instant, Option<Instant>) {
        let mut changed = None;
        match self {
            Self::Nothing => {
                changed = Some(deployment.change(traffic).await);
                sleep(LENGTH).await;
            }
            Self::RollingRestart => deployment.roll().await,
            Self::Killed => deployment.kill(1).await,
            Self::Hangs => {
                deployment.replicas[0].process.signal(Signal::STOP);
                sleep(LONG).await;
                deployment.replicas[0].process.signal(Signal::CONT);
            }
            Self::AllKilled => deployment.kill(deployment.replicas.len()).await,
            Self::ApiServerRestarted => deployment.control_plane.restart_api_server().await,
            Self::EtcdStopped => {
                deployment.control_plane.signal_etcd(Signal::STOP);
                sleep(LONG).await;
                deployment.control_plane.signal_etcd(Signal::CONT);
            }
            Self::Watch(watches) => {
                deployment.proxy.set(watches);
                sleep(Duration::from_secs(2)).await;
                changed = Some(deployment.change(traffic).await);
                sleep(if watches == Watches::Stalled { STALLED } else { LENGTH }).await;
                deployment.proxy.set(Watches::Pass);
            }
            Self::Rotation => {
                let before = ask(deployment.client(), &format!("chaos-{}", deployment.edition)).await;
                until_another_signs(deployment.client(), &before).await;
            }
            Self::SecretDamaged => {
                let damage = json!({"data": {"tls.crt": "ZGFtYWdlZA==", "authorities.json": "ew=="}});
                deployment.client().merge(SECRET, &damage).await.unwrap();
                until_signing(deployment).await;
            }
            Self::SecretDeleted => {
                deployment.client().delete(SECRET).await.unwrap();
                sleep(LENGTH).await;
                let name = SECRET.rsplit('/').next();
                let secret =
                    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "Opaque"});
                let secrets = format!("/api/v1/namespaces/{SERVICE}/secrets");
                deployment.client().create(&secrets, &secret).await.unwrap();
                until_signing(deployment).await;
            }
            Self::LogNotRead => {
                let held = join_all(deployment.replicas.iter().map(Replica::hold_log)).await;
                sleep(LONG).await;
                drop(held);
            }
            Self::LogDiskFull => {
                deployment.start.log = Log::FullDisk;
                deployment.roll().await;
                sleep(LENGTH).await;
                deployment.start.log = Log::Read;
                deployment.roll().await;
            }
            Self::Clock => {
                let before = deployment.leaf().await;
                fs::write(deployment.start.folder.join("time"), "+0\n").unwrap();
                until("the certificate is renewed", async || {
                    deployment.leaf().await.filter(|leaf| Some(leaf) != before.as_ref())
                })
                .await;
            }
        }
        (Instant::now(), changed)
    }
}

/// Waits until there is an authority in the Secret again.
async fn until_signing(deployment: &Deployment) {
    until("the Secret is repaired", async || signing(deployment.client()).await).await;
}

/// The library that shows a process another time.
fn faketime() -> Option<PathBuf> {
    let folders = ["/usr/lib/x86_64-linux-gnu/faketime", "/usr/lib/aarch64-linux-gnu/faketime", "/usr/lib64/faketime"];
    folders.iter().map(|folder| PathBuf::from(folder).join("libfaketimeMT.so.1")).find(|library| library.exists())
}
