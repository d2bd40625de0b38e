//! What the tests and benchmarks share. It is a dev-dependency, never part of what is released.
//!
//! Everything here ends with a panic where its surroundings fail, as a test does.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::needless_pass_by_value,
    clippy::new_without_default,
    clippy::struct_field_names,
    reason = "a test ends where its surroundings fail, and reads best with values and Kubernetes' own words"
)]

use std::process::{Command, Output};

#[cfg(feature = "api")]
mod api;
pub mod cgroup;
#[cfg(feature = "control-plane")]
pub mod control_plane;
#[cfg(feature = "directory")]
pub mod directory;
#[cfg(feature = "domain")]
pub mod domain;
#[cfg(feature = "api")]
pub mod exec;
#[cfg(feature = "control-plane")]
pub mod flood;
pub mod golden;
pub mod helm;
pub mod hostile;
#[cfg(feature = "control-plane")]
pub mod https;
#[cfg(feature = "kdc")]
pub mod kdc;
pub mod memory;
#[cfg(feature = "node")]
pub mod node;
pub mod oracle;
pub mod page;
pub mod reviews;
pub mod rules;
#[cfg(feature = "control-plane")]
pub mod scripted;
mod slow_json;

#[cfg(feature = "api")]
pub use api::*;

/// The folder of the whole project.
pub fn repository() -> &'static std::path::Path {
    std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The exit code of a program, what it printed and what it complained of.
pub fn run(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code().unwrap(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// A kubeconfig for a cluster, as somebody.
#[cfg(feature = "api")]
fn kubeconfig(cluster: serde_json::Value, user: serde_json::Value) -> serde_json::Value {
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "loopback", "cluster": cluster}],
        "users": [{"name": "user", "user": user}],
        "contexts": [{"name": "context", "context": {"cluster": "loopback", "user": "user"}}],
        "current-context": "context",
    })
}
