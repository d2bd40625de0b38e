//! The golden cases through the decision core, over TLS, and against the program in standalone mode.

use std::{
    collections::HashMap,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use futures::FutureExt as _;
use gmsa_cluster::{authorizer::Authorizer as _, standalone::Standalone};
use gmsa_core::admission::{Enforcement, Facts, Known, Review, Settings, Source, Webhook, pod::Pod};
use gmsa_test_support::golden as cases;
use serde_json::Value;
use tokio::time::Instant;

fn webhook(name: &str) -> Webhook {
    Webhook::ALL.into_iter().find(|webhook| webhook.as_str() == name).unwrap()
}

#[test]
fn the_core_answers_every_case() {
    let mut clusters: HashMap<PathBuf, Standalone> = HashMap::new();
    cases::check(|case, name, enforcement| {
        let cluster = clusters.entry(case.cluster.clone()).or_insert_with(|| Standalone::load(&case.cluster).unwrap());
        let review = Review::parse(&case.review, webhook(name)).unwrap();
        let settings = Settings { enforcement, ..Settings::default() };
        let asks = review.object.as_ref().is_some_and(Pod::asks_for_random_hostname);
        let hostname = asks.then(|| "h0123456789abcd".to_owned());
        // Files answer at once: no runtime is needed to ask them.
        let facts = review.questions(webhook(name), settings).facts(
            |spec| Known { fact: cluster.specs.fact(spec), source: Source::Files },
            |subject, spec| cluster.rbac.may_use(subject, spec, Instant::now()).now_or_never().unwrap(),
        );
        review.answer(&review.decide(webhook(name), settings, &Facts { hostname, ..facts }))
    });
}

/// The bodies of all cases.
pub fn reviews() -> &'static [Vec<u8>] {
    static REVIEWS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    REVIEWS.get_or_init(|| cases::cases().into_iter().map(|case| case.review).collect())
}

/// Posts a case the way the API server does.
async fn post(server: &crate::https::Server, case: &cases::Case, name: &str) -> Vec<u8> {
    let answer = server.post(&format!("/{name}?timeout=10s"), case.review.clone()).await;
    assert_eq!(answer.status, 200, "{}: {}", case.name, answer.text());
    answer.body.to_vec()
}

#[test]
fn the_server_answers_every_case_over_tls() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut servers: HashMap<(PathBuf, Enforcement), crate::https::Server> = HashMap::new();
    cases::check(|case, name, enforcement| {
        runtime.block_on(async {
            let server = servers.entry((case.cluster.clone(), enforcement)).or_insert_with(|| {
                crate::https::Setup { enforcement, ..crate::https::Setup::standalone(&case.cluster) }.start()
            });
            post(server, case, name).await
        })
    });
}

/// The program as a person starts it; it ends with the test.
struct Program {
    child: Child,
    /// Where it puts its CA.
    _folder: tempfile::TempDir,
    server: crate::https::Server,
}

impl Program {
    /// Starts it and waits for the line that says where it listens.
    fn start(cluster: &Path, enforcement: Enforcement) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_gmsa-webhook"))
            .env("TMPDIR", folder.path())
            .args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--log-format", "json"])
            .args(["--enforcement", if enforcement == Enforcement::Warn { "warn" } else { "Enforce" }])
            .arg("--standalone")
            .arg(cluster)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut value_of = |field: &str| loop {
            // The log ends where the program does.
            let line: Value = serde_json::from_str(&log.next().expect("the program ended").unwrap()).unwrap();
            if let Some(value) = line[field].as_str() {
                return value.to_owned();
            }
        };
        let ca = std::fs::read_to_string(value_of("ca")).unwrap();
        let address = value_of("address").parse().unwrap();
        // Nobody else reads the log: a full pipe would stop the program.
        std::thread::spawn(move || log.for_each(drop));
        let closing = tokio_util::sync::CancellationToken::new();
        Self {
            child,
            _folder: folder,
            server: crate::https::Server {
                address,
                ca,
                ending: closing.clone(),
                closing,
                task: tokio::spawn(async { 0 }),
                metrics: prometheus_client::registry::Registry::default(),
            },
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn the_program_answers_every_case_in_standalone_mode() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut programs: HashMap<(PathBuf, Enforcement), Program> = HashMap::new();
    cases::check(|case, name, enforcement| {
        runtime.block_on(async {
            let program = programs
                .entry((case.cluster.clone(), enforcement))
                .or_insert_with(|| Program::start(&case.cluster, enforcement));
            post(&program.server, case, name).await
        })
    });
}
