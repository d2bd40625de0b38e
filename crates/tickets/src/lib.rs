//! Kerberos tickets and keytabs of Group Managed Service Accounts for Linux pods. This page is the map of the modules.
//!
//! ```text
//!  agent (sidecar) ──TLS──► broker: token ► pod ► use ► credential spec ► tickets ──► controllers (LDAPS, KDC)
//! ```
//!
//! | module | what it decides or holds |
//! |---|---|
//! | [`api`] | the interface between agent and broker: request, answer, refusals |
//! | [`agent`] | how a pod gets tickets and keeps them current |
//! | [`broker`] | whether a pod gets tickets or a keytab, and those |
//! | [`domains`] | the domains that the broker is configured for |
//! | [`limits`] | what the broker takes at once, and for how long |
//! | [`metrics`] | what the broker counts |
//! | [`serve`] | how the broker starts: its flags, its ports, its tasks |
//!
//! Invariants: the password of an account never leaves the broker, which keeps keys instead; an agent holds no secret of the domain but
//! tickets, and a keytab where the pod may export it.

use gmsa_edge::Program;

pub mod agent;
pub mod api;
pub mod broker;
pub mod domains;
pub mod limits;
pub mod metrics;
pub mod serve;

/// This program.
pub const PROGRAM: Program = Program {
    name: env!("CARGO_PKG_NAME"),
    version: env!("CARGO_PKG_VERSION"),
    noun: "broker",
    spans: "gmsa_tickets::trace",
};
