//! How many pods per second a real control plane creates: without a webhook, with the baseline as its webhook, with a baseline that
//! answers with this webhook's patch, with this webhook, and with `--against` with another one. What an API server itself pays for a
//! patch is the difference of the two baselines.
//!
//! Each of them has a namespace of its own in one cluster, and they take turns, so that what else the machine does
//! falls on all of them alike. Prints a Markdown table; with `--write` puts it into docs/measurements.md too. Run by
//! `just bench-cluster`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark ends where its surroundings fail"
)]

use std::{
    collections::BTreeMap,
    env, fs,
    net::{SocketAddr, TcpStream},
    panic::AssertUnwindSafe,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Instant, SystemTime},
};

use clap::Parser as _;
use control_plane::{
    Account, Binaries, Client, ControlPlane, LIFETIME, Process, Registration, SPECS, Webhook, free_addresses, grant,
    install, namespace, service_account, tails, until,
};
use futures::{FutureExt as _, future::join_all};
use gmsa_core::credspec::Contents;
use gmsa_test_support::{control_plane, helm, page};
use gmsa_webhook::tls::issue::{Ca, Issued};
use other::Other;
use report::{Kind, Report, Sample, Times, Variant};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

mod calls;
mod conditions;
mod other;
mod report;

/// The service account of the pods.
const USER: &str = "user";
/// The credential spec of the pods, that of the examples.
const SPEC: &str = "gmsa-webapp1";

#[derive(clap::Parser)]
#[command(name = "bench-cluster", about = "Measures pods created per second on a real control plane")]
struct Args {
    /// Rounds; in each, every row is measured once.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Pods that are created in one run.
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..))]
    pods: u32,
    /// Pods that are being created at once.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    at_once: u32,
    /// Also measure another webhook with the same paths and environment, with and without its client's throttle.
    #[arg(long, value_name = "BINARY", conflicts_with = "conditions")]
    against: Option<PathBuf>,
    /// With --against: the environment that its chart gives it.
    #[arg(long, value_name = "NAME=VALUE", requires = "against", value_parser = setting)]
    set: Vec<String>,
    /// Measure what the match conditions cost pods without GMSA, and nothing else.
    #[arg(long)]
    conditions: bool,
    /// Also write the tables into docs/measurements.md.
    #[arg(long)]
    write: bool,
    /// `cargo bench` passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

fn setting(text: &str) -> Result<String, &'static str> {
    if text.contains('=') { Ok(text.to_owned()) } else { Err("expected NAME=VALUE") }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let binaries = match Binaries::find() {
        Ok(binaries) => binaries,
        Err(missing) => {
            eprintln!("error: {missing}");
            return ExitCode::from(2);
        }
    };
    let folder = tempfile::Builder::new().prefix("gmsa-bench-").tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let reports = runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).unwrap();
        let mut terminate = signal(SignalKind::terminate()).unwrap();
        tokio::select! {
            reports = AssertUnwindSafe(measure_all(&args, binaries, folder.path())).catch_unwind() => reports.ok(),
            _ = interrupt.recv() => None,
            _ = terminate.recv() => None,
        }
    });
    let Some((rates, conditions)) = reports else {
        let folders = ["rates", "conditions"].map(|name| folder.path().join(name));
        for folder in folders.iter().filter(|folder| folder.is_dir()) {
            eprintln!("{}", tails(folder));
        }
        return ExitCode::from(2);
    };
    if let Some(rates) = rates {
        let times = Times::of(rates.variants, &rates.samples);
        println!("{rates}\n\n{times}\n");
        if args.write {
            rates.write();
            times.write();
        }
    }
    println!("{conditions}");
    if args.write {
        conditions.write();
    }
    ExitCode::SUCCESS
}

/// Both tables, each from a control plane of its own: what one installs must not match the pods of the other.
async fn measure_all(args: &Args, binaries: Binaries, folder: &Path) -> (Option<Report>, conditions::Report) {
    let [of_rates, of_conditions] = ["rates", "conditions"].map(|name| folder.join(name));
    let rates = if args.conditions {
        None
    } else {
        let baseline = build_baseline();
        fs::create_dir(&of_rates).unwrap();
        Some(measure(args, binaries.clone(), &baseline, &of_rates).await)
    };
    fs::create_dir(&of_conditions).unwrap();
    let control_plane = ControlPlane::start(binaries, &of_conditions).await;
    let conditions = conditions::measure(&control_plane, args.rounds, args.pods).await;
    (rates, conditions)
}

