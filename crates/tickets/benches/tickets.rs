//! What a request for tickets costs the broker: its processor time and its memory, beside a simulated API server, directory and KDC in
//! another process. Each request costs what an agent's does: a TLS handshake, and tickets for two services. Then what floods of connections do.
//!
//! `--write` puts the figures into docs/measurements.md.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    clippy::print_stdout,
    dead_code,
    reason = "a benchmark ends where its surroundings fail, and uses what the tests need besides"
)]

use std::{
    env, fs,
    net::Ipv4Addr,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::spawn,
    time::{Duration, Instant},
};

use futures::{StreamExt as _, stream};
use gmsa_kerberos::{EncryptionType, Password};
use gmsa_test_support::{
    directory::{DirectoryAccount, password},
    eventually,
    flood::flood,
    hostile::HALF_A_HELLO,
    page::{machine, publish, table},
};
use started::{Ended, Started};
use world::{World, bound_to, pod, spec};

#[path = "../tests/broker/started.rs"]
mod started;
#[path = "../tests/broker/world.rs"]
mod world;

/// Pods that ask, each ten times, and the accounts that they ask for.
const PODS: usize = 500;
const ACCOUNTS: usize = 1000;
const AT_ONCE: usize = 16;
const CLOCK_TICKS: f64 = 100.0;
const MIB: f64 = 1024.0;

/// How long a flood lasts, and how many of its connections are open at once.
const FLOOD: Duration = Duration::from_secs(10);
const HELD: usize = 4096;

type Row = Vec<String>;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let rows = runtime.block_on(measure());
    let report = format!("{}\n{}", table(&["", "measured", "aim"], rows), machine(None));
    publish("tickets", "bench-tickets", &report, env::args().any(|argument| argument == "--write"));
}

fn row(what: &str, measured: String, aim: &str) -> Row {
    println!("{what}: {measured}");
    vec![what.to_owned(), measured, aim.to_owned()]
}

async fn measure() -> Vec<Row> {
    let world = World::start().await;
    for number in 0..PODS {
        let (name, uid) = (format!("pod-{number}"), format!("p{number}"));
        world.api.apply(pod(&name, &uid));
        world.api.accept_token(&format!("token-p{number}"), &["gmsa-tickets/webapp1"], bound_to(&name, &uid));
    }
    let started = Started::new(&world);
    assert_eq!(started.ask("token-1").await.status, 200);
    vec![
        first_ticket(&world, &started).await,
        rate(&started).await,
        accounts(&world, &started).await,
        flooded(&started, "10,000 connections a second that send nothing", &[]).await,
        flooded(&started, "10,000 connections a second that send half a handshake", HALF_A_HELLO).await,
        flooded(
            &started,
            "10,000 connections a second that send 16 KiB of a `ClientHello` of 65,535 bytes",
            &long_hello(),
        )
        .await,
    ]
}

/// From the agent's start to the file of the tickets.
async fn first_ticket(world: &World, started: &Started) -> Row {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("token"), "token-p0").unwrap();
    let mut agent = Command::new(env!("CARGO_BIN_EXE_gmsa-tickets"));
    agent.args(["agent", "--credential-spec", "webapp1", "--broker", started::NAME]).env_clear();
    agent.args(["--broker-ca", &fs::read_to_string(world.path("broker-ca.crt")).unwrap()]);
    agent.args(["--broker-address", &started.broker.to_string()]);
    agent.arg("--token-file").arg(path("token")).arg("--folder").arg(folder.path());
    let since = Instant::now();
    let _agent = Ended(agent.spawn().unwrap());
    eventually("the tickets are there", || path("krb5cc").exists()).await;
    row(
        "first ticket after the start of the agent",
        format!("{:.0} ms", since.elapsed().as_secs_f64() * 1000.0),
        "1000 ms",
    )
}

