//! Everything that tests the server without a cluster, in one binary: linking one takes longer than most of these tests.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

use gmsa_test_support::{self as support, reviews};

// Tests start in the order of their names. Those of certificates wait longest, so it is good that they are the first.
mod certificates;
mod cluster;
mod contract;
mod http;
mod https;
mod layout;
mod record;
mod serve;
