//! Many honest pods at once, on real control planes: how many of them are refused, and what that costs the webhook's memory.
//!
//! Dry-run creations of a pod with GMSA, as many under way as a row says, against the released binary in a memory cgroup of the chart's
//! limit; the same without limits of connections and of memory, and with `--against` another webhook. Up to three API servers call
//! it from addresses of their own, beside a flood from a fourth. All of it is in a network namespace that this program makes for
//! itself: it needs `unshare` and `ip`. Prints a Markdown table; with `--write` puts it into docs/measurements.md too. Exit code 0 where
//! every aim holds, 1 where one does not, 2 where it could not be measured. Run by `just storm`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark ends where its surroundings fail"
)]

use std::{
    env, fmt, fs,
    net::{Ipv4Addr, SocketAddr},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use clap::Parser as _;
use control_plane::{
    Account, Binaries, Client, ControlPlane, LIFETIME, Process, SPEC, Start, UNTHROTTLED, certificate_flags,
    free_addresses, other_webhook, pod, raise_open_files, register_for, tenants, until_asked,
};
use futures::future::join_all;
use gmsa_edge::tls::issue::{Ca, Issued};
use gmsa_test_support::{cgroup::Cgroup, control_plane, flood::flood, hostile::HALF_A_HELLO, page};
use report::{Row, Run};
use serde_json::{Value, json};
use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep},
};

mod report;

/// Where the pods are.
const NAMESPACE: &str = "storm";
/// The memory that a webhook may use, in bytes: the chart's limit; and as good as none.
const MEMORY_LIMIT: u64 = 128 << 20;
const NO_LIMIT: u64 = 8 << 30;

/// The addresses that the API servers connect from, and to: a host's route to an address of its own has that as its source.
const API_SERVERS: [Ipv4Addr; 3] =
    [Ipv4Addr::new(127, 0, 0, 11), Ipv4Addr::new(127, 0, 0, 12), Ipv4Addr::new(127, 0, 0, 13)];
/// The address that the flood connects from, and the connections that it holds.
const FLOOD: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 99);
const FLOOD_HOLDS: usize = 5000;

/// Set where this process is in a network namespace of its own.
const IN_NAMESPACE: &str = "GMSA_STORM_NAMESPACE";

/// Requests under way on one connection to an API server, which allows 100 there.
const STREAMS: usize = 90;

/// Between two rows: connections and garbage of the one before go.
const REST: Duration = Duration::from_secs(2);

#[derive(clap::Parser)]
#[command(name = "storm", about = "Creates many pods at once, and counts those that are refused")]
struct Args {
    /// Only rows with these numbers of pods at once.
    at_once: Vec<usize>,
    /// Seconds of a storm.
    #[arg(long, default_value_t = 6)]
    seconds: u64,
    /// Storms of a row against each webhook, in turns.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Also measure another webhook with the same paths and environment, without its client's throttle.
    #[arg(long, value_name = "BINARY")]
    against: Option<PathBuf>,
    /// A released gmsa-webhook to measure, instead of the one that was just built.
    #[arg(long, value_name = "FILE", default_value = env!("CARGO_BIN_EXE_gmsa-webhook"))]
    binary: PathBuf,
    /// Also write the table into docs/measurements.md.
    #[arg(long, conflicts_with = "at_once")]
    write: bool,
    /// `cargo bench` passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

/// What a row does.
struct Storm {
    /// Pods under way, at all API servers together.
    at_once: usize,
    api_servers: usize,
    /// Connections per second of the flood.
    flood: u32,
}

impl fmt::Display for Storm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.at_once)?;
        if self.api_servers > 1 {
            write!(f, ", by {} API servers", self.api_servers)?;
        }
        if self.flood > 0 {
            write!(f, ", beside {} connections a second that end in half a handshake", self.flood)?;
        }
        Ok(())
    }
}

