//! The GMSA admission webhook for Kubernetes: the server. This page is the map of its modules; the program, which reads the
//! settings, starts the parts and ends them, is in `bin/gmsa-webhook/`.
//!
//! The path of one review, from top to bottom:
//!
//! ```text
//!  kube-apiserver ──TLS──► gmsa_edge::server ► server::routes
//!                                   ▼
//!                          Review::parse                        (bounded)
//!                                   ▼
//!                          server::reviewer: Decision::begin    (asks one question at a time, in the order of the slots)
//!                                   ▼            ▲
//!                          cache, gmsa_edge::authorization_cache ► Fact    (under the review's deadline)
//!                                   ▼
//!                          Undecided::tell                      (synchronous, total, no I/O)
//!                                   │  where a denial rests on a cached fact, one more question: a live read
//!                                   ▼
//!                          Review::answer ► metrics, one log line ► server::routes ► bytes
//! ```
//!
//! `Review`, `Decision` and `Fact` are those of `gmsa_core::admission`. `serve --standalone` runs the same code, with facts from YAML files;
//! `kubectl gmsa check` makes the same decisions.
//!
//! | module | what it decides |
//! |---|---|
//! | [`config`] | what flags and environment mean |
//! | [`limits`] | how many connections and reviews, and how much memory, a replica takes, and for how long |
//! | [`server`] | which requests are reviews, for how long one may take, and its answer |
//! | [`cache`] | whether the contents of a credential spec come from memory, which a watch fills, or from a live read |
//! | [`sidecar_settings`] | what the sidecar of Linux pods needs: the broker's CAs, a cluster with native sidecars |
//! | [`metrics`] | which metrics there are, and which values their labels have |
//! | [`command`] | what the commands `certs`, `test` and `upgrade-crd` do |
//!
//! Connections, certificates, the admin port, logs, and the access reviews that are remembered are in `gmsa_edge`. The program alone connects
//! [`server`] with the modules that ask a cluster. The decision itself is in `gmsa_core`; the API client, the live reads and access
//! reviews, and what reads manifests are in `gmsa_cluster`.

use gmsa_edge::Program;

pub mod cache;
pub mod command;
pub mod config;
pub mod limits;
pub mod metrics;
pub mod server;
pub mod sidecar_settings;

/// This program.
pub const PROGRAM: Program = Program {
    name: env!("CARGO_PKG_NAME"),
    version: env!("CARGO_PKG_VERSION"),
    noun: "webhook",
    spans: "gmsa_webhook::trace",
};
