//! Faults, one after the other, under a steady rate of pods: `just chaos [FAULT] [--replicas N] [--write]`.
//!
//! Several replicas, which make their own certificates, behind what a Service does, and a proxy before the API server. Pods
//! that may use a credential spec and pods that may not are created throughout, and every one that is stored is judged. It
//! fails where a pod had wrong contents or was admitted without `use`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use clap::Parser;
use gmsa_test_support::credential_spec;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::{
    certificates::{self, NAME},
    change::edition,
    control_plane::{Binaries, Client, ControlPlane, SPECS, Scrape, grant, service_account, until},
    page,
    world::{USER, VISITOR, cluster},
};
use balancer::Balancer;
use faults::FAULTS;
use proxy::Proxy;
use replica::{Log, Replica, Start};
use report::Row;
use traffic::{Kind, Outcome, Traffic};

pub mod balancer;
mod faults;
pub mod proxy;
pub mod replica;
mod report;
pub mod traffic;

pub const PODS: &str = "/api/v1/namespaces/managed/pods";
/// The credential spec that changes.
pub const CHANGING: &str = "changing";

/// Between two pods.
const BETWEEN_PODS: Duration = Duration::from_millis(50);
/// How long there is nothing but pods before a fault.
const BEFORE: Duration = Duration::from_secs(2);
/// A pod that takes longer has been hit by a fault, and is waited for.
const LATE: Duration = Duration::from_secs(2);
/// For how long everything must be well before a fault is over.
const WELL: Duration = Duration::from_secs(4);

#[derive(Parser)]
#[command(name = "chaos", about = "Measures what faults cost pods that are being created")]
struct Args {
    /// Only the faults with this word in their names.
    #[arg(default_value = "")]
    word: String,
    /// Replicas of the webhook.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..))]
    replicas: u8,
    /// The webhook, if not the one that was built with this.
    #[arg(long, default_value = env!("CARGO_BIN_EXE_gmsa-webhook"))]
    binary: PathBuf,
    /// Also write the table into docs/measurements.md.
    #[arg(long)]
    write: bool,
}

