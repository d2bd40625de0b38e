//! Everything that the server must survive, against the released binary: each attack with what held, the memory and the CPU
//! time that it cost, and the slowest answer to a bystander meanwhile.
//!
//! The server runs as in a cluster, in a memory cgroup of the chart's limit where the system provides one, on a simulated API
//! server. Prints a Markdown table; with `--write` puts it into docs/measurements.md too. Exit code 0 where every aim holds, 1
//! where one does not, another where it could not be measured. Run by `just attacks`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark ends where its surroundings fail"
)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use bystander::{Bystander, Question};
use cases::{Attack, Target};
use clap::Parser as _;
use client::Client;
use cluster::Cluster;
use gmsa_edge::tls::issue::Ca;
use gmsa_test_support::{
    self as support,
    cgroup::Cgroup,
    control_plane::{Binaries, LIFETIME, SPEC, Start, certificate_flags, example, raise_open_files},
    page,
};
use report::Figure;
use support::{Fault, SimulatedApi, Verb};

mod bystander;
mod cases;
mod client;
mod cluster;
mod report;
mod reviews;

/// The memory that the server may use, in bytes: the chart's limit.
const MEMORY_LIMIT: u64 = 128 << 20;
/// The most memory that the server should ever use, in MiB.
const PEAK_AIM: f64 = 96.0;
/// What may be resident after an attack, in MiB, and how long after.
const AFTER_AIM: f64 = 48.0;
const REST: Duration = Duration::from_secs(12);
/// How long the bystander asks before an attack begins.
const QUIET: Duration = Duration::from_millis(300);
/// Open files: both ends of thousands of connections are not in one process, but one end is.
const OPEN_FILES: u64 = 16_384;
/// How long the API server takes for a read of what it does not have, and for an access review.
const API_DELAY: Duration = Duration::from_millis(20);

