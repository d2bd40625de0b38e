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
    env, fs,
    net::{Ipv4Addr, SocketAddr},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, SystemTime},
};

use clap::Parser as _;
use control_plane::{
    Account, Binaries, Client, ControlPlane, LIFETIME, Registration, SPECS, grant, install, namespace, service_account,
    until,
};
use futures::future::join_all;
use gmsa_test_support::{control_plane, page};
use gmsa_webhook::tls::issue::{Ca, Issued};
use report::{Report, Row, Run};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use webhook::{Kind, Webhook};

mod flood;
mod report;
mod webhook;

/// Where the pods are, and as whom they run.
const NAMESPACE: &str = "storm";
const USER: &str = "user";
/// The credential spec of the pods, that of the examples.
const SPEC: &str = "gmsa-webapp1";

/// The addresses that the API servers connect from, and to: a host's route to an address of its own has that as its source.
const API_SERVERS: [Ipv4Addr; 3] =
    [Ipv4Addr::new(127, 0, 0, 11), Ipv4Addr::new(127, 0, 0, 12), Ipv4Addr::new(127, 0, 0, 13)];
/// The address that the flood connects from.
const FLOOD: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 99);

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
    /// Seconds of a row.
    #[arg(long, default_value_t = 6)]
    seconds: u64,
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

const STORMS: [Storm; 8] = [
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
    let binaries = match Binaries::find() {
        Ok(binaries) => binaries,
        Err(missing) => {
            eprintln!("error: {missing}");
            return ExitCode::from(2);
        }
    };
    let files = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files }).unwrap();
    let folder = tempfile::Builder::new().prefix("gmsa-storm-").tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let report = runtime.block_on(measure(&args, binaries, folder.path()));
    println!("{report}");
    if args.write {
        report.write();
    }
    if report.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// This program again, in a network namespace whose loopback interface has the routes that give API servers addresses of their own.
fn in_namespace() -> Command {
    let routes = API_SERVERS.map(|address| format!("ip route add local {address} dev lo src {address} table local"));
    let script = format!("ip link set lo up && {} && exec \"$@\"", routes.join(" && "));
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--net", "sh", "-c", &script, "sh"]).arg(env::current_exe().unwrap()).args(env::args_os().skip(1));
    command.env(IN_NAMESPACE, "1");
    command
}

/// The API servers, and what the webhook is started with.
struct Lab<'a> {
    args: &'a Args,
    folder: &'a Path,
    control_planes: Vec<ControlPlane>,
    kubeconfig: Value,
    certificate: Issued,
    port: u16,
}

async fn measure<'a>(args: &'a Args, binaries: Binaries, folder: &Path) -> Report<'a> {
    let storms: Vec<&Storm> =
        STORMS.iter().filter(|storm| args.at_once.is_empty() || args.at_once.contains(&storm.at_once)).collect();
    let api_servers = storms.iter().map(|storm| storm.api_servers).max().unwrap_or(1);
    let lab = Lab::start(args, binaries, folder, api_servers).await;
    let mut rows = Vec::new();
    for storm in storms {
        let mut runs = Vec::new();
        for kind in Kind::all(args.against.as_deref()) {
            let run = lab.run(storm, kind).await;
            eprintln!(
                "{} at once, {} API servers, flood {}: {kind}: {run}",
                storm.at_once, storm.api_servers, storm.flood
            );
            runs.push((kind, run));
            sleep(REST).await;
        }
        rows.push(Row { at_once: storm.at_once, api_servers: storm.api_servers, flood: storm.flood, runs });
    }
    Report { rows, seconds: args.seconds, api_server: lab.control_planes[0].version.clone(), machine: page::machine() }
}