/// Runs the faults that the arguments pick.
pub async fn run(binaries: Binaries, folder: &Path, arguments: &[String]) -> ExitCode {
    let parsed = Args::try_parse_from(arguments).inspect_err(|error| eprint!("{error}"));
    let Ok(args) = parsed else { return ExitCode::from(2) };
    let mut deployment = Deployment::start(binaries, folder, &args.binary, usize::from(args.replicas)).await;
    let traffic = Traffic::start(deployment.client().clone(), deployment.edition, BETWEEN_PODS);
    let mut rows = Vec::new();
    for (fault, name, may_refuse) in FAULTS.into_iter().filter(|(_, name, _)| name.contains(&args.word)) {
        eprintln!("{name}");
        if fault.prepare(&mut deployment).await.is_none() {
            eprintln!("{name}: not run, because there is no libfaketime");
            continue;
        }
        deployment.until_well(&traffic).await;
        deployment.until_watching().await;
        traffic.take();
        sleep(BEFORE).await;
        let begun = Instant::now();
        let (ended, changed) = fault.run(&mut deployment, &traffic).await;
        let mut attempts = deployment.until_well(&traffic).await;
        deployment.until_watching().await;
        let watching = ended.elapsed();
        attempts.extend(traffic.take());
        let stored = deployment.check_stored().await;
        let row = Row { name, may_refuse, lasted: ended - begun, ended, changed, watching, attempts, stored };
        eprintln!("{}{}", row.cells().join(" | "), row.notes());
        rows.push(row);
    }
    let report = report::report(&rows, args.replicas, &deployment.control_plane.version);
    page::publish(&format!("chaos, {} replicas", args.replicas), "chaos", &report, args.write);
    if rows.iter().all(Row::holds) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The webhook in a cluster, with several replicas.
pub struct Deployment {
    // Those end before the control plane.
    pub replicas: Vec<Replica>,
    pub balancer: Balancer,
    pub proxy: Proxy,
    pub start: Start,
    started: usize,
    /// The edition of the changing credential spec.
    pub edition: u32,
    pub control_plane: ControlPlane,
}

impl Deployment {
    pub async fn start(binaries: Binaries, folder: &Path, binary: &Path, replicas: usize) -> Self {
        let control_plane = cluster(binaries, folder).await;
        let client = &control_plane.client;
        client.create(SPECS, &credential_spec(CHANGING, edition(1).0)).await.unwrap();
        let balancer = Balancer::start().await;
        let proxy = Proxy::start(control_plane.address()).await;
        let mut credentials = certificates::install(&control_plane, balancer.port).await;
        credentials["clusters"][0]["cluster"] = json!({
            "server": format!("https://{}", proxy.address),
            "certificate-authority-data": STANDARD.encode(&proxy.ca_pem),
        });
        fs::write(folder.join("replica.kubeconfig"), credentials.to_string()).unwrap();
        service_account(client, NAME, VISITOR).await;
        grant(client, NAME, USER, &[CHANGING]).await;
        let start = Start {
            binary: binary.to_owned(),
            folder: folder.to_owned(),
            flags: [certificates::flags(), vec!["--leaf-lifetime=3600h".to_owned()]].concat(),
            log: Log::Read,
            clock: None,
        };
        let mut deployment =
            Self { replicas: Vec::new(), balancer, proxy, start, started: 0, edition: 1, control_plane };
        for _ in 0..replicas {
            deployment.add().await;
        }
        let client = deployment.client().clone();
        until("the API server asks the webhook", async || certificates::create(&client, NAME).await.ok()).await;
        deployment
    }

    pub fn client(&self) -> &Client {
        &self.control_plane.client
    }

    /// One replica more.
    pub async fn add(&mut self) {
        self.started += 1;
        let replica = Replica::start(&self.start, &format!("replica-{}", self.started)).await;
        self.balancer.add(replica.address, replica.admin.clone());
        self.replicas.push(replica);
    }

    /// Replaces every replica, one after the other, as the chart's Deployment does.
    pub async fn roll(&mut self) {
        for _ in 0..self.replicas.len() {
            self.add().await;
            let old = self.replicas.remove(0);
            let address = old.address;
            // It is asked to end and taken out of the endpoints at the same time; nodes learn of that a moment later.
            let ((), ()) = tokio::join!(old.end(), async {
                sleep(Duration::from_secs(1)).await;
                self.balancer.remove(address);
            });
        }
    }

    /// Kills the first `number` replicas at once. They are started again a second later, as a kubelet does it, which is
    /// when the Service learns of it too.
    pub async fn kill(&mut self, number: usize) {
        let killed: Vec<Replica> = self.replicas.drain(..number).collect();
        let addresses: Vec<_> = killed.iter().map(|replica| replica.address).collect();
        drop(killed);
        sleep(Duration::from_secs(1)).await;
        for address in addresses {
            self.balancer.remove(address);
        }
        for _ in 0..number {
            self.add().await;
        }
    }

    /// Changes the credential spec that changes.
    pub async fn change(&mut self, traffic: &Traffic) -> Instant {
        let change = json!({"credspec": edition(self.edition + 1).0});
        self.client().merge(&format!("{SPECS}/{CHANGING}"), &change).await.unwrap();
        self.edition += 1;
        traffic.expect_edition(self.edition);
        Instant::now()
    }

    /// Waits until every replica watches credential specs.
    async fn until_watching(&self) {
        for replica in &self.replicas {
            until("the replicas watch credential specs", async || {
                let scrape = Scrape::of(replica.admin.text("/metrics").await.ok()?);
                (scrape.sum("gmsa_webhook_spec_watch_state", &[r#"state="synced""#]) > 0.0).then_some(())
            })
            .await;
        }
    }

    /// Waits until all pods have been treated as they should be for a while, and gives those of the time until then.
    async fn until_well(&self, traffic: &Traffic) -> Vec<traffic::Attempt> {
        let mut all = Vec::new();
        let begun = Instant::now();
        until("all is well", async || {
            sleep(Duration::from_millis(500)).await;
            all.extend(traffic.take());
            let last_bad =
                all.iter().filter(|attempt| attempt.outcome != Outcome::Right).map(|attempt| attempt.ended).max();
            let wait = WELL.saturating_sub(last_bad.unwrap_or(begun).elapsed());
            (wait.is_zero() && traffic.oldest() < LATE).then_some(())
        })
        .await;
        all
    }

    /// The pods that are stored now and must not be: those whose creation was never answered are judged here.
    async fn check_stored(&self) -> Vec<String> {
        let pods = self.client().get(PODS).await.unwrap();
        let mut wrong = Vec::new();
        for pod in pods["items"].as_array().unwrap() {
            if !traffic::may_be_stored(pod, self.edition) {
                wrong.push(pod.to_string());
            }
            let _ = self.client().delete(&format!("{PODS}/{}", pod["metadata"]["name"].as_str().unwrap())).await;
        }
        wrong
    }

    /// The certificate that is served, as the Secret has it.
    pub async fn leaf(&self) -> Option<Value> {
        let secret = self.client().get(certificates::SECRET).await.ok()?;
        Some(secret["data"]["tls.crt"].clone()).filter(Value::is_string)
    }
}
