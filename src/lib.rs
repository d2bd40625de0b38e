//! The GMSA admission webhook for Kubernetes: the map of the house.
//!
//! One review's way through it, a straight line with no way back:
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
//! `serve --standalone` and `kubectl gmsa check` walk the same line; only [`resolver`] and [`authorizer`] then read YAML
//! files instead of asking a cluster.

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
