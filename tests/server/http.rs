//! The server over real TLS: paths, bad input, limits, time and the drain.

use std::sync::Arc;

use futures::future::BoxFuture;
use gmsa_cluster::resolver::{Freshness, Resolved, Resolver};
use gmsa_core::{
    admission::{Failure, FailureKind, Source, SpecFact},
    credspec::{Contents, SpecName},
};
use gmsa_webhook::{limits::Limits, server::LookUpSources};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, timeout_at},
};

use crate::{
    https::{Server, Setup},
    reviews::{created, slot},
    support::https::{self, Answer, post},
};

mod limits;
mod requests;
mod time;

/// Answers from the examples with these limits.
fn limited(limits: Limits) -> Server {
    Setup { limits, ..Setup::examples() }.start()
}

/// The examples, with credential specs from elsewhere.
fn with(resolver: Arc<dyn Resolver>) -> Setup {
    let examples = Setup::examples();
    Setup { sources: LookUpSources { resolver, ..examples.sources }, ..examples }
}

/// A pod's CREATE review with this spec.
fn create(spec: &Value) -> Value {
    created("default", &json!({"metadata": {"name": "p"}, "spec": spec}))
}

fn refused(status: u16, line: &str) -> Answer {
    Answer { status: StatusCode::from_u16(status).unwrap(), body: format!("{line}\n").into_bytes(), retry_after: None }
}

/// A resolver whose every credential spec holds one text of 60 KiB.
struct Large(Arc<Contents>);

impl Large {
    fn new() -> Arc<Self> {
        let credspec = json!({"k": "x".repeat(60 << 10)});
        Arc::new(Self(Arc::new(Contents::of(credspec.as_object().unwrap()))))
    }
}

impl Resolver for Large {
    fn resolve<'a>(&'a self, _: &'a SpecName, _: Freshness, _: Instant) -> BoxFuture<'a, Resolved> {
        let fact = SpecFact::Contents(Arc::clone(&self.0));
        Box::pin(async { Resolved { fact, source: Source::Files } })
    }
}

/// A resolver that answers only when it is let: that there is no such credential spec.
struct Gated {
    entered: Semaphore,
    gate: Semaphore,
}

const MISSING: &str = "cred spec s does not exist";
const TOO_LATE: &str = "unable to retrieve the contents of cred spec s: too late";

impl Gated {
    fn new() -> Arc<Self> {
        Arc::new(Self { entered: Semaphore::new(0), gate: Semaphore::new(0) })
    }

    /// The resolver, and a server that asks it.
    fn start(limits: Limits) -> (Arc<Self>, Arc<Server>) {
        let gated = Self::new();
        let server = Setup { limits, ..with(gated.clone()) }.start();
        (gated, Arc::new(server))
    }

    /// Waits until it is asked once more.
    async fn entered(&self) {
        self.entered.acquire().await.unwrap().forget();
    }

    /// Posts reviews one after the other; each waits for this resolver.
    async fn hold(&self, server: &Arc<Server>, reviews: usize, body: &[u8]) -> JoinSet<Answer> {
        let mut held = JoinSet::new();
        for _ in 0..reviews {
            let (server, body) = (Arc::clone(server), body.to_vec());
            held.spawn(async move { server.post("/mutate?timeout=30s", body).await });
            tokio::select! {
                () = self.entered() => {}
                Some(answer) = held.join_next() => panic!("one does not wait: {answer:?}"),
            }
        }
        held
    }

    /// Answers all that wait.
    async fn answer(&self, held: JoinSet<Answer>) {
        self.gate.add_permits(held.len());
        for answer in held.join_all().await {
            assert_eq!(answer.status, StatusCode::OK);
        }
    }
}

impl Resolver for Gated {
    fn resolve<'a>(&'a self, _: &'a SpecName, _: Freshness, deadline: Instant) -> BoxFuture<'a, Resolved> {
        Box::pin(async move {
            self.entered.add_permits(1);
            let fact = match timeout_at(deadline, self.gate.acquire()).await {
                Ok(permit) => {
                    permit.unwrap().forget();
                    SpecFact::Missing
                }
                Err(_) => SpecFact::Failed(Failure { kind: FailureKind::TimedOut, ..Failure::new("too late") }),
            };
            Resolved { fact, source: Source::Api }
        })
    }
}

/// A review of a pod that names `s`, with white space behind it.
fn one_pod(padding: usize) -> Vec<u8> {
    let mut body = create(&json!({"securityContext": slot(Some("s"), None)})).to_string().into_bytes();
    body.resize(body.len() + padding, b' ');
    body
}

/// A review of a pod whose containers name credential specs, by number.
fn containers(count: usize, spec: impl Fn(usize) -> String) -> Vec<u8> {
    let container = |n| json!({"name": format!("c{n}"), "securityContext": slot(Some(&spec(n)), None)});
    create(&json!({"containers": (0..count).map(container).collect::<Vec<_>>()})).to_string().into_bytes()
}

/// The same where all of them name `s`.
fn same_containers(count: usize) -> Vec<u8> {
    containers(count, |_| "s".to_owned())
}

/// A review that is allowed without a look-up.
fn plain_review() -> Vec<u8> {
    post("/mutate", create(&json!({})).to_string().as_bytes())
}

/// Sends these bytes, and reads until the server closes the connection.
async fn answers_to(stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin), bytes: impl AsRef<[u8]>) -> String {
    stream.write_all(bytes.as_ref()).await.unwrap();
    let mut answer = Vec::new();
    // The server may close without a TLS goodbye once it has answered.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

/// The head of one answer, and what is in its body; `None` where the connection is closed.
async fn read_answer(stream: &mut (impl AsyncReadExt + Unpin)) -> Option<(String, Value)> {
    https::read_answer(stream).await.ok().map(|(head, answer)| (head, answer.json()))
}

/// Whether a server allows a review on this connection.
async fn allows(stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin)) -> bool {
    if stream.write_all(&plain_review()).await.is_err() {
        return false;
    }
    read_answer(stream).await.is_some_and(|(_, answer)| answer["response"] == json!({"uid": "u-1", "allowed": true}))
}
