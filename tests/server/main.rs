//! Everything that tests the server without a cluster, in one binary: linking one takes longer than most of these tests.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

mod cluster;
mod contract;
mod house;
mod http;
mod https;
mod serve;
#[path = "../support/mod.rs"]
mod support;
mod tls;
