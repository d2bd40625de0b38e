//! The server over real TLS: paths, bad input, limits, time and the drain.

use std::{path::Path, sync::Arc};

use bytes::Bytes;
use futures::future::BoxFuture;
use gmsa_cluster::resolver::{Freshness, Resolved, Resolver};
use gmsa_core::{
    admission::{Failure, FailureKind, Source, SpecFact},
    credspec::{Contents, SpecName},
};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::Semaphore,
    time::{Instant, timeout_at},
};

use crate::https::{Answer, Setup};

mod admin;
mod drain;
mod limits;
mod pods;
mod protocol;
mod requests;
mod time;

fn examples() -> Setup {
    Setup::standalone(Path::new("examples"))
}

/// A pod's CREATE review with this spec.
fn create(spec: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": "default",
            "operation": "CREATE",
            "object": {"metadata": {"name": "p"}, "spec": spec},
            "oldObject": null
        }
    })
}

fn naming(name: &str) -> Value {
    json!({"gmsaCredentialSpecName": name})
}

fn windows(options: &Value) -> Value {
    json!({"windowsOptions": options})
}

/// The answer that denies `u-1`.
fn denied(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {
            "uid": "u-1",
            "allowed": false,
            "status": {"status": "Failure", "message": message, "reason": reason, "code": code}
        }
    })
}

fn refused(status: u16, line: &str) -> Answer {
    Answer { status: StatusCode::from_u16(status).unwrap(), body: Bytes::from(format!("{line}\n")) }
}

/// A resolver whose every credential spec holds one text.
struct Holds(Arc<Contents>);

impl Holds {
    fn text_of(bytes: usize) -> Arc<Self> {
        let credspec = json!({"k": "x".repeat(bytes)});
        Arc::new(Self(Arc::new(Contents::of(credspec.as_object().unwrap()))))
    }
}

impl Resolver for Holds {
    fn resolve<'a>(&'a self, _: &'a SpecName, _: Freshness, _: Instant) -> BoxFuture<'a, Resolved> {
        let fact = SpecFact::Contents(Arc::clone(&self.0));
        Box::pin(async { Resolved { fact, source: Source::Files } })
    }
}

fn decode(base64: &Value) -> Vec<u8> {
    use base64::{Engine, prelude::BASE64_STANDARD};
    BASE64_STANDARD.decode(base64.as_str().unwrap()).unwrap()
}

/// The head of a review's request with a body of this many bytes.
fn post_head(length: usize) -> String {
    format!("POST /mutate HTTP/1.1\r\nhost: l\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n")
}

async fn read_to_close(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut answer = Vec::new();
    // The server may close without a TLS goodbye once it has answered.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

/// A resolver that answers only when it is let.
struct Gated {
    entered: Semaphore,
    gate: Semaphore,
}

impl Gated {
    fn new() -> Arc<Self> {
        Arc::new(Self { entered: Semaphore::new(0), gate: Semaphore::new(0) })
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

fn one_pod() -> Vec<u8> {
    serde_json::to_vec(&create(&json!({"securityContext": windows(&naming("s"))}))).unwrap()
}

/// A review of a pod whose containers name credential specs, by number.
fn containers(count: usize, spec: impl Fn(usize) -> String) -> Vec<u8> {
    let container = |n| json!({"name": format!("c{n}"), "securityContext": windows(&naming(&spec(n)))});
    serde_json::to_vec(&create(&json!({"containers": (0..count).map(container).collect::<Vec<_>>()}))).unwrap()
}

/// The same where all of them name `s`.
fn same_containers(count: usize) -> Vec<u8> {
    containers(count, |_| "s".to_owned())
}

/// A review that is allowed without a look-up, as a client writes it, with its head.
fn plain_review() -> Vec<u8> {
    let body = serde_json::to_vec(&create(&json!({}))).unwrap();
    [post_head(body.len()).into_bytes(), body].concat()
}

/// What a server answers on this connection to a review; `None` where the connection is closed.
async fn reviewed(stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin)) -> Option<Value> {
    stream.write_all(&plain_review()).await.ok()?;
    read_answer(stream).await
}

/// The body of one answer; `None` where the connection is closed.
async fn read_answer(stream: &mut (impl AsyncReadExt + Unpin)) -> Option<Value> {
    let head = read_head(stream).await;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?.parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    serde_json::from_slice(&body).ok()
}

fn allowed() -> Value {
    let response = json!({"uid": "u-1", "allowed": true});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

/// The head of an answer; empty where the connection is closed.
async fn read_head(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return String::new() };
        head.push(byte);
    }
    String::from_utf8(head).unwrap()
}
