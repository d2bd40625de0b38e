//! What a request for tickets costs the broker: its processor time and its memory, beside a simulated API server, directory and KDC in
//! another process. Each request costs what an agent's does: a TLS handshake, and tickets for two services. Then what a fault, one namespace's
//! requests, a restart of many pods and floods of connections do.
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

use futures::{
    StreamExt as _,
    future::{join, join_all},
    stream,
};
use gmsa_kerberos::{EncryptionType, Password};
use gmsa_test_support::{
    directory::{DirectoryAccount, password},
    eventually,
    flood::flood,
    hostile::HALF_A_HELLO,
    kdc::{Conduct, Kdc},
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

/// A namespace that asks for ticket-granting tickets at once, the time that its KDC takes, and the requests of another one beside it.
const CROWD: usize = 400;
const KDC_TAKES: Duration = Duration::from_millis(50);
const VICTIMS: usize = 224;

/// Pods that ask at once, as after a restart of their node or of the broker.
const STORM: usize = 600;

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
    // A second controller, whose KDC knows the same accounts.
    let second = world.kdc.another(([127, 0, 0, 2], world.kdc.address.port()).into()).await;
    let config = fs::read_to_string(world.path("tickets.yaml")).unwrap();
    let first = format!("'ldaps://{}'", world.directory.address);
    fs::write(world.path("tickets.yaml"), config.replace(&first, &format!("{first}, 'ldaps://127.0.0.2'"))).unwrap();
    for number in 0..STORM {
        asking_pod(&world, &format!("token-s{number}"), "webapp1", "shop");
    }
    for number in 0..PODS {
        let (name, uid) = (format!("pod-{number}"), format!("p{number}"));
        world.api.apply(pod(&name, &uid));
        world.accept_token(&format!("token-p{number}"), &["gmsa-tickets/webapp1"], bound_to(&name, &uid));
    }
    let started = Started::new(&world);
    assert_eq!(started.ask("token-1").await.status, 200);
    let first_ticket = first_ticket(&world, &started).await;
    let (rate, requests_a_second) = rate(&started).await;
    vec![
        first_ticket,
        rate,
        storm(&started, requests_a_second).await,
        controller_down(&world, &second, &started).await,
        forged_refusal(&world, &second, &started).await,
        crowd(&world, &second, &started).await,
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
    fs::write(path("token"), &world.tokens.lock().unwrap()["token-p0"]).unwrap();
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

/// Tickets by processor time, and requests by the clock.
async fn rate(started: &Started) -> (Row, f64) {
    let (before, since) = (processor_seconds(started), Instant::now());
    let asked = stream::iter(0..PODS * 10)
        .map(|number| async move { started.ask(&format!("token-p{}", number % PODS)).await.status.as_u16() });
    let given = asked.buffer_unordered(AT_ONCE).filter(|status| std::future::ready(*status == 200)).count().await;
    assert_eq!(given, PODS * 10);
    let tickets = (2 * given) as f64 / (processor_seconds(started) - before);
    let requests = given as f64 / since.elapsed().as_secs_f64();
    (row("tickets a second and core", format!("{tickets:.0}"), "500"), requests)
}

/// Pods that all ask at once, and again when the broker says so, against the time that the rate needs for them.
async fn storm(started: &Started, requests_a_second: f64) -> Row {
    let since = Instant::now();
    let pods = (0..STORM).map(|number| async move {
        let token = format!("token-s{number}");
        loop {
            let wait = match started.asked(&token, "webapp1").await {
                Ok(answer) if answer.status == 200 => return since.elapsed(),
                Ok(answer) => answer.retry_after.unwrap(),
                // It waited too long for its turn: an agent asks again a second later.
                Err(_) => 1,
            };
            tokio::time::sleep(Duration::from_secs(wait)).await;
        }
    });
    let last = join_all(pods).await.into_iter().max().unwrap();
    let needed = STORM as f64 / requests_a_second;
    row(
        "600 pods of one account ask at once: the last has tickets",
        format!("{:.1} s, {:.1} times what the rate needs", last.as_secs_f64(), last.as_secs_f64() / needed),
        "1.5 times",
    )
}

/// The controller that gave the password goes down.
async fn controller_down(world: &World, second: &Kdc, started: &Started) -> Row {
    world.kdc.conduct(Conduct::Silent);
    let (mut slowest, mut answered) = (Duration::ZERO, 0);
    for number in 0..20 {
        let since = Instant::now();
        answered += usize::from(started.ask(&format!("token-s{number}")).await.status == 200);
        slowest = slowest.max(since.elapsed());
    }
    assert!(second.asked().len() >= 40);
    world.kdc.conduct(Conduct::Honest);
    row(
        "one of two controllers becomes silent",
        format!("{answered} of 20 requests answered, the slowest after {:.1} s", slowest.as_secs_f64()),
        "all answered, 4 s",
    )
}

/// One refusal of the account's key, as anyone on the path can send it.
async fn forged_refusal(world: &World, second: &Kdc, started: &Started) -> Row {
    allow(world, "any", "*", "shop", "WebApp1");
    let any = |number: usize| format!("token-any-{number}");
    for number in 0..100 {
        asking_pod(world, &any(number), "any", "shop");
    }
    assert_eq!(started.ask_for(&any(0), "any").await.status, 200);
    for kdc in [&world.kdc, second] {
        kdc.conduct(Conduct::Refuse(24, None));
    }
    assert_eq!(started.ask_for(&any(1), "any").await.status, 409);
    for kdc in [&world.kdc, second] {
        kdc.conduct(Conduct::Honest);
    }
    let mut answered = 0;
    for number in 20..40 {
        answered += usize::from(started.ask(&format!("token-s{number}")).await.status == 200);
    }
    let since = Instant::now();
    for number in 2..100 {
        if started.ask_for(&any(number), "any").await.status == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    row(
        "one forged refusal of the account's key",
        format!(
            "{answered} of 20 requests with the kept ticket answered; a new logon after {:.0} s",
            since.elapsed().as_secs_f64()
        ),
        "all answered, 45 s",
    )
}

/// One namespace asks for more ticket-granting tickets at once than there is room for, beside another namespace and account.
async fn crowd(world: &World, second: &Kdc, started: &Started) -> Row {
    world.directory.account("Crowd", DirectoryAccount::with_password(2));
    world.kdc.account("Crowd$", &Password::managed(&password(2)), EncryptionType::Aes256);
    allow(world, "crowd", "*", "crowd", "Crowd");
    for number in 0..CROWD {
        asking_pod(world, &format!("token-crowd-{number}"), "crowd", "crowd");
    }
    for kdc in [&world.kdc, second] {
        kdc.conduct(Conduct::Slow(KDC_TAKES));
    }
    let pods = (0..CROWD).map(|number| async move {
        let token = format!("token-crowd-{number}");
        let _ = started.asked(&token, "crowd").await;
    });
    let victims = stream::iter(0..VICTIMS).map(|number| async move {
        let since = Instant::now();
        let answer = started.asked(&format!("token-s{}", 40 + number), "webapp1").await;
        (answer.is_ok_and(|answer| answer.status == 200), since.elapsed())
    });
    let victims = victims.buffer_unordered(AT_ONCE).collect::<Vec<_>>();
    let (_, victims) = join(join_all(pods), victims).await;
    let answered = victims.iter().filter(|(is_answered, _)| *is_answered).count();
    let slowest = victims.iter().map(|(_, took)| *took).max().unwrap();
    for kdc in [&world.kdc, second] {
        kdc.conduct(Conduct::Honest);
    }
    row(
        "400 pods of one namespace ask for `*` at once, a KDC 50 ms away",
        format!(
            "{answered} of {VICTIMS} requests of another namespace answered, the slowest after {:.1} s",
            slowest.as_secs_f64()
        ),
        "all answered",
    )
}

/// A credential spec of an account, and the right to use it in a namespace.
fn allow(world: &World, name: &str, services: &str, namespace: &str, account: &str) {
    let mut object = spec(name, Some(services));
    object["credspec"]["DomainJoinConfig"]["MachineAccountName"] = account.into();
    world.api.apply(object);
    world.api.grant_only(&[("shop", "web", "webapp1"), (namespace, "web", name)]);
}

/// A pod with a token for this credential spec, by the name of the token.
fn asking_pod(world: &World, token: &str, name: &str, namespace: &str) {
    let audience = format!("gmsa-tickets/{name}");
    let mut asking = pod(token, token);
    asking["metadata"]["namespace"] = namespace.into();
    asking["spec"]["volumes"][1]["projected"]["sources"][0]["serviceAccountToken"]["audience"] =
        audience.clone().into();
    world.api.apply(asking);
    let mut user = bound_to(token, token);
    user["username"] = format!("system:serviceaccount:{namespace}:web").into();
    world.accept_token(token, &[&audience], user);
}

/// What the keys of many accounts take.
async fn accounts(world: &World, started: &Started) -> Row {
    let grants: Vec<String> = (0..ACCOUNTS).map(|number| format!("spec-{number}")).collect();
    let grants: Vec<_> =
        grants.iter().map(String::as_str).chain(["webapp1"]).map(|name| ("shop", "web", name)).collect();
    world.api.grant_only(&grants);
    for (number, (_, _, name)) in grants.iter().enumerate() {
        let (sam, token) = (format!("App{number}"), format!("token-a{number}"));
        world.directory.account(&sam, DirectoryAccount::with_password(1));
        world.kdc.account(&format!("{sam}$"), &Password::managed(&password(1)), EncryptionType::Aes256);
        let mut own = spec(name, Some(world::SERVICES));
        own["credspec"]["DomainJoinConfig"]["MachineAccountName"] = sam.into();
        world.api.apply(own);
        asking_pod(world, &token, name, "shop");
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
