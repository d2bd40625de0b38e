//! End to end: the built binary as the webhook of a real control plane, called through a Service under its name in the
//! cluster. Every scenario looks at the object that the API server stored, or at the whole error that it gave.
//!
//! `just e2e` runs this, never `cargo test`: it needs kube-apiserver and etcd, in the folder that `KUBEBUILDER_ASSETS`
//! names. A word after `--` picks the scenarios whose names contain it.
//!
//! Invariants: the scenarios run one after the other, in the order in which they stand here, because some take away
//! what others need, and beside them `quiet`, which takes eight minutes, on a control plane of its own; no process is left
//! behind, however this ends.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::float_cmp,
    reason = "a test ends where its surroundings fail, and counters are whole numbers"
)]

use std::{
    env, fs,
    panic::AssertUnwindSafe,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use control_plane::{Binaries, tails};
use futures::future::{FutureExt as _, LocalBoxFuture, join};
use gmsa_test_support::{control_plane, helm, oracle, page};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::timeout,
};
use world::World;

mod certificates;
mod change;
mod chaos;
mod metrics;
mod outage;
mod pods;
mod quiet;
mod random;
mod roles;
mod slots;
mod soak;
mod tickets;
mod world;

/// Far more than a whole run takes: machines are busy at times.
const WHOLE_RUN: Duration = Duration::from_secs(1200);

/// What is known of the webhook in a cluster.
struct Scenario {
    name: &'static str,
    run: fn(&mut World) -> LocalBoxFuture<'_, ()>,
}

macro_rules! scenarios {
    ($($module:ident::$name:ident),+ $(,)?) => {
        &[$(Scenario {
            name: concat!(stringify!($module), "::", stringify!($name)),
            run: |world| $module::$name(world).boxed_local(),
        }),+]
    };
}

/// The program under test.
const BINARY: &str = env!("CARGO_BIN_EXE_gmsa-webhook");

const SCENARIOS: &[Scenario] = scenarios![
    slots::several_containers_and_specs,
    slots::pod_without_gmsa_costs_no_call,
    slots::ephemeral_container_expanded_and_authorized,
    slots::ephemeral_container_refused_where_not_authorized,
    slots::use_granted_a_second_ago,
    tickets::linux_pods_are_taken_with_the_sidecar,
    tickets::a_token_for_tickets_is_authorized_and_cannot_change,
    change::spec_created_used_and_changed,
    outage::api_server_restarted,
    certificates::rotation_while_everything_restarts,
    certificates::only_the_api_server_may_call,
    metrics::every_family_has_sensible_values,
    roles::minimal_roles_of_the_go_chart_suffice,
];

fn main() -> ExitCode {
    let Ok(binaries) = Binaries::find().inspect_err(|missing| eprintln!("error: {missing}")) else {
        return ExitCode::from(2);
    };
    let arguments: Vec<String> = env::args().skip(1).collect();
    let word = arguments.iter().find(|argument| !argument.starts_with('-')).cloned().unwrap_or_default();
    // It outlives what is started in it, so that the logs can be read.
    let folder = tempfile::Builder::new().prefix("gmsa-e2e-").tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).unwrap();
        let mut terminate = signal(SignalKind::terminate()).unwrap();
        let folder = folder.path();
        let all = async {
            match word.as_str() {
                "chaos" => chaos::run(binaries, folder, &arguments).await,
                "random" => random::run(binaries, folder, &arguments).await,
                "soak" => soak::run(binaries, folder, &arguments).await,
                _ if timeout(WHOLE_RUN, run(binaries, folder, &word)).await.expect("not done in time") => {
                    ExitCode::SUCCESS
                }
                _ => ExitCode::FAILURE,
            }
        };
        tokio::select! {
            code = AssertUnwindSafe(all).catch_unwind() => code.unwrap_or_else(|_| {
                println!("{}", tails(folder));
                ExitCode::FAILURE
            }),
            _ = interrupt.recv() => ExitCode::from(2),
            _ = terminate.recv() => ExitCode::from(2),
        }
    })
}

/// Runs the scenarios whose names contain `part`, and says whether all of them hold. Where one fails, the ends of all logs
/// are shown.
async fn run(binaries: Binaries, folder: &Path, part: &str) -> bool {
    let begin = Instant::now();
    let picked: Vec<&Scenario> = SCENARIOS.iter().filter(|scenario| scenario.name.contains(part)).collect();
    let with_quiet = quiet::NAME.contains(part);
    let others = async {
        let mut failed = 0;
        if !picked.is_empty() {
            let mut world = World::start(binaries.clone(), folder).await;
            let (version, seconds) = (&world.control_plane.version, begin.elapsed().as_secs_f64());
            println!("kube-apiserver {version} has the webhook after {seconds:.1} s");
            for scenario in &picked {
                failed += usize::from(!holds(scenario.name, folder, (scenario.run)(&mut world)).await);
            }
        }
        failed
    }
    .boxed_local();
    let quiet_folder = folder.join("quiet");
    let quiet = async {
        fs::create_dir(&quiet_folder).unwrap();
        let scenario = quiet::eight_minutes_cost_at_most_one_read(binaries.clone(), &quiet_folder).boxed_local();
        usize::from(with_quiet && !holds(quiet::NAME, &quiet_folder, scenario).await)
    }
    .boxed_local();
    let (others, quiet) = join(others, quiet).await;
    let (run, failed) = (picked.len() + usize::from(with_quiet), others + quiet);
    println!("{run} scenarios, {failed} failed, {:.1} s", begin.elapsed().as_secs_f64());
    run > 0 && failed == 0
}

/// Says whether a scenario holds.
async fn holds(name: &str, folder: &Path, scenario: impl Future<Output = ()>) -> bool {
    let begin = Instant::now();
    let outcome = AssertUnwindSafe(scenario).catch_unwind().await;
    let seconds = begin.elapsed().as_secs_f64();
    match outcome {
        Ok(()) => println!("ok      {name} ({seconds:.2} s)"),
        Err(_) => println!("FAILED  {name} ({seconds:.2} s)\n{}", tails(folder)),
    }
    outcome.is_ok()
}
