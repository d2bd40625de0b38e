//! The GMSA admission webhook for Kubernetes: the server. This page is the map of its modules; the program, which reads the
//! settings, starts the parts and ends them, is in `bin/gmsa-webhook/`.
//!
//! The way of one review, from top to bottom:
//!
//! ```text
//!  kube-apiserver ──TLS──► server::listener ► server::connection ► server::routes
//!                                   ▼
//!                          Review::parse                        (bounded)
//!                                   ▼
//!                          server::reviewer: Decision::begin    (asks one question at a time, in the order of the slots)
//!                                   ▼            ▲
//!                          cache, authorization_cache ► Fact    (under the review's deadline)
//!                                   ▼
//!                          Undecided::tell                      (synchronous, total, no I/O)
//!                                   │  where a denial rests on a cached fact, one more question: a live read
//!                                   ▼
//!                          Review::answer ► metrics, one log line ► server::routes ► bytes
//! ```
//!
//! `Review`, `Decision` and `Fact` are those of `gmsa_core::admission`. `serve --standalone` takes the same way, with facts from YAML files;
//! `kubectl gmsa check` makes the same decisions.
//!
//! | module | what it decides |
//! |---|---|
//! | [`config`] | what flags and environment mean |
//! | [`limits`] | how many connections and reviews, and how much memory, a replica takes, and for how long |
//! | [`server`] | which connections and requests are served, for how long, and the answer to a review |
//! | [`cache`] | whether the contents of a credential spec come from memory, which a watch fills, or from a live read |
//! | [`authorization_cache`] | how long an allowed access review is remembered (10 s by default), and when one is made |
//! | `coalesce` | which equal questions become one call to the API server |
//! | [`object`] | which Secret and which webhook configurations are read and written, each by its name |
//! | [`tls`] | which certificate is served, what is appended to a `caBundle`, which clients may connect |
//! | [`admin`] | what `/livez`, `/readyz` and `/metrics` answer |
//! | [`telemetry`] | which lines are logged, in which form, and which spans are exported |
//! | [`metrics`] | which metrics there are, and which values their labels have |
//! | [`command`] | what the commands `certs`, `test` and `upgrade-crd` do |
//!
//! No module but [`admin`], which is served by the same listener, uses [`server`]; the program alone connects it with the modules
//! that ask a cluster. The decision itself is in `gmsa_core`; the API client, the live reads and access reviews, and what reads
//! manifests are in `gmsa_cluster`.

pub mod admin;
pub mod authorization_cache;
pub mod cache;
mod coalesce;
pub mod command;
pub mod config;
mod duration;
pub mod limits;
pub mod metrics;
pub mod object;
pub mod server;
pub mod telemetry;
pub mod tls;
