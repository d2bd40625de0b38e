//! Certificates and handshakes over real TLS: files that change, a Secret that all replicas share, and hostile clients. The
//! tests assert what a client sees.

mod cluster;
mod files;
mod handshakes;
mod self_managed;

use gmsa_edge::{metrics, tls::Served};
use prometheus_client::registry::Registry;

use crate::{
    https::{Server, Setup},
    support::https::Client,
};

/// A webhook that serves what `served` holds, with the examples' credential specs.
fn webhook(served: &Served) -> Server {
    Setup::examples().serve(served, Client::trusting(""))
}

/// The value of a series, such as `certificate_refused`.
fn sample(registry: &Registry, series: &str) -> u64 {
    let series = format!("gmsa_webhook_{series} ");
    let shown = metrics::scrape(registry).unwrap();
    shown.lines().find_map(|line| line.strip_prefix(&series)).unwrap().parse().unwrap()
}
