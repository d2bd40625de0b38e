//! What a request for tickets costs the broker: its processor time and its memory, beside a simulated API server, directory and KDC in
//! another process. Each request is that of an agent: a TLS handshake, and tickets for two services.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    clippy::print_stdout,
    dead_code,
    reason = "a benchmark ends where its surroundings fail, and uses what the tests need besides"
)]

use std::{fs, time::Instant};

use futures::{StreamExt as _, stream};
use gmsa_kerberos::{EncryptionType, Password};
use gmsa_test_support::directory::{DirectoryAccount, password};
use started::Started;
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

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(measure());
}

async fn measure() {
    let world = World::start().await;
    for number in 0..PODS {
        let (name, uid) = (format!("pod-{number}"), format!("p{number}"));
        world.api.apply(pod(&name, &uid));
        world.api.accept_token(&format!("token-p{number}"), &["gmsa-tickets/webapp1"], bound_to(&name, &uid));
    }
    let started = Started::new(&world);
    assert_eq!(started.ask("token-1").await.status, 200);
    let (before, since) = (processor_seconds(&started), Instant::now());
    let asked = stream::iter(0..PODS * 10).map(|number| {
        let started = &started;
        async move { started.ask(&format!("token-p{}", number % PODS)).await.status.as_u16() }
    });
    let given = asked.buffer_unordered(AT_ONCE).filter(|status| std::future::ready(*status == 200)).count().await;
    let (wall, spent) = (since.elapsed().as_secs_f64(), processor_seconds(&started) - before);
    assert_eq!(given, PODS * 10);
    let tickets = 2 * given;
    println!("{tickets} tickets in {wall:.2} s, with {spent:.2} s of the broker's processor time");
    println!("{:.0} tickets a second and core", tickets as f64 / spent);
    accounts(&world, &started).await;
}

/// What the keys of many accounts take.
async fn accounts(world: &World, started: &Started) {
    let before = resident_kib(started);
    let grants: Vec<String> = (0..ACCOUNTS).map(|number| format!("spec-{number}")).collect();
    let grants: Vec<_> = grants.iter().map(|name| ("shop", "web", name.as_str())).collect();
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
    println!("{ACCOUNTS} accounts: {} KiB resident, {} KiB with one", resident_kib(started), before);
}

/// The time in user mode and in the kernel.
fn processor_seconds(started: &Started) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", started.child.0.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / CLOCK_TICKS
}

fn resident_kib(started: &Started) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", started.child.0.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
