//! The baseline that the benchmark measures the webhook against: the same listener, TLS, axum and JSON parser, and no decision.
//!
//! It reads a review's uid and allows. What the webhook costs above this is what deciding and logging cost. With a JSON Patch
//! it answers every `/mutate` with that. Run by `just bench`, and by `just bench-cluster`, which holds it too; never part of a
//! normal build.

use std::{
    env, fs,
    net::SocketAddr,
    time::{Duration, SystemTime},
};

use anyhow::Context as _;
use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use gmsa_edge::{
    server::{Handshakes, Listener, Serving},
    tls::{self, Served, files::Files, issue::Ca},
};
use gmsa_webhook::{
    limits::{DEFAULT_MEMORY, IDLE_TIMEOUT, Limits, MAX_BODY},
    metrics::Metrics,
};
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// The lifetime of a certificate for one run.
const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Deserialize)]
struct Review<'a> {
    #[serde(borrow)]
    request: Request<'a>,
}

#[derive(Deserialize)]
struct Request<'a> {
    uid: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Approval<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Approval<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<Patch>,
}

/// A patch as answers carry it: in base64.
type Patch = &'static str;

async fn mutate(State(patch): State<Option<Patch>>, body: Bytes) -> Response {
    allow(&body, patch)
}

async fn validate(body: Bytes) -> Response {
    allow(&body, None)
}

fn allow(body: &[u8], patch: Option<Patch>) -> Response {
    match serde_json::from_slice(body) {
        Ok(Review { request: Request { uid } }) => Json(Answer {
            api_version: "admission.k8s.io/v1",
            kind: "AdmissionReview",
            response: Approval { uid, allowed: true, patch_type: patch.map(|_| "JSONPatch"), patch },
        })
        .into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

/// The patch of a file. It is read once, and kept for as long as the process runs.
fn patch(file: &str) -> anyhow::Result<Patch> {
    let text = fs::read(file).with_context(|| format!("cannot read {file}"))?;
    Ok(BASE64_STANDARD.encode(text).leak())
}

/// Takes the address to listen on; the files of a certificate, unless it is to create one; and the file of a JSON Patch, if it
/// is to patch. Serves until it is killed.
#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (address, files) = arguments.split_first().context("usage: baseline ADDR:PORT [CERTIFICATE KEY [PATCH]]")?;
    let address: SocketAddr = address.parse().with_context(|| format!("not an address and a port: {address}"))?;
    let now = SystemTime::now();
    let pair = if let [cert, key, ..] = files {
        Files { cert: cert.into(), key: key.into() }.load(now)?
    } else {
        let ca = Ca::generate("baseline CA", now, LIFETIME)?;
        ca.issue("baseline", &[address.ip().to_string()], now, LIFETIME)?.1
    };
    let served = Served::new(Metrics::new().0);
    served.publish(pair);
    let tls = Handshakes::new(tls::server_config(&served, None)?, Handle::current());
    let limits = Limits::of_memory(DEFAULT_MEMORY);
    let serving = Serving {
        tls: Some(tls),
        keeps_decided: true,
        ..Serving::new(limits.connections, limits.waiting, IDLE_TIMEOUT)
    };
    let listener = Listener::bind(address, serving)?;
    let router = Router::new()
        .route("/mutate", post(mutate))
        .route("/validate", post(validate))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(files.get(2).map(|file| patch(file)).transpose()?);
    listener.serve(router, CancellationToken::new(), Duration::ZERO).await;
    Ok(())
}
