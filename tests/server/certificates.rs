//! Certificates and handshakes over real TLS: files that change, a Secret that all replicas share, and hostile clients. The
//! tests assert what a client sees.

mod client;
mod cluster;
mod files;
mod handshakes;
mod self_managed;

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use gmsa_webhook::{
    metrics::{self, Metrics},
    tls::{
        self, Served,
        client_auth::ClientAuth,
        issue::{Ca, Issued},
    },
};
use prometheus_client::registry::Registry;

use crate::https::{Server, Setup};

/// The name by which an API server would call.
const NAME: &str = "gmsa-webhook.gmsa.svc";

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A webhook that serves what `served` holds, with the examples' credential specs.
fn webhook(served: &Served, clients: Option<Arc<ClientAuth>>) -> Server {
    let tls = tls::server_config(served, clients.clone()).unwrap();
    Setup { clients, ..Setup::standalone(Path::new("examples")) }.serve(tls, String::new())
}

/// Nothing is served yet; and what a scrape reads.
fn nothing_served() -> (Served, Registry) {
    let (metrics, registry) = Metrics::new("test");
    (Served::new(metrics), registry)
}

/// The value of a series, such as `certificate_refused`.
fn sample(registry: &Registry, series: &str) -> u64 {
    let series = format!("gmsa_webhook_{series} ");
    let shown = metrics::scrape(registry).unwrap();
    shown.lines().find_map(|line| line.strip_prefix(&series)).unwrap().parse().unwrap()
}

fn authority() -> Ca {
    Ca::generate("test CA", SystemTime::now(), 100 * DAY).unwrap()
}

fn leaf(ca: &Ca) -> Issued {
    ca.issue(&[NAME.to_owned()], SystemTime::now(), DAY).unwrap()
}

/// A review as the API server would post it.
fn review() -> bytes::Bytes {
    std::fs::read("examples/review-mutate.json").unwrap().into()
}
