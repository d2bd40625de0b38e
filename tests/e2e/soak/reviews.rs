//! Reviews sent to the replicas themselves, as the API server sends them, each with the one right answer.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Instant};

use crate::{
    certificates::NAME,
    chaos::traffic::steadily,
    control_plane::{Client, Refusal, until},
    pods::{filled, gmsa, pod},
    world::{USER, VISITOR, WEB},
};

/// How long it is measured what is possible, and with how many at once.
const MEASURED: Duration = Duration::from_secs(3);
const AT_ONCE: usize = 16;

/// A review and what must come back: a patch, the code of the answer (200 where it is allowed), or the code of HTTP.
struct Case {
    path: &'static str,
    body: Value,
    is_patched: bool,
    code: Result<u16, u16>,
}

fn cases() -> Vec<Case> {
    let review = |pod: Value| {
        json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "c0ffee00-0000-4000-8000-000000000001",
                "kind": {"group": "", "version": "v1", "kind": "Pod"},
                "namespace": NAME,
                "operation": "CREATE",
                "object": pod,
                "oldObject": null,
            },
        })
    };
    let with = |account: &str, context: Value| review(pod("soaked", account, &json!({"securityContext": context})));
    let case = |path, body, code| Case { path, body, is_patched: false, code };
    vec![
        Case { is_patched: true, ..case("/mutate", with(USER, gmsa("web")), Ok(200)) },
        case("/validate", with(USER, filled("web", WEB)), Ok(200)),
        case("/mutate", with(USER, json!({})), Ok(200)),
        case("/validate", with(USER, filled("web", "{}")), Ok(422)),
        case("/validate", with(VISITOR, filled("web", WEB)), Ok(403)),
        case("/mutate", with(USER, gmsa("unknown")), Ok(404)),
        case("/validate", json!({"kind": "AdmissionReview"}), Err(400)),
    ]
}

/// Posts a case; gives nothing where the answer is right, and else what came.
async fn post(client: &Client, case: &Case) -> Result<(), Result<Value, Refusal>> {
    let answer = client.create(&format!("{}?timeout=10s", case.path), &case.body).await;
    let right = match (&answer, case.code) {
        (Err(refusal), Err(code)) => refusal.code == code,
        (Ok(answer), Ok(code)) => {
            let (response, allowed) = (&answer["response"], code == 200);
            response["uid"] == case.body["request"]["uid"]
                && response["allowed"] == allowed
                && (allowed || response["status"]["code"] == code)
                && if case.is_patched { is_expected(&response["patch"]) } else { response.get("patch").is_none() }
        }
        _ => false,
    };
    if right { Ok(()) } else { Err(answer) }
}

fn is_expected(encoded: &Value) -> bool {
    let bytes = encoded.as_str().and_then(|text| STANDARD.decode(text).ok()).unwrap_or_default();
    let patch: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let place = "/spec/securityContext/windowsOptions/gmsaCredentialSpec";
    patch == json!([{"op": "add", "path": place, "value": WEB}])
}

fn clients(addresses: &[SocketAddr]) -> Vec<Client> {
    let client = |address: &SocketAddr| {
        let mut config = kube::Config::new(format!("https://{address}").parse().unwrap());
        // The certificate is replaced meanwhile, and whether it is trusted is what the API server's pods show.
        config.accept_invalid_certs = true;
        Client::with(config)
    };
    addresses.iter().map(client).collect()
}

/// How many reviews per second are answered at most.
pub async fn measure(addresses: &[SocketAddr]) -> f64 {
    let (clients, cases) = (clients(addresses), cases());
    let (begun, answered) = (Instant::now(), AtomicUsize::new(0));
    join_all((0..AT_ONCE).map(async |worker| {
        let mut number = worker;
        while begun.elapsed() < MEASURED {
            let answer = post(&clients[number % clients.len()], &cases[number / clients.len() % cases.len()]).await;
            assert!(answer.is_ok(), "{answer:?}");
            answered.fetch_add(1, Ordering::Relaxed);
            number += 1;
        }
    }))
    .await;
    f64::from(u32::try_from(answered.into_inner()).unwrap()) / begun.elapsed().as_secs_f64()
}

/// Waits until each replica has answered each case as it must.
pub async fn until_right(addresses: &[SocketAddr]) {
    for client in clients(addresses) {
        for case in cases() {
            until("the replicas answer again", async || post(&client, &case).await.ok()).await;
        }
    }
}

/// What became of reviews.
#[derive(Default)]
pub struct Tally {
    /// How long each right answer took.
    pub micros: Vec<u32>,
    /// Failed while that was to be expected.
    pub unavailable: usize,
    pub wrong: Vec<String>,
}

/// Reviews at a steady rate. It stops when it is dropped.
pub struct Load {
    state: Arc<State>,
    _task: JoinSet<()>,
}

#[derive(Default)]
struct State {
    tally: Mutex<Tally>,
    pause: AtomicBool,
    tolerate: AtomicBool,
}

impl Load {
    pub fn start(addresses: &[SocketAddr], rate: f64) -> Self {
        let state = Arc::<State>::default();
        let (shared, clients, cases) = (Arc::clone(&state), clients(addresses), Arc::new(cases()));
        let task = steadily(Duration::from_secs_f64(1.0 / rate), move |number| {
            if shared.pause.load(Ordering::Relaxed) {
                return None;
            }
            let client = clients[number % clients.len()].clone();
            let (cases, state) = (Arc::clone(&cases), Arc::clone(&shared));
            Some(async move {
                let begun = Instant::now();
                // A question that began or ends while the API server is away may fail.
                let before = state.tolerate.load(Ordering::Relaxed);
                let answer = post(&client, &cases[number / 2 % cases.len()]).await;
                let may_fail = before || state.tolerate.load(Ordering::Relaxed);
                let mut tally = state.tally.lock().unwrap();
                match answer {
                    Ok(()) => tally.micros.push(u32::try_from(begun.elapsed().as_micros()).unwrap_or(u32::MAX)),
                    Err(Ok(answer)) if may_fail && answer["response"]["status"]["code"].as_u64() >= Some(500) => {
                        tally.unavailable += 1;
                    }
                    Err(answer) => tally.wrong.push(format!("{answer:?}")),
                }
            })
        });
        Self { state, _task: task }
    }

    /// Whether nothing is sent.
    pub fn pause(&self, pause: bool) {
        self.state.pause.store(pause, Ordering::Relaxed);
    }

    /// Whether a review may fail because the API server is away.
    pub fn tolerate(&self, tolerate: bool) {
        self.state.tolerate.store(tolerate, Ordering::Relaxed);
    }

    /// What became of the reviews since the last call.
    pub fn take(&self) -> Tally {
        std::mem::take(&mut self.state.tally.lock().unwrap())
    }
}