async fn rate(started: &Started) -> Row {
    let before = processor_seconds(started);
    let asked = stream::iter(0..PODS * 10)
        .map(|number| async move { started.ask(&format!("token-p{}", number % PODS)).await.status.as_u16() });
    let given = asked.buffer_unordered(AT_ONCE).filter(|status| std::future::ready(*status == 200)).count().await;
    assert_eq!(given, PODS * 10);
    let tickets = (2 * given) as f64 / (processor_seconds(started) - before);
    row("tickets a second and core", format!("{tickets:.0}"), "500")
}

/// What the keys of many accounts take.
async fn accounts(world: &World, started: &Started) -> Row {
    let grants: Vec<String> = (0..ACCOUNTS).map(|number| format!("spec-{number}")).collect();
    let grants: Vec<_> =
        grants.iter().map(String::as_str).chain(["webapp1"]).map(|name| ("shop", "web", name)).collect();
    world.api.grant_only(&grants);
    for (number, (_, _, name)) in grants.iter().enumerate() {
        let (sam, uid, token) = (format!("App{number}"), format!("a{number}"), format!("token-a{number}"));
        world.directory.account(&sam, DirectoryAccount::with_password(1));
        world.kdc.account(&format!("{sam}$"), &Password::managed(&password(1)), EncryptionType::Aes256);
        let mut own = spec(name, Some(world::SERVICES));
        own["credspec"]["DomainJoinConfig"]["MachineAccountName"] = sam.into();
        world.api.apply(own);
        let mut asking = pod(&uid, &uid);
        let audience = format!("gmsa-tickets/{name}");
        asking["spec"]["volumes"][1]["projected"]["sources"][0]["serviceAccountToken"]["audience"] =
            audience.clone().into();
        world.api.apply(asking);
        world.api.accept_token(&token, &[&audience], bound_to(&uid, &uid));
        assert_eq!(started.ask_for(&token, name).await.status, 200);
    }
    row("resident memory with 1,000 accounts", format!("{:.0} MiB", memory_mib(started, "VmRSS:")), "32 MiB")
}

/// The peak of memory in a flood, and the slowest answer to pods at another address.
async fn flooded(started: &Started, name: &str, sends: &[u8]) -> Row {
    let goes_on = Arc::new(AtomicBool::new(true));
    let (to, sends, flag) = (started.broker, sends.to_vec(), Arc::clone(&goes_on));
    let attack =
        spawn(move || flood(to, 10_000, &[Ipv4Addr::new(127, 0, 0, 9)], &sends, HELD, || flag.load(Ordering::Relaxed)));
    let (begin, mut slowest, mut asked) = (Instant::now(), Duration::ZERO, 0_u32);
    while begin.elapsed() < FLOOD {
        let since = Instant::now();
        // Each time another pod: one alone may not ask as often.
        let pod = asked as usize % ACCOUNTS;
        assert_eq!(started.ask_for(&format!("token-a{pod}"), &format!("spec-{pod}")).await.status, 200);
        slowest = slowest.max(since.elapsed());
        asked += 1;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    goes_on.store(false, Ordering::Relaxed);
    let opened = attack.join().unwrap();
    let peak = memory_mib(started, "VmHWM:");
    let measured = format!(
        "{opened} opened; {asked} of {asked} requests answered, the slowest after {} ms; peak {peak:.0} MiB",
        slowest.as_millis()
    );
    row(name, measured, "all answered, 96 MiB")
}

/// The first record of a `ClientHello` of 65,535 bytes.
fn long_hello() -> Vec<u8> {
    [22, 3, 1, 0x40, 0, 1, 0, 0xff, 0xfb].into_iter().chain(vec![0; 16_380]).collect()
}

/// The time in user mode and in the kernel.
fn processor_seconds(started: &Started) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", started.child.0.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / CLOCK_TICKS
}

/// A size of `/proc/PID/status`.
fn memory_mib(started: &Started, name: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{}/status", started.child.0.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / MIB
}
