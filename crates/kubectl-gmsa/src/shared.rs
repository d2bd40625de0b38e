//! What several commands need. Nothing here knows a command, and no command imports another.

pub mod args;
pub mod cluster_dns;
pub mod connection;
pub mod credspecs;
pub mod grant;
pub mod input;
pub mod installer;
pub mod output;
pub mod pods;
pub mod progress;
pub mod rbac;
pub mod webhook;

pub use output::{Outcome, print};
