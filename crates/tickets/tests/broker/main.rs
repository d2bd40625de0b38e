//! The broker against a simulated API server, a simulated directory and a simulated KDC, over real connections.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on must fail"
)]

mod attacks;
mod controllers;
mod dns;
mod faults;
mod keytabs;
mod logon;
mod namespaces;
mod password_roll;
mod program;
mod referrals;
mod started;
mod statuses;
mod world;
