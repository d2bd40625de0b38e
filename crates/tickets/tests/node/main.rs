//! Everything as it is deployed, from nothing: both charts on a node with a real kubelet, beside a real Active Directory domain that its DNS knows, and
//! Linux pods that log on to it. `just e2e-node` runs this: `tests/directory.sh` makes the domain.
//!
//! Invariants: the rows run one after the other on one node, in the order in which they stand here, because each finds what the first has installed. A word
//! picks rows; the first always runs. Every row leaves the cluster as it found it.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test ends where its surroundings fail"
)]

use std::{env, panic::AssertUnwindSafe, path::PathBuf, process::ExitCode, time::Instant};

use clap::Parser;
use futures::future::{FutureExt as _, LocalBoxFuture};
use gmsa_test_support::{control_plane::tails, node::Programs};

use crate::world::World;

mod disruptions;
mod page;
mod pods;
mod world;

#[derive(Parser)]
#[command(name = "e2e-node", about = "Tries everything on a node with a real kubelet")]
struct Args {
    /// Only the rows with this word in their names, after the page.
    #[arg(default_value = "")]
    word: String,
    /// The images that `just image` has written, in place of the programs that were built with the tests.
    #[arg(long)]
    images: bool,
    /// Also write the table of disruptions into docs/measurements.md.
    #[arg(long)]
    write: bool,
}

/// What is known of pods on a node.
struct Row {
    name: &'static str,
    run: fn(&mut World) -> LocalBoxFuture<'_, ()>,
}

macro_rules! rows {
    ($($module:ident::$name:ident),+ $(,)?) => {
        &[$(Row {
            name: concat!(stringify!($module), "::", stringify!($name)),
            run: |world| $module::$name(world).boxed_local(),
        }),+]
    };
}

const ROWS: &[Row] = rows![
    page::from_an_account_of_windows_pods_to_linux_pods,
    page::from_a_keytab_to_a_web_server,
    pods::of_every_kind_log_on,
    pods::of_a_job_end,
    pods::log_on_without_the_name_of_an_address,
    pods::without_use_are_refused,
    pods::without_an_image_say_so,
    pods::in_a_namespace_with_a_limit_range,
    disruptions::termination,
    disruptions::rollouts_and_evictions,
    disruptions::kills,
    disruptions::tokens_are_replaced,
    disruptions::reboot,
    pods::wait_for_a_broker_that_is_away,
    page::of_the_broker_from_an_account_to_its_end,
];

fn main() -> ExitCode {
    let args = Args::parse();
    let Ok(programs) = Programs::find().inspect_err(|missing| eprintln!("error: {missing}")) else {
        return ExitCode::from(2);
    };
    // The script removes it, when what keeps files in it has ended.
    let folder = PathBuf::from(env::var_os("NODE_FOLDER").expect("tests/directory.sh sets NODE_FOLDER"));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let begun = Instant::now();
        let started = AssertUnwindSafe(World::start(programs, &folder, args.images)).catch_unwind().await;
        let Ok(mut world) = started else {
            println!("{}", tails(&folder));
            return ExitCode::FAILURE;
        };
        let (version, seconds) = (&world.node.plane.version, begun.elapsed().as_secs_f64());
        println!("a node of Kubernetes {version} is ready after {seconds:.1} s");
        let (first, others) = ROWS.split_first().unwrap();
        for row in [first].into_iter().chain(others.iter().filter(|row| row.name.contains(&args.word))) {
            let begun = Instant::now();
            let outcome = AssertUnwindSafe((row.run)(&mut world)).catch_unwind().await;
            let seconds = begun.elapsed().as_secs_f64();
            match &outcome {
                Ok(()) => println!("ok      {} ({seconds:.1} s)", row.name),
                Err(_) => println!("FAILED  {} ({seconds:.1} s)\n{}{}", row.name, world.shown(), tails(&folder)),
            }
            // The next ones would find what it has left.
            if outcome.is_err() {
                return ExitCode::FAILURE;
            }
        }
        disruptions::publish(&world, args.write);
        println!("all hold, {:.1} s", begun.elapsed().as_secs_f64());
        ExitCode::SUCCESS
    })
}
