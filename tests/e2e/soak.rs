//! Hours in minutes: `just soak [MINUTES]`. Reviews at a tenth of the rate that two replicas can answer, and pods through the
//! API server, while certificates are rotated, a credential spec changes and the API server restarts; the second quarter is
//! quiet. Every answer is judged. What the replicas take is written to a file every ten seconds, for `benches/plots.py`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::Parser;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::{
    certificates::{ask, until_another_signs},
    chaos::{
        Deployment,
        traffic::{Kind, Outcome, Traffic, count},
    },
    control_plane::Binaries,
    page,
};
use reviews::{Load, Tally};

mod reviews;

/// Between two samples.
const PERIOD: Duration = Duration::from_secs(10);
/// Between two pods through the API server.
const BETWEEN_PODS: Duration = Duration::from_millis(500);
/// How long a window is whose median is compared, in samples, in a run of an hour.
const WINDOW: f64 = 300.0;

#[derive(Parser)]
#[command(name = "soak", about = "Looks for what only time brings to light")]
struct Args {
    /// How long it takes.
    #[arg(default_value_t = 60.0)]
    minutes: f64,
    /// Reviews per second, if not a tenth of what is possible.
    #[arg(long)]
    rate: Option<f64>,
    /// The webhook, if not the one that was built with this.
    #[arg(long, default_value = env!("CARGO_BIN_EXE_gmsa-webhook"))]
    binary: PathBuf,
    /// The file with the samples.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/target/soak.json"))]
    samples: PathBuf,
    /// Also write the table into docs/measurements.md.
    #[arg(long)]
    write: bool,
}

/// What happens, and after which share of the time.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Rotation,
    ApiServerRestart,
}
const EVENTS: [(f64, Event); 4] = [
    (0.05, Event::Rotation),
    // Before the first of the windows that are compared: what a queue of reviews leaves behind is in both.
    (0.10, Event::ApiServerRestart),
    (0.65, Event::Rotation),
    (0.80, Event::ApiServerRestart),
];

