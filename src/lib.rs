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
//! | module | what it decides |
//! |---|---|
//! | [`config`] | what flags and environment mean, and how much memory, connections and reviews a replica takes |
//! | [`server`] | which connections and requests are served, for how long, and the answer to a review |
//! | [`resolver`] | whether the contents of a credential spec come from the watch cache or from a live read |
//! | [`authorizer`] | how long an approval is remembered (10 s by default), and when an access review is made |
//! | `coalesce` | which equal questions become one call to the API server |
//! | [`tls`] | which certificate is served, what is appended to a `caBundle`, which clients may connect |
//! | [`admin`] | what `/livez`, `/readyz` and `/metrics` answer |
//! | [`shutdown`] | what happens between SIGTERM and the end of the process |
//! | [`telemetry`] | which lines are logged, in which form, and which spans are exported |
//! | [`metrics`] | which metrics there are, and which values their labels have |
//! | [`command`] | what the commands `certs`, `test` and `upgrade-crd` do |
//!
//! Dependencies point one way: [`server`] uses the modules below it in this table, none of them uses [`server`]. The decision
//! itself is in `gmsa_core`; the API client, the live reads and access reviews, and what reads manifests are in `gmsa_cluster`.

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
