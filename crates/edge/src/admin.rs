//! `/livez`, `/readyz` and `/metrics`, on a port of their own and in plain HTTP: probes need no certificate.
//!
//! Invariants: a readiness condition that was met once stays met, because a later fault must not take every replica
//! out of service together. Only the end of the process makes it unready, and a fault of this replica alone ([`Readiness::unless`]).

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
pub fn serving(files: usize) -> Serving {
    let (places, waiting) = fit(64, 1024, files);
    Serving::new(places, waiting, Duration::from_secs(1))
}

/// A condition that must hold before the process is ready.
#[derive(Clone, Debug)]
pub struct Condition(Arc<AtomicBool>);

impl Condition {
    /// Sets it for good.
    pub fn set(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The conditions of readiness.
#[derive(Clone, Debug)]
pub struct Readiness {
    /// Conditions that keep the process from being ready while they are true.
    obstacles: Vec<(&'static str, Arc<AtomicBool>)>,
    ending: CancellationToken,
}

impl Readiness {
    /// Ready once every condition holds, until `ending` is cancelled.
    pub fn new(ending: CancellationToken) -> Self {
        Self { obstacles: Vec::new(), ending }
    }

    /// Adds something to wait for; `what` is the line that `/readyz` shows until it holds.
    pub fn expect(&mut self, what: &'static str) -> Condition {
        let is_missing = Arc::new(AtomicBool::new(true));
        self.unless(what, Arc::clone(&is_missing));
        Condition(is_missing)
    }

    /// Adds a fault of this replica alone, which makes it unready while it lasts.
    pub fn unless(&mut self, what: &'static str, fault: Arc<AtomicBool>) {
        self.obstacles.push((what, fault));
    }

    /// Why the process is not ready: empty when it is.
    fn missing(&self) -> Vec<&'static str> {
        let ending = self.ending.is_cancelled().then_some("the process is ending");
        let last = self.obstacles.iter().filter(|(_, lasts)| lasts.load(Ordering::Acquire)).map(|(what, _)| *what);
        ending.into_iter().chain(last).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_this_replica_makes_it_unready_while_it_lasts() {
        let fault: Arc<AtomicBool> = Arc::default();
        let mut readiness = Readiness::new(CancellationToken::new());
        readiness.expect("nothing to serve yet").set();
        readiness.unless("its token is void", Arc::clone(&fault));
        for lasts in [false, true, false] {
            fault.store(lasts, Ordering::Release);
            assert_eq!(readiness.missing(), if lasts { vec!["its token is void"] } else { Vec::new() });
        }
    }
}