static STORMS: [Storm; 8] = [
    Storm { at_once: 64, api_servers: 1, flood: 0 },
    Storm { at_once: 200, api_servers: 1, flood: 0 },
    Storm { at_once: 300, api_servers: 1, flood: 0 },
    Storm { at_once: 400, api_servers: 1, flood: 0 },
    Storm { at_once: 800, api_servers: 1, flood: 0 },
    Storm { at_once: 1500, api_servers: 1, flood: 0 },
    Storm { at_once: 1500, api_servers: 3, flood: 0 },
    Storm { at_once: 1500, api_servers: 3, flood: 1000 },
];

fn main() -> ExitCode {
    let args = Args::parse();
    if env::var_os(IN_NAMESPACE).is_none() {
        let error = in_namespace().exec();
        eprintln!("error: unshare cannot be started: {error}");
        return ExitCode::from(2);
    }
    let Ok(binaries) = Binaries::find().inspect_err(|missing| eprintln!("error: {missing}")) else {
        return ExitCode::from(2);
    };
    raise_open_files(u64::MAX);
    let folder = tempfile::Builder::new().prefix("gmsa-storm-").tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (rows, version) = runtime.block_on(measure(&args, binaries, folder.path()));
    page::publish("storm", "storm", &report::report(&rows, &args, &version), args.write);
    if rows.iter().all(report::holds) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// This program again, in a network namespace whose loopback interface has the routes that give API servers addresses of their own.
fn in_namespace() -> Command {
    let route = |to: Ipv4Addr| format!("ip route add local {to} dev lo src {to} table local");
    let script = format!("ip link set lo up && {} && exec \"$@\"", API_SERVERS.map(route).join(" && "));
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--net", "sh", "-c", &script, "sh"]).arg(env::current_exe().unwrap()).args(env::args_os().skip(1));
    command.env(IN_NAMESPACE, "1");
    command
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// This webhook, as the chart runs it.
    Installed,
    /// The same without limits.
    Unlimited,
    /// Another one, without its client's throttle.
    Other,
}

/// The API servers, and what the webhook is started with.
struct Lab<'a> {
    args: &'a Args,
    folder: &'a Path,
    control_planes: Vec<ControlPlane>,
    kubeconfig: Value,
    certificate: Issued,
    /// The port of every webhook, and how many there were.
    port: u16,
    started: AtomicUsize,
}

/// The rows, and the API server's version.
async fn measure(args: &Args, binaries: Binaries, folder: &Path) -> (Vec<Row>, String) {
    let storms: Vec<&Storm> =
        STORMS.iter().filter(|storm| args.at_once.is_empty() || args.at_once.contains(&storm.at_once)).collect();
    let api_servers = storms.iter().map(|storm| storm.api_servers).max().unwrap_or(1);
    let lab = Lab::start(args, binaries, folder, api_servers).await;
    let kinds = [Kind::Installed, Kind::Unlimited].into_iter().chain(args.against.as_ref().map(|_| Kind::Other));
    let kinds: Vec<Kind> = kinds.collect();
    let mut rows = Vec::new();
    for storm in storms {
        let mut of_kinds: Vec<Vec<Run>> = kinds.iter().map(|_| Vec::new()).collect();
        for _ in 0..args.rounds {
            for (kind, runs) in kinds.iter().zip(&mut of_kinds) {
                let run = lab.run(storm, *kind).await;
                eprintln!("{storm}: {kind:?}: {run}");
                runs.push(run);
                sleep(REST).await;
            }
        }
        rows.push((storm, of_kinds));
    }
    (rows, lab.control_planes[0].version.clone())
}

impl<'a> Lab<'a> {
    async fn start(args: &'a Args, binaries: Binaries, folder: &'a Path, api_servers: usize) -> Self {
        let ca = Ca::generate("storm", SystemTime::now(), LIFETIME).unwrap();
        let names = API_SERVERS.map(|address| address.to_string());
        let certificate = ca.issue("gmsa-webhook", &names, SystemTime::now(), LIFETIME).unwrap().0;
        let port = free_addresses::<1>()[0].port();
        let mut control_planes = Vec::new();
        for source in &API_SERVERS[..api_servers] {
            let own = folder.join(source.to_string());
            fs::create_dir(&own).unwrap();
            let control_plane = ControlPlane::start(binaries.clone(), &own).await;
            tenants(&control_plane.client, &[NAMESPACE]).await;
            let address = SocketAddr::from((*source, port));
            register_for(&control_plane.client, NAMESPACE, address, ca.cert_pem()).await;
            control_planes.push(control_plane);
        }
        let account = Account { name: "gmsa-webhook", verbs: &["get", "list", "watch"] };
        let kubeconfig = account.create(&control_planes[0]).await;
        Self { args, folder, control_planes, kubeconfig, certificate, port, started: AtomicUsize::new(0) }
    }

