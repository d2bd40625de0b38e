//! `kubectl gmsa` and a real Active Directory domain: the built program, its exact output, its exit code. `tests/directory.sh` makes the domain.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot run the program must fail"
)]

mod accounts;
mod broken;
mod connection;
mod domain;
mod follow;
mod forged;
mod printed;
mod specs;
mod tickets;