/// Builds the baseline as it is built for `just bench`, and gives its path.
fn build_baseline() -> PathBuf {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args([
        "build",
        "--profile=dist",
        "--locked",
        "--bench=baseline",
        "--message-format=json-render-diagnostics",
    ]);
    // The variables that cargo sets for this benchmark would rebuild some dependencies.
    for (name, _) in
        env::vars().filter(|(name, _)| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
    {
        command.env_remove(name);
    }
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "the baseline cannot be built");
    let messages = String::from_utf8(output.stdout).unwrap();
    let messages = messages.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut built = messages.filter(|message| message["target"]["name"] == "baseline");
    built.find_map(|message| message["executable"].as_str().map(PathBuf::from)).unwrap()
}

/// Everything that is measured.
struct Lab {
    // Before the control plane ends.
    webhook: Webhook,
    /// The baselines, and another webhook.
    _others: Vec<Process>,
    control_plane: ControlPlane,
}

async fn measure(args: &Args, binaries: Binaries, baseline: &Path, folder: &Path) -> Report {
    let other = args.against.as_deref().map(|binary| Other { binary, settings: &args.set });
    let variants = Variant::all(other.is_some());
    let lab = Lab::start(binaries, baseline, other.as_ref(), folder).await;
    let mut samples: BTreeMap<(Variant, Kind), Vec<Sample>> = BTreeMap::new();
    // The first round warms everything up.
    let mut order = variants.to_vec();
    for round in 0..=args.rounds {
        // The order changes: a run is slower behind one whose garbage the API server still collects.
        order.rotate_left(1);
        order.reverse();
        for &variant in &order {
            for kind in Kind::ALL {
                let sample = lab.create_pods(variant, kind, args).await;
                eprintln!("round {round}: {variant}: {kind}: {:.0} pods/s", sample.rate);
                if round > 0 {
                    samples.entry((variant, kind)).or_default().push(sample);
                }
            }
        }
    }
    Report { variants, samples, pods: args.pods, at_once: args.at_once, api_server: lab.control_plane.version.clone() }
}

impl Lab {
    async fn start(binaries: Binaries, baseline: &Path, other: Option<&Other<'_>>, folder: &Path) -> Self {
        let control_plane = ControlPlane::start(binaries, folder).await;
        let client = &control_plane.client;
        install(client).await;
        let spec: Value = serde_saphyr::from_str(include_str!("../../examples/credspec.yaml")).unwrap();
        client.create(SPECS, &spec).await.unwrap();
        for &variant in Variant::all(other.is_some()) {
            namespace(client, variant.namespace(), &json!({})).await;
            service_account(client, variant.namespace(), USER).await;
            grant(client, variant.namespace(), USER, &[SPEC]).await;
        }
        let ca = Ca::generate("bench", SystemTime::now(), LIFETIME).unwrap();
        let certificate = ca.issue(&["127.0.0.1".to_owned()], SystemTime::now(), LIFETIME).unwrap();
        let account = Account { name: "gmsa-webhook", verbs: &["get", "list", "watch"] };
        let kubeconfig = account.create(&control_plane).await;
        let webhook =
            Webhook::start(env!("CARGO_BIN_EXE_gmsa-webhook"), folder, "gmsa-webhook", &kubeconfig, &certificate, 0)
                .await;
        let patch = folder.join("patch.json");
        fs::write(&patch, patch_of(&spec)).unwrap();
        let mut addresses = vec![(Variant::Webhook, webhook.address)];
        let mut others = Vec::new();
        for (variant, patch) in [(Variant::Baseline, None), (Variant::PatchingBaseline, Some(patch.as_path()))] {
            let (process, address) = start_baseline(baseline, variant.namespace(), &certificate, folder, patch).await;
            others.push(process);
            addresses.push((variant, address));
        }
        if let Some(other) = other {
            for (variant, has_throttle) in [(Variant::Other, true), (Variant::Unthrottled, false)] {
                let name = variant.namespace();
                let (process, address) = other.start(name, has_throttle, folder, &kubeconfig, &certificate).await;
                others.push(process);
                addresses.push((variant, address));
            }
        }
        // This webhook is the last, so that the API server knows of all of them when it knows of this one.
        for (variant, address) in addresses.into_iter().rev() {
            let name = variant.namespace();
            let location = |path: &str| json!({"url": format!("https://{address}{path}")});
            let namespaces = json!({"matchLabels": {"kubernetes.io/metadata.name": name}});
            Registration { name, location: &location, ca_pem: ca.cert_pem(), namespaces }.create(client).await;
        }
        let lab = Self { webhook, _others: others, control_plane };
        let dry_run = format!("{}?dryRun=All", Variant::Webhook.pods());
        until("the API server asks /mutate", async || {
            let pod = lab.client().create(&dry_run, &pod("asked", Kind::Gmsa)).await.ok()?;
            pod["spec"]["securityContext"]["windowsOptions"].get("gmsaCredentialSpec").map(|_| ())
        })
        .await;
        let mut unnamed = pod("asked", Kind::Plain);
        unnamed["spec"]["securityContext"] = json!({"windowsOptions": {"gmsaCredentialSpec": "{}"}});
        until("the API server asks /validate", async || {
            lab.client().create(&dry_run, &unnamed).await.err().filter(|refusal| refusal.code == 422)
        })
        .await;
        lab
    }

