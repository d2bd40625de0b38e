//! How many pods per second a real control plane creates: without a webhook, with the baseline as its webhook, with a baseline that
//! answers with this webhook's patch, with this webhook, and with `--against` with another one. What an API server itself pays for a
//! patch is the difference of the two baselines.
//!
//! Each of them has a namespace of its own in one cluster, and they take turns, so that what else the machine does
//! falls on all of them alike. Prints a Markdown table; with `--write` puts it into docs/measurements.md too. Run by
//! `just bench-cluster`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark ends where its surroundings fail"
)]

use std::{
    env, fs,
    net::SocketAddr,
    panic::AssertUnwindSafe,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::atomic::{AtomicU32, Ordering},
    time::{Instant, SystemTime},
};

use clap::Parser as _;
use control_plane::{
    Account, Binaries, ControlPlane, LIFETIME, Process, SPEC, UNTHROTTLED as NO_THROTTLE, Webhook, certificate_flags,
    example, free_addresses, other_webhook, pod, register_for, tails, tenants, until, until_asked, write_certificate,
};
use futures::{FutureExt as _, future::join_all};
use gmsa_core::credspec::Contents;
use gmsa_edge::tls::issue::{Ca, Issued};
use gmsa_test_support::{control_plane, helm, page};
use report::{BASELINE, OTHER, PATCHING, Row, Sample, UNTHROTTLED, VARIANTS, WEBHOOK, interleaved};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

#[path = "../baseline.rs"]
mod baseline;
mod calls;
mod conditions;
mod report;

/// Set where this program is the baseline.
const IS_BASELINE: &str = "GMSA_BENCH_BASELINE";

#[derive(clap::Parser)]
#[command(name = "bench-cluster", about = "Measures pods created per second on a real control plane")]
struct Args {
    /// Rounds; in each, every row is measured once.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Pods that are created in one run.
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..))]
    pods: u32,
    /// Pods that are being created at once.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    at_once: u32,
    /// Also measure another webhook with the same paths and environment, with and without its client's throttle.
    #[arg(long, value_name = "BINARY", conflicts_with = "conditions")]
    against: Option<PathBuf>,
    /// With --against: the environment that its chart gives it.
    #[arg(long, value_name = "NAME=VALUE", requires = "against", value_parser = setting)]
    set: Vec<String>,
    /// Measure what the match conditions cost pods without GMSA, and nothing else.
    #[arg(long)]
    conditions: bool,
    /// Also write the tables into docs/measurements.md.
    #[arg(long)]
    write: bool,
    /// `cargo bench` passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

fn setting(text: &str) -> Result<String, &'static str> {
    if text.contains('=') { Ok(text.to_owned()) } else { Err("expected NAME=VALUE") }
}

fn main() -> ExitCode {
    if env::var_os(IS_BASELINE).is_some() {
        baseline::main().unwrap();
        return ExitCode::SUCCESS;
    }
    let args = Args::parse();
    let Ok(binaries) = Binaries::find().inspect_err(|missing| eprintln!("error: {missing}")) else {
        return ExitCode::from(2);
    };
    let folder = tempfile::Builder::new().prefix("gmsa-bench-").tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let reports = runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).unwrap();
        let mut terminate = signal(SignalKind::terminate()).unwrap();
        tokio::select! {
            reports = AssertUnwindSafe(measure_all(&args, binaries, folder.path())).catch_unwind() => reports.ok(),
            _ = interrupt.recv() => None,
            _ = terminate.recv() => None,
        }
    });
    let Some(reports) = reports else {
        let folders = ["rates", "conditions"].map(|name| folder.path().join(name));
        for folder in folders.iter().filter(|folder| folder.is_dir()) {
            eprintln!("{}", tails(folder));
        }
        return ExitCode::from(2);
    };
    for (name, report) in reports {
        page::publish(name, "bench-cluster", &report, args.write);
    }
    ExitCode::SUCCESS
}

/// All tables, from two control planes: what one installs must not match the pods of the other.
async fn measure_all(args: &Args, binaries: Binaries, folder: &Path) -> Vec<(&'static str, String)> {
    let mut reports = Vec::new();
    if !args.conditions {
        let lab = Lab::start(args, binaries.clone(), &new(folder, "rates")).await;
        let rows = Row::all(args.against.is_some());
        let samples = interleaved(args.rounds, &rows, async |row| {
            let sample = lab.create_pods(row, args).await;
            eprintln!("{}: {:.0} pods/s", row.name(), sample.rate);
            sample
        })
        .await;
        let rows: Vec<_> = rows.into_iter().zip(samples).collect();
        let Args { rounds, pods, at_once, .. } = args;
        let what = format!("{rounds} interleaved rounds of {pods} pods each, {at_once} at a time");
        reports.push(("cluster", report::rates(&rows, &what, &lab.control_plane.version)));
        reports.push(("calls", report::times(&rows)));
    }
    let control_plane = ControlPlane::start(binaries, &new(folder, "conditions")).await;
    reports.push(("conditions", conditions::measure(&control_plane, args.rounds, args.pods).await));
    reports
}

fn new(folder: &Path, name: &str) -> PathBuf {
    let folder = folder.join(name);
    fs::create_dir(&folder).unwrap();
    folder
}

struct Lab {
    // Before the control plane ends.
    webhook: Webhook,
    /// The baselines, and another webhook.
    _others: Vec<Process>,
    control_plane: ControlPlane,
}

