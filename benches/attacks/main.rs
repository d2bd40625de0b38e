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
    time::{Duration, Instant, SystemTime},
};

use bystander::{Bystander, Question, Seen};
use cases::{Attack, Target};
use clap::Parser as _;
use client::Client;
use gmsa_test_support::{self as support, page};
use gmsa_webhook::tls::issue::Ca;
use report::{Figure, Report, Row};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use server::{MEMORY_LIMIT, Server};
use support::{Fault, SimulatedApi, Table, Verb, eventually};

mod bystander;
mod cases;
mod client;
mod http2;
mod report;
mod reviews;
mod server;

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
    /// Also write the table into docs/measurements.md.
    #[arg(long, conflicts_with = "words")]
    write: bool,
    /// `cargo bench` passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let files = getrlimit(Resource::Nofile);
    let wanted = files.maximum.map_or(OPEN_FILES, |most| most.min(OPEN_FILES)).max(files.current.unwrap_or(u64::MAX));
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..files }).unwrap();
    // The API server has a thread of its own, so that an attack does not delay it.
    let api_runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let folder = tempfile::Builder::new().prefix("gmsa-attacks-").tempdir().unwrap();
    let attacks = Attacks::prepare(args.binary, folder.path(), api_runtime.block_on(api_server()));
    let (mut rows, mut limited) = (Vec::new(), true);
    for attack in cases::all() {
        if args.words.is_empty() || args.words.iter().any(|word| attack.name.contains(word.as_str())) {
            let (row, in_cgroup) = runtime.block_on(attacks.run(&attack));
            eprintln!("{row}");
            rows.push(row);
            limited &= in_cgroup;
        }
    }
    if rows.is_empty() {
        eprintln!("error: no attack has such a name");
        return ExitCode::from(2);
    }
    let report = Report { rows, limited, rest: REST.as_secs(), limit: MEMORY_LIMIT >> 20 };
    println!("{report}");
    if args.write {
        report.write();
    }
    if report.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// An API server with one credential spec, which many service accounts may use.
async fn api_server() -> SimulatedApi {
    let api = SimulatedApi::start_with_tls().await;
    api.apply(reviews::credential_spec());
    let accounts: Vec<String> = (0..reviews::ACCOUNTS).map(reviews::account).collect();
    let entries: Vec<_> =
        accounts.iter().map(|account| (reviews::NAMESPACE, account.as_str(), reviews::SPEC)).collect();
    api.authorize_by(Table::of(&entries));
    api.fault(Verb::Get, "gmsacredentialspecs/unknown", usize::MAX, Fault::Delay(API_DELAY));
    api.fault(Verb::Create, "localsubjectaccessreviews", usize::MAX, Fault::Delay(API_DELAY));
    api
}

/// What all attacks share.
struct Attacks<'f> {
    binary: PathBuf,
    /// With the server's credentials and certificate.
    folder: &'f Path,
    ca: String,
    api: SimulatedApi,
}

impl<'f> Attacks<'f> {
    fn prepare(binary: PathBuf, folder: &'f Path, api: SimulatedApi) -> Self {
        const LIFETIME: Duration = Duration::from_secs(24 * 3600);
        let ca = Ca::generate("attacks", SystemTime::now(), LIFETIME).unwrap();
        let leaf = ca.issue(&["127.0.0.1".to_owned()], SystemTime::now(), LIFETIME).unwrap();
        fs::write(folder.join("tls.crt"), &leaf.cert).unwrap();
        fs::write(folder.join("tls.key"), &leaf.key).unwrap();
        fs::write(folder.join("kubeconfig"), api.kubeconfig()).unwrap();
        Self { binary, folder, ca: ca.cert_pem().to_owned(), api }
    }

    /// Attacks a new server; says too whether it was in a memory cgroup.
    async fn run(&self, attack: &Attack) -> (Row, bool) {
        (attack.prepare)(&self.api);
        let mut server = Server::start(&self.binary, self.folder);
        let client = Client::new(server.address, &self.ca);
        let started = Instant::now();
        eventually("the server is ready", || bystander::is_ready(server.admin)).await;
        let ready = started.elapsed();
        self.api.forget_requests();
        let bystander = Bystander::start(attack.question, client.clone(), server.admin, attack.bystander_at);
        tokio::time::sleep(QUIET).await;
        let before = server.cpu();
        let outcome = (attack.run)(&Target { client, server: &server, api: &self.api, ready }).await;
        let seen = tokio::task::spawn_blocking(|| bystander.stop()).await.unwrap();
        let cpu = server.cpu() - before;
        tokio::time::sleep(REST).await;
        let killed = !server.runs();
        let memory = |number: f64, aim: f64| {
            if killed { Figure::new("killed").aim(aim.to_string(), false) } else { Figure::at_most(number, 0, aim, "") }
        };
        let row = Row {
            attack: attack.name,
            outcome,
            peak: memory(server.peak(), PEAK_AIM),
            after: memory(server.resident(), AFTER_AIM),
            cpu: match attack.cpu_aim {
                None => Figure::new(format!("{cpu:.1}")),
                Some(aim) => Figure::at_most(cpu, 1, aim, ""),
            },
            bystander: answered(&seen, attack),
        };
        (row, server.is_limited())
    }
}

/// How the requests of the bystander fared.
fn answered(seen: &Seen, attack: &Attack) -> Figure {
    let mut took = seen.took.clone();
    took.sort_unstable();
    let milliseconds = |at: usize| took.get(at).map_or(0.0, |took| took.as_secs_f64() * 1e3);
    let requests = took.len();
    let slowest = milliseconds(requests.saturating_sub(1));
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index"
    )]
    let measured = milliseconds(((requests as f64 * attack.bystander_part).ceil() as usize).saturating_sub(1));
    let what = if attack.question == Question::Ready { "/readyz" } else { "reviews" };
    let part = if attack.bystander_part < 1.0 { format!(", {measured:.0} for 99 of 100") } else { String::new() };
    let aim = attack.bystander_aim;
    match &seen.failed {
        None if aim.is_infinite() => Figure::new(format!("{slowest:.0} of {requests} {what}")),
        None => Figure::new(format!("{slowest:.0} of {requests} {what}{part}")).aim(aim.to_string(), measured <= aim),
        Some((word, failed)) => {
            let text = format!("{slowest:.0}, {failed} of {requests} {what} failed ({word})");
            if aim.is_infinite() {
                Figure::new(text)
            } else {
                Figure::new(text).aim(format!("{aim}, none failed"), false)
            }
        }
    }
}