impl<'a> Lab<'a> {
    async fn start(args: &'a Args, binaries: Binaries, folder: &'a Path, api_servers: usize) -> Self {
        let ca = Ca::generate("storm", SystemTime::now(), LIFETIME).unwrap();
        let names = API_SERVERS.map(|address| address.to_string());
        let certificate = ca.issue(&names, SystemTime::now(), LIFETIME).unwrap();
        let [address] = control_plane::free_addresses();
        let spec: Value = serde_saphyr::from_str(include_str!("../../examples/credspec.yaml")).unwrap();
        let mut control_planes = Vec::new();
        for source in &names[..api_servers] {
            let own = folder.join(source);
            fs::create_dir(&own).unwrap();
            let control_plane = ControlPlane::start(binaries.clone(), &own).await;
            let client = &control_plane.client;
            install(client).await;
            client.create(SPECS, &spec).await.unwrap();
            namespace(client, NAMESPACE, &json!({})).await;
            service_account(client, NAMESPACE, USER).await;
            grant(client, NAMESPACE, USER, &[SPEC]).await;
            let location = |path: &str| json!({"url": format!("https://{source}:{}{path}", address.port())});
            let namespaces = json!({"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}});
            Registration { name: "storm", location: &location, ca_pem: ca.cert_pem(), namespaces }.create(client).await;
            control_planes.push(control_plane);
        }
        let account = Account { name: "gmsa-webhook", verbs: &["get", "list", "watch"] };
        let kubeconfig = account.create(&control_planes[0]).await;
        Self { args, folder, control_planes, kubeconfig, certificate, port: address.port() }
    }

    /// One storm against a new process.
    async fn run(&self, storm: &Storm, kind: Kind<'_>) -> Run {
        let mut webhook = Webhook::start(self, kind).await;
        let api_servers = &self.control_planes[..storm.api_servers];
        for api_server in api_servers {
            until("the API server asks the webhook", async || {
                let named = api_server.client.create(&pods(), &pod("asked", true)).await.ok()?;
                let unnamed = api_server.client.create(&pods(), &pod("asked", false)).await;
                let expanded = named["spec"]["securityContext"]["windowsOptions"].get("gmsaCredentialSpec").is_some();
                (expanded && unnamed.is_err_and(|refusal| refusal.code == 422)).then_some(())
            })
            .await;
        }
        let mut clients = Vec::new();
        for api_server in api_servers {
            let kubeconfig: Value =
                serde_json::from_str(&fs::read_to_string(api_server.folder().join("admin.kubeconfig")).unwrap())
                    .unwrap();
            for _ in 0..storm.at_once.div_ceil(STREAMS * api_servers.len()) {
                clients.push(Client::new(kubeconfig.clone()).await);
            }
        }
        let target = SocketAddr::from((API_SERVERS[0], self.port));
        let over = AtomicBool::new(false);
        let end = Instant::now() + Duration::from_secs(self.args.seconds);
        let create = async |number: usize| {
            let client = &clients[number % clients.len()];
            let (mut admitted, mut refused) = (0, Vec::new());
            while Instant::now() < end {
                match client.create(&pods(), &pod(&format!("pod-{number}"), true)).await {
                    Ok(_) => admitted += 1,
                    Err(refusal) => refused.push(refusal.message),
                }
            }
            (admitted, refused)
        };
        let began = Instant::now();
        let all = async {
            let outcomes = join_all((0..storm.at_once).map(create)).await;
            over.store(true, Ordering::Relaxed);
            outcomes
        };
        let (outcomes, flooded) = tokio::join!(all, flood::halves(target, storm.flood, &over));
        let seconds = began.elapsed().as_secs_f64();
        let admitted = outcomes.iter().map(|(admitted, _)| admitted).sum();
        let refused: Vec<String> = outcomes.into_iter().flat_map(|(_, refused)| refused).collect();
        Run { admitted, refused, seconds, peak: webhook.peak(), killed: !webhook.runs(), flooded }
    }
}

fn pods() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All")
}

/// A pod with GMSA, or one that is denied: contents without a name.
fn pod(name: &str, is_named: bool) -> Value {
    let options = if is_named { json!({"gmsaCredentialSpecName": SPEC}) } else { json!({"gmsaCredentialSpec": "{}"}) };
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "os": {"name": "windows"},
            "serviceAccountName": USER,
            "securityContext": {"windowsOptions": options},
            "containers": [{"name": "app", "image": "images.invalid/app:1"}],
        },
    })
}
