//! The decisions against their contract: golden cases, every combination of one slot, and properties of any pod.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

#[path = "../support/hostile.rs"]
mod hostile;
#[path = "../support/oracle.rs"]
mod oracle;
#[path = "../support/slow_json.rs"]
mod slow_json;

mod exhaustive;
mod golden;
mod properties;
mod world;