/// Runs it, and fails where an answer or a pod was wrong or memory grows.
pub async fn run(binaries: Binaries, folder: &Path, arguments: &[String]) -> ExitCode {
    let parsed = Args::try_parse_from(arguments).inspect_err(|error| eprint!("{error}"));
    let Ok(args) = parsed else { return ExitCode::from(2) };
    // Now, rather than after an hour.
    if let Some(Err(error)) = args.samples.parent().map(fs::create_dir_all) {
        eprintln!("error: {}: {error}", args.samples.display());
        return ExitCode::from(2);
    }
    let mut deployment = Deployment::start(binaries, folder, &args.binary, 2).await;
    let addresses: Vec<_> = deployment.replicas.iter().map(|replica| replica.address).collect();
    let can = reviews::measure(&addresses).await;
    let rate = args.rate.unwrap_or(can / 10.0);
    eprintln!("{can:.0} reviews/s are possible now; {rate:.0} it is");
    let traffic = Traffic::start(deployment.client().clone(), deployment.edition, BETWEEN_PODS);
    let load = Load::start(&addresses, rate);
    let whole = Duration::from_secs_f64(args.minutes * 60.0);
    let samples = sample(&mut deployment, &traffic, &load, whole).await;
    fs::write(&args.samples, json!({"minutes": args.minutes, "rate": rate, "samples": samples}).to_string()).unwrap();
    let report = report(&args, rate, can, &samples, &deployment.control_plane.version);
    page::publish("soak", "soak", &report, args.write);
    let bad = |field: &str| samples.iter().any(|sample| sample[field] != 0);
    let grows = (0..2).any(|replica| growth(&samples, replica).is_some_and(|growth| growth >= 1.0));
    if bad("wrong") || bad("wrong_pods") || grows { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

async fn sample(deployment: &mut Deployment, traffic: &Traffic, load: &Load, whole: Duration) -> Vec<Value> {
    let begun = Instant::now();
    let (mut samples, mut events) = (Vec::new(), EVENTS.iter());
    let mut event = events.next();
    let mut next = begun + PERIOD;
    while begun.elapsed() < whole {
        let share = begun.elapsed().as_secs_f64() / whole.as_secs_f64();
        let quiet = (0.25..0.5).contains(&share);
        load.pause(quiet);
        let mut happened = Value::Null;
        if let Some((at, what)) = event
            && share >= *at
        {
            happened = json!(format!("{what:?}"));
            event = events.next();
            match what {
                Event::Rotation => {
                    let before = ask(deployment.client(), &format!("soak-{at}")).await;
                    until_another_signs(deployment.client(), &before).await;
                }
                Event::ApiServerRestart => {
                    load.tolerate(true);
                    deployment.control_plane.restart_api_server().await;
                    let addresses: Vec<_> = deployment.replicas.iter().map(|replica| replica.address).collect();
                    reviews::until_right(&addresses).await;
                    load.tolerate(false);
                }
            }
        } else if !quiet && samples.len() % 6 == 5 {
            deployment.change(traffic).await;
        }
        sleep_until(next).await;
        next += PERIOD;
        let Tally { mut micros, unavailable, wrong } = load.take();
        for wrong in wrong.iter().take(3) {
            eprintln!("WRONG {wrong}");
        }
        micros.sort_unstable();
        let at = |percent: usize| micros.get((micros.len() * percent / 100).min(micros.len().saturating_sub(1)));
        let pods = traffic.take();
        for pod in pods.iter().filter(|pod| matches!(pod.outcome, Outcome::Wrong(_))) {
            eprintln!("WRONG {pod:?}");
        }
        let replicas: Vec<Value> = deployment
            .replicas
            .iter()
            .map(|replica| {
                json!({
                    "resident_mib": replica.process.resident(),
                    "threads": replica.process.status("Threads"),
                    "open_files": replica.process.open_files(),
                })
            })
            .collect();
        samples.push(json!({
            "seconds": begun.elapsed().as_secs(), "quiet": quiet, "event": happened,
            "reviews": micros.len() + unavailable + wrong.len(), "wrong": wrong.len(), "unavailable": unavailable,
            "p50_ms": at(50).map(|micros| f64::from(*micros) / 1e3),
            "p99_ms": at(99).map(|micros| f64::from(*micros) / 1e3),
            "pods": pods.len(),
            "forbidden_pods": pods.iter().filter(|pod| pod.kind == Kind::Forbidden).count(),
            "refused_pods": count(&pods, |outcome| matches!(outcome, Outcome::Refused(_))),
            "wrong_pods": count(&pods, |outcome| matches!(outcome, Outcome::Wrong(_))),
            "replicas": replicas,
        }));
    }
    samples
}

/// How much memory a replica takes, in MiB: the median of the samples between these shares of the run.
fn resident(samples: &[Value], replica: usize, from: f64, to: f64) -> Option<f64> {
    let last = samples.last()?["seconds"].as_f64()?;
    let within = samples.iter().filter(|sample| {
        let seconds = sample["seconds"].as_f64().unwrap_or_default();
        seconds >= from * last && seconds <= to * last
    });
    let mut all: Vec<f64> = within.filter_map(|sample| sample["replicas"][replica]["resident_mib"].as_f64()).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

/// How much memory grows in an hour, in MiB: from the five minutes after the first ten to the last five, where it takes an
/// hour, and else from as large shares.
fn growth(samples: &[Value], replica: usize) -> Option<f64> {
    let last = samples.last()?["seconds"].as_f64()?;
    let window = WINDOW / 3600.0;
    let (first, second) =
        (resident(samples, replica, 2.0 * window, 3.0 * window)?, resident(samples, replica, 1.0 - window, 1.0)?);
    Some((second - first) * 3600.0 / (last * (1.0 - 3.0 * window)))
}

fn report(args: &Args, rate: f64, can: f64, samples: &[Value], version: &str) -> String {
    let sum = |field: &str| samples.iter().filter_map(|sample| sample[field].as_u64()).sum::<u64>();
    let picked = [0, samples.len() / 6, samples.len() / 2, samples.len() - 1];
    let row = |name: String, digits: usize, value: &dyn Fn(&Value) -> Option<f64>| {
        let show = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"));
        let most = samples.iter().filter_map(value).max_by(f64::total_cmp);
        let shown = picked.iter().map(|at| value(&samples[*at])).chain([most]).map(show);
        [name].into_iter().chain(shown).collect::<Vec<_>>()
    };
    let mut rows = Vec::new();
    for (replica, which) in ["first", "second"].into_iter().enumerate() {
        for (name, field, digits) in [
            ("resident memory, MiB", "resident_mib", 1),
            ("file descriptors", "open_files", 0),
            ("threads", "threads", 0),
        ] {
            let value = |sample: &Value| sample["replicas"][replica][field].as_f64();
            rows.push(row(format!("{which} replica: {name}"), digits, &value));
        }
    }
    rows.push(row("p50, ms".to_owned(), 2, &|sample| sample["p50_ms"].as_f64()));
    rows.push(row("p99, ms".to_owned(), 2, &|sample| sample["p99_ms"].as_f64()));
    let growth = |replica| growth(samples, replica).map_or_else(|| "–".to_owned(), |growth| format!("{growth:+.2}"));
    format!(
        "{}\n{:.0} minutes, {} reviews ({rate:.0} per second, of {can:.0} that were possible at the start), {} wrong, {} failed while the\n\
         API server was away; {} pods through the API server, {} of them without `use`, {} refused while it restarted, {} stored wrongly.\n\
         Memory grows by {} and {} MiB an hour after the first sixth, aim below 1.\n\n{}",
        page::table(&["", "first sample", "after a sixth", "half", "last", "most"], rows),
        args.minutes,
        sum("reviews"),
        sum("wrong"),
        sum("unavailable"),
        sum("pods"),
        sum("forbidden_pods"),
        sum("refused_pods"),
        sum("wrong_pods"),
        growth(0),
        growth(1),
        page::machine(Some(version)),
    )
}
