//! The GMSA admission webhook for Kubernetes: the server. This page is the map of its modules.
//!
//! The way of one review, step by step:
//!
//! ```text
//!  kube-apiserver ──TLS──► server::listener ► server::routes ► admission::review (parse, bounded)
//!                                               │  gmsa_core::admission::Plan::new(.., &Review).needs()
//!                                               ▼
//!                          resolver + authorizer, all needs at once, under the review's deadline
//!                                               │  Facts
//!                                               ▼
//!                          Plan::decide(&Facts) -> Decision   (synchronous, total, no I/O)
//!                                               ▼
//!                          admission::answer ► metrics, one log line ► bytes
//! ```
//!
//! `serve --standalone` and `kubectl gmsa check` take the same way; they read YAML files instead of asking a cluster.
//!
//! | module | what it decides or holds |
//! |---|---|
//! | [`config`] | flags and environment, and the settings and limits that follow from them |
//! | [`server`] | which connections and reviews are served: limits, time-outs, routes, from a body to its answer |
//! | [`resolver`] | where the contents of a credential spec come from: the cache with its watch, or a live read |
//! | [`authorizer`] | whether a service account may use a credential spec: an access review, or an approval that is remembered (10 s by default) |
//! | `coalesce` | which equal questions in flight become one call |
//! | [`tls`] | which certificate is served, what is appended to a `caBundle`, which clients may connect |
//! | [`admin`] | `/livez`, `/readyz` and `/metrics`; what readiness depends on |
//! | [`shutdown`] | what happens between SIGTERM and the end of the process |
//! | [`telemetry`] | logs and traces, and which lines are left out |
//! | [`metrics`] | every metric with its labels |
//! | [`command`] | the commands `certs`, `test` and `upgrade-crd` |
//!
//! Dependencies point one way: [`server`] uses the modules below it in this table, none of them uses [`server`]. The decision
//! itself is in `gmsa_core`, and what the plugin shares with the server is in `gmsa_cluster`.

pub mod admin;
pub mod authorizer;
mod coalesce;
pub mod command;
pub mod config;
pub mod metrics;
pub mod resolver;
pub mod server;
pub mod shutdown;
pub mod telemetry;
pub mod tls;

pub use gmsa_cluster::{apiserver, manifests, standalone};