    fn client(&self) -> &Client {
        &self.control_plane.client
    }

    async fn reviews(&self) -> f64 {
        self.webhook.scrape().await.sum("gmsa_webhook_reviews_total", &[])
    }

    /// Creates pods as fast as it goes, and removes them again.
    async fn create_pods(&self, variant: Variant, kind: Kind, args: &Args) -> Sample {
        let (collection, next) = (variant.pods(), AtomicU32::new(0));
        let (reviews, calls) = (self.reviews().await, calls::so_far(self.client()).await);
        let (begin, cpu) = (Instant::now(), self.control_plane.api_server_cpu());
        join_all((0..args.at_once).map(async |_| {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= args.pods {
                    break;
                }
                let stored = self.client().create(&collection, &pod(&format!("pod-{number}"), kind)).await.unwrap();
                let options = &stored["spec"]["securityContext"]["windowsOptions"];
                let expanded = variant.patches() && kind == Kind::Gmsa;
                assert_eq!(options.get("gmsaCredentialSpec").is_some(), expanded, "{variant}: {stored}");
            }
        }))
        .await;
        let (seconds, cpu) = (begin.elapsed().as_secs_f64(), self.control_plane.api_server_cpu().saturating_sub(cpu));
        let reviews = self.reviews().await - reviews;
        let [mutate, validate] = calls::so_far(self.client()).await;
        let calls = [mutate.since(&calls[0]), validate.since(&calls[1])];
        self.client().delete(&collection).await.unwrap();
        until("the pods are gone", async || {
            let left = self.client().get(&format!("{collection}?limit=1")).await.unwrap();
            left["items"].as_array().unwrap().is_empty().then_some(())
        })
        .await;
        let pods = f64::from(args.pods);
        Sample { rate: pods / seconds, reviews: reviews / pods, api_server: cpu.as_secs_f64() * 1e3 / pods, calls }
    }
}

/// What this webhook answers where the pod itself names a credential spec.
fn patch_of(spec: &Value) -> String {
    let contents = Contents::of(spec["credspec"].as_object().unwrap());
    let path = "/spec/securityContext/windowsOptions/gmsaCredentialSpec";
    json!([{"op": "add", "path": path, "value": contents.text()}]).to_string()
}

async fn start_baseline(
    binary: &Path,
    name: &str,
    certificate: &Issued,
    folder: &Path,
    patch: Option<&Path>,
) -> (Process, SocketAddr) {
    let [address] = free_addresses();
    let (cert, key) = (folder.join("baseline.crt"), folder.join("baseline.key"));
    fs::write(&cert, &certificate.cert).unwrap();
    fs::write(&key, &certificate.key).unwrap();
    let mut command = Command::new(binary);
    command.arg(address.to_string()).arg(&cert).arg(&key).args(patch);
    let mut process = Process::start(name, folder, &mut command);
    until("the baseline listens", async || {
        process.must_run();
        TcpStream::connect(address).ok()
    })
    .await;
    (process, address)
}

fn pod(name: &str, kind: Kind) -> Value {
    let mut spec = json!({
        "os": {"name": "windows"},
        "serviceAccountName": USER,
        "containers": [{"name": "app", "image": "images.invalid/app:1"}],
    });
    if kind == Kind::Gmsa {
        spec["securityContext"] = json!({"windowsOptions": {"gmsaCredentialSpecName": SPEC}});
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
}
