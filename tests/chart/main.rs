//! The Helm chart and what is made from it: lint, rendered snapshots, refused values, generated files; the scripts and workflows beside it; and what its
//! dashboard and alerts ask the webhook for.
//!
//! Needs `helm` and `promtool` on the PATH, and says so where they are not there: `just chart` runs it, `cargo test` does not. `just generate` writes what
//! the tests expect; the difference is then what a review looks at.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

use gmsa_test_support::helm;

mod accounts;
mod arguments;
mod community;
mod crd_schema;
mod dependency;
mod files;
mod generated;
mod limits;
mod notes;
mod observed;
mod pages;
mod promql;
mod questions;
mod readme;
mod reference;
mod refused;
mod release;
mod rendered;
mod runner;
mod schema;
mod scripts;
mod snapshot;
mod tickets;
mod workflows;