    /// Starts a webhook, and waits until it listens.
    async fn webhook(&self, kind: Kind) -> Process {
        let name = &format!("webhook-{}", self.started.fetch_add(1, Ordering::Relaxed));
        let (own, kubeconfig) = (self.folder.join(name), &self.kubeconfig);
        let limit = if kind == Kind::Installed { MEMORY_LIMIT } else { NO_LIMIT };
        let cgroup = Cgroup::create(limit);
        assert!(cgroup.is_some(), "this system gives no memory cgroup");
        if let Some(other) = self.args.against.as_ref().filter(|_| kind == Kind::Other) {
            let mut command = other_webhook(cgroup.as_ref(), other, &own, kubeconfig, &self.certificate, self.port);
            let mut process = Process::start(name, self.folder, command.envs(UNTHROTTLED)).within(cgroup);
            process.until_it_listens(SocketAddr::from((API_SERVERS[0], self.port))).await;
            return process;
        }
        let mut flags = certificate_flags(&own, &self.certificate).to_vec();
        if kind == Kind::Unlimited {
            flags.extend(["--max-connections=4000", "--max-reviews=4000"].map(str::to_owned));
        }
        let (binary, listen) = (self.args.binary.as_path(), ([0, 0, 0, 0], self.port).into());
        let start = Start { binary, folder: self.folder, name, kubeconfig, flags: &flags, listen, cgroup };
        start.run().await.process
    }

    /// One storm against a new process.
    async fn run(&self, storm: &Storm, kind: Kind) -> Run {
        let mut webhook = self.webhook(kind).await;
        let api_servers = &self.control_planes[..storm.api_servers];
        let mut clients = Vec::new();
        for api_server in api_servers {
            until_asked(&api_server.client, NAMESPACE).await;
            let kubeconfig = fs::read_to_string(api_server.folder().join("admin.kubeconfig")).unwrap();
            for _ in 0..storm.at_once.div_ceil(STREAMS * api_servers.len()) {
                clients.push(Client::new(serde_json::from_str(&kubeconfig).unwrap()).await);
            }
        }
        let path = format!("/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All");
        let options = json!({"gmsaCredentialSpecName": SPEC});
        let end = Instant::now() + Duration::from_secs(self.args.seconds);
        let create = async |number: usize| {
            let client = &clients[number % clients.len()];
            let (mut admitted, mut refused) = (0, Vec::new());
            while Instant::now() < end {
                match client.create(&path, &pod(&format!("pod-{number}"), &options)).await {
                    Ok(_) => admitted += 1,
                    Err(refusal) => refused.push(refusal.message),
                }
            }
            (admitted, refused)
        };
        let (over, per_second) = (Arc::new(AtomicBool::new(storm.flood == 0)), storm.flood);
        let (target, is_over) = (SocketAddr::from((API_SERVERS[0], self.port)), Arc::clone(&over));
        let goes_on = move || !is_over.load(Ordering::Relaxed);
        let flood = spawn_blocking(move || flood(target, per_second, &[FLOOD], HALF_A_HELLO, FLOOD_HOLDS, goes_on));
        let began = Instant::now();
        let outcomes = join_all((0..storm.at_once).map(create)).await;
        over.store(true, Ordering::Relaxed);
        let (seconds, flooded) = (began.elapsed().as_secs_f64(), flood.await.unwrap());
        let admitted = outcomes.iter().map(|(admitted, _)| admitted).sum();
        let refused: Vec<String> = outcomes.into_iter().flat_map(|(_, refused)| refused).collect();
        Run { admitted, refused, seconds, peak: webhook.peak(), killed: webhook.has_ended(), flooded }
    }
}