#[derive(clap::Parser)]
#[command(name = "attacks", about = "Attacks the server, and measures what holds")]
struct Args {
    /// Only attacks whose names contain one of these words.
    words: Vec<String>,
    /// A released gmsa-webhook to attack, instead of the one that was just built.
    #[arg(long, value_name = "FILE", default_value = env!("CARGO_BIN_EXE_gmsa-webhook"))]
    binary: PathBuf,
    /// Also write the rows into the table of docs/measurements.md.
    #[arg(long)]
    write: bool,
    /// `cargo bench` passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let mut attacks = Attack::all();
    attacks.retain(|attack| args.words.is_empty() || args.words.iter().any(|word| attack.name.contains(word.as_str())));
    if attacks.is_empty() {
        eprintln!("error: no attack has such a name");
        return ExitCode::from(2);
    }
    raise_open_files(OPEN_FILES);
    // The API server has a thread of its own, so that an attack does not delay it.
    let api_runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let folder = tempfile::Builder::new().prefix("gmsa-attacks-").tempdir().unwrap();
    let ca = Ca::generate("attacks", SystemTime::now(), LIFETIME).unwrap();
    let lab = Lab {
        binary: &args.binary,
        folder: folder.path(),
        api: api_runtime.block_on(api_server()),
        cluster: cluster(&attacks).map(|binaries| api_runtime.block_on(Cluster::start(binaries, folder.path()))),
        ca,
    };
    let (mut rows, mut hold) = (Vec::new(), true);
    for attack in &attacks {
        let (cells, holds) = runtime.block_on(lab.run(attack));
        eprintln!("{}", cells.join(" | "));
        rows.push(cells);
        hold &= holds;
    }
    let version = lab.cluster.as_ref().map(Cluster::version);
    page::publish("attacks", "attacks", &report(among_others(&rows), version), args.write);
    if hold { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// These rows, among those of other attacks that the page has.
fn among_others(rows: &[Vec<String>]) -> Vec<Vec<String>> {
    let page = fs::read_to_string(support::repository().join("docs/measurements.md")).unwrap();
    let written = |attack: Attack| {
        let name = format!("| {} | ", attack.name);
        let row = rows.iter().find(|row| row[0] == attack.name).cloned();
        row.or_else(|| {
            let cells = page.lines().find_map(|line| line.strip_prefix(&name)?.strip_suffix(" |"))?;
            Some([attack.name].into_iter().chain(cells.split(" | ").map(str::to_owned)).collect())
        })
    };
    Attack::all().into_iter().filter_map(written).collect()
}

fn report(rows: Vec<Vec<String>>, api_server: Option<&str>) -> String {
    let after = format!("Resident {} s after, MiB", REST.as_secs());
    let head = ["Attack", "What happened", "Peak, MiB", &after, "CPU, s", "Slowest answer to the bystander, ms"];
    let process = match Cgroup::create(MEMORY_LIMIT) {
        Some(_) => format!(
            "Each against a new process in a memory cgroup of {} MiB; \
             the peak is the larger of the group's and the resident memory's.",
            MEMORY_LIMIT >> 20
        ),
        None => "Each against a new process. **This system gives no memory cgroup**: \
                 nothing limits the process, and the peak is that of its resident memory."
            .to_owned(),
    };
    format!(
        "{}\n{process}\nClient, attack and server share the machine. \
         The CPU time is the server's during the attack, the bystander's requests included.\n\n{}",
        page::table(&head, rows),
        page::machine(api_server)
    )
}

/// An API server with one credential spec, which many service accounts may use.
async fn api_server() -> SimulatedApi {
    let api = SimulatedApi::start_with_tls().await;
    api.apply(example());
    let accounts: Vec<String> = (0..reviews::ACCOUNTS).map(reviews::account).collect();
    let entries: Vec<_> = accounts.iter().map(|account| (reviews::NAMESPACE, account.as_str(), SPEC)).collect();
    api.grant_only(&entries);
    api.fault(Verb::Get, "gmsacredentialspecs/unknown", usize::MAX, Fault::Delay(API_DELAY));
    api.fault(Verb::Create, "localsubjectaccessreviews", usize::MAX, Fault::Delay(API_DELAY));
    api
}

/// The programs of a real API server, where there are any and an attack needs them.
fn cluster(attacks: &[Attack]) -> Option<Binaries> {
    let needed = attacks.iter().any(Attack::creates_pods);
    let found = needed.then(Binaries::find)?;
    found.inspect_err(|missing| eprintln!("no pods are created: {missing}")).ok()
}

/// What all attacks share.
struct Lab<'a> {
    binary: &'a Path,
    folder: &'a Path,
    api: SimulatedApi,
    cluster: Option<Cluster>,
    ca: Ca,
}

impl Lab<'_> {
    /// Attacks a new server; gives the row, and whether every aim holds.
    async fn run(&self, attack: &Attack) -> (Vec<String>, bool) {
        attack.prepare(&self.api);
        let folder = tempfile::tempdir_in(self.folder).unwrap();
        let flags = certificate_flags(folder.path(), &attack.key.certificate(&self.ca));
        let cluster = self.cluster.as_ref().filter(|_| attack.creates_pods());
        let kubeconfig = cluster.map(|cluster| cluster.kubeconfig.clone());
        let kubeconfig = kubeconfig.unwrap_or_else(|| serde_json::from_str(&self.api.kubeconfig()).unwrap());
        let started = Instant::now();
        let start = Start {
            binary: self.binary,
            folder: folder.path(),
            name: "webhook",
            kubeconfig: &kubeconfig,
            flags: &[&flags[..], &["--warn-namespaces".to_owned(), reviews::TRIAL.to_owned()]].concat(),
            listen: ([127, 0, 0, 1], 0).into(),
            cgroup: Cgroup::create(MEMORY_LIMIT),
        };
        let mut server = start.run().await;
        let ready = started.elapsed();
        self.api.forget_requests();
        let client = Client::new(server.address, self.ca.cert_pem());
        let pods = match cluster {
            Some(cluster) => Some(Arc::new(cluster.register(server.address, self.ca.cert_pem()).await)),
            None => None,
        };
        let plans = attack.bystanders().filter(|plan| plan.asks != Question::Pod || pods.is_some());
        let bystanders: Vec<_> = plans
            .map(|plan| (plan, Bystander::start(plan, client.clone(), server.admin_address, pods.clone())))
            .collect();
        tokio::time::sleep(QUIET).await;
        let before = server.process.cpu();
        let mut figures = attack.run(&Target { client, server: &server, api: &self.api, ready }).await;
        let seen: Vec<_> = bystanders.into_iter().map(|(plan, bystander)| bystander.stop().figure(plan)).collect();
        let cpu = server.process.cpu().saturating_sub(before).as_secs_f64();
        tokio::time::sleep(REST).await;
        let killed = server.process.has_ended();
        let memory = |number: f64, aim: f64| {
            if killed { Figure::new("killed").aim(aim, false) } else { Figure::at_most(number, 0, aim, "") }
        };
        let outcome = figures.iter().map(Figure::to_string).collect::<Vec<_>>().join("; ");
        let rest = [
            memory(server.process.peak(), PEAK_AIM),
            memory(server.process.resident(), AFTER_AIM),
            attack.cpu_aim.map_or_else(|| Figure::new(format!("{cpu:.1}")), |aim| Figure::at_most(cpu, 1, aim, "")),
        ];
        let answers = seen.iter().map(Figure::to_string).collect::<Vec<_>>().join("; ");
        let cells = [attack.name.clone(), outcome].into_iter().chain(rest.iter().map(Figure::to_string));
        let cells = cells.chain([answers]).collect();
        figures.extend(rest);
        figures.extend(seen);
        (cells, figures.iter().all(Figure::holds))
    }
}
