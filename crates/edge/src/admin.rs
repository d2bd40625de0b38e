//! `/livez`, `/readyz` and `/metrics`, on a port of their own and in plain HTTP: probes need no certificate.
//!
//! Invariants: a readiness condition that held once holds for good, because a later fault must not take every replica
//! out of service together. Only the end of the process makes it unready.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};

use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use crate::{limits::fit, metrics, server::Serving};

/// How the admin port is served: a few probes and a scraper, each with a connection of its own for each request, which it sends
/// at once. No client keeps a place for long: addresses that flood this port do not delay others. Each connection is one of `files`.
#[must_use]
pub fn serving(files: usize) -> Serving {
    let (places, waiting) = fit(64, 1024, files);
    Serving::new(places, waiting, Duration::from_secs(1))
}

/// A condition that must hold before the process is ready.
#[derive(Clone, Debug)]
pub struct Condition {
    what: &'static str,
    holds: Arc<AtomicBool>,
}

impl Condition {
    /// Sets it for good.
    pub fn set(&self) {
        self.holds.store(true, Ordering::Release);
    }
}

/// The conditions of readiness.
#[derive(Clone, Debug)]
pub struct Readiness {
    conditions: Vec<Condition>,
    ending: CancellationToken,
}

impl Readiness {
    /// Ready once every condition holds, until `ending` is cancelled.
    #[must_use]
    pub fn new(ending: CancellationToken) -> Self {
        Self { conditions: Vec::new(), ending }
    }

    /// Adds something to wait for; `what` is the line that `/readyz` shows until it holds.
    pub fn expect(&mut self, what: &'static str) -> Condition {
        let condition = Condition { what, holds: Arc::new(AtomicBool::new(false)) };
        self.conditions.push(condition.clone());
        condition
    }

    /// Why the process is not ready: empty when it is.
    fn missing(&self) -> Vec<&'static str> {
        let ending = self.ending.is_cancelled().then_some("the process is ending");
        let waiting = self
            .conditions
            .iter()
            .filter(|condition| !condition.holds.load(Ordering::Acquire))
            .map(|condition| condition.what);
        ending.into_iter().chain(waiting).collect()
    }
}

/// The routes of the admin port.
pub fn router(readiness: Readiness, registry: Registry) -> Router {
    Router::new()
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(ready).with_state(readiness))
        .route("/metrics", get(metrics).with_state(Arc::new(registry)))
}

async fn metrics(State(registry): State<Arc<Registry>>, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match metrics::negotiate(&registry, accept) {
        Ok((content_type, text)) => ([(header::CONTENT_TYPE, content_type)], text).into_response(),
        Err(error) => {
            (StatusCode::INTERNAL_SERVER_ERROR, format!("cannot print the metrics: {error}\n")).into_response()
        }
    }
}

async fn ready(State(readiness): State<Readiness>) -> Response {
    let missing = readiness.missing();
    if missing.is_empty() {
        "ok\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {}\n", missing.join("; "))).into_response()
    }
}
