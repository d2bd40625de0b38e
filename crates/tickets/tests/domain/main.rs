//! The broker and the agent between a real control plane and a real Active Directory domain: tokens of kube-apiserver, tickets of Samba's KDC,
//! clients of MIT. `just e2e-tickets` runs this: `tests/directory.sh` makes the domain.
//!
//! Pods are objects without a kubelet: their tokens come from the same API that a kubelet asks. Pods that run, and both charts, are in `../node`.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a test ends where its surroundings fail"
)]

mod attacks;
mod clients;
mod controllers;
mod costs;
mod flood;
mod granting;
mod keytabs;
mod killed;
mod memory;
mod password_change;
mod referrals;
mod relay;
mod services;
mod world;
