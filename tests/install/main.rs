//! The chart and the script on a real control plane: what the API server accepts, whom it asks, what an upgrade leaves in place.
//!
//! The webhook itself does not run here, which is the point of most of it: a webhook that is down must block nothing but pods that
//! use GMSA. Needs `helm` and `kubectl` on the PATH, and the binaries of a control plane, or says in one line that they are not there.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

mod admission;
#[path = "../support/control_plane.rs"]
mod control_plane;
mod guard;
#[path = "../support/helm.rs"]
mod helm;
mod objects;
mod pods;
mod script;
mod upgrade;