impl Lab {
    async fn start(args: &Args, binaries: Binaries, folder: &Path) -> Self {
        let control_plane = ControlPlane::start(binaries, folder).await;
        let client = &control_plane.client;
        let variants = if args.against.is_some() { &VARIANTS[..] } else { &VARIANTS[..OTHER] };
        tenants(client, &variants.iter().map(|variant| variant.namespace).collect::<Vec<_>>()).await;
        let ca = Ca::generate("bench", SystemTime::now(), LIFETIME).unwrap();
        let certificate = ca.issue("gmsa-webhook", &["127.0.0.1".to_owned()], SystemTime::now(), LIFETIME).unwrap().0;
        let account = Account { name: "gmsa-webhook", verbs: &["get", "list", "watch"] };
        let kubeconfig = account.create(&control_plane).await;
        let (binary, name) = (env!("CARGO_BIN_EXE_gmsa-webhook"), "gmsa-webhook");
        let flags = certificate_flags(&folder.join(name), &certificate);
        let webhook = Webhook::start(binary, folder, name, &kubeconfig, &flags, 0).await;
        let patch = folder.join("patch.json");
        fs::write(&patch, patch_of(&example())).unwrap();
        let mut commands: Vec<(usize, SocketAddr, Command)> = Vec::new();
        for (variant, patch) in [(BASELINE, None), (PATCHING, Some(&patch))] {
            let [address] = free_addresses();
            commands.push((variant, address, baseline_at(address, &certificate, folder, patch)));
        }
        for (variant, throttle) in [(OTHER, None), (UNTHROTTLED, Some(NO_THROTTLE))] {
            let Some(other) = &args.against else { break };
            let [address] = free_addresses();
            let own = folder.join(VARIANTS[variant].namespace);
            let mut command = other_webhook(None, other, &own, &kubeconfig, &certificate, address.port());
            command.envs(args.set.iter().map(|setting| setting.split_once('=').unwrap()));
            command.envs(throttle.into_iter().flatten());
            commands.push((variant, address, command));
        }
        let (mut addresses, mut others) = (vec![(WEBHOOK, webhook.address)], Vec::new());
        for (variant, address, mut command) in commands {
            let mut process = Process::start(VARIANTS[variant].namespace, folder, &mut command);
            process.until_it_listens(address).await;
            others.push(process);
            addresses.push((variant, address));
        }
        // This webhook is the last, so that the API server knows of all of them when it knows of this one.
        for (variant, address) in addresses.into_iter().rev() {
            register_for(client, VARIANTS[variant].namespace, address, ca.cert_pem()).await;
        }
        until_asked(client, VARIANTS[WEBHOOK].namespace).await;
        Self { webhook, _others: others, control_plane }
    }

    async fn reviews(&self) -> f64 {
        self.webhook.scrape().await.sum("gmsa_webhook_reviews_total", &[])
    }

    /// Creates pods as fast as it goes, and removes them again.
    async fn create_pods(&self, row: Row, args: &Args) -> Sample {
        let (client, collection, next) = (&self.control_plane.client, row.pods(), AtomicU32::new(0));
        let options = if row.is_gmsa { json!({"gmsaCredentialSpecName": SPEC}) } else { Value::Null };
        let (reviews, before) = (self.reviews().await, calls::so_far(client).await);
        let (begin, cpu) = (Instant::now(), self.control_plane.api_server_cpu());
        join_all((0..args.at_once).map(async |_| {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= args.pods {
                    break;
                }
                let stored = client.create(&collection, &pod(&format!("pod-{number}"), &options)).await.unwrap();
                let given = &stored["spec"]["securityContext"]["windowsOptions"];
                let expanded = VARIANTS[row.variant].patches && row.is_gmsa;
                assert_eq!(given.get("gmsaCredentialSpec").is_some(), expanded, "{}: {stored}", row.name());
            }
        }))
        .await;
        let (seconds, cpu) = (begin.elapsed().as_secs_f64(), self.control_plane.api_server_cpu().saturating_sub(cpu));
        let reviews = self.reviews().await - reviews;
        let mut calls = calls::so_far(client).await;
        calls.iter_mut().zip(&before).for_each(|(calls, before)| calls.add(before, -1.0));
        client.delete(&collection).await.unwrap();
        until("the pods are gone", async || {
            let left = client.get(&format!("{collection}?limit=1")).await.unwrap();
            left["items"].as_array().unwrap().is_empty().then_some(())
        })
        .await;
        let pods = f64::from(args.pods);
        Sample { rate: pods / seconds, reviews: reviews / pods, api_server: cpu.as_secs_f64() * 1e3 / pods, calls }
    }
}

/// What this webhook answers where the pod itself names a credential spec.
fn patch_of(spec: &Value) -> String {
    let contents = Contents::of(spec["credspec"].as_object().unwrap());
    let path = "/spec/securityContext/windowsOptions/gmsaCredentialSpec";
    json!([{"op": "add", "path": path, "value": contents.text()}]).to_string()
}

/// This program as the baseline.
fn baseline_at(address: SocketAddr, certificate: &Issued, folder: &Path, patch: Option<&PathBuf>) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.env(IS_BASELINE, "1").arg(address.to_string());
    command.args(write_certificate(&folder.join("baseline"), certificate)).args(patch);
    command
}
