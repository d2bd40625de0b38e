//! The chart and the script on a real control plane: what the API server accepts, whom it asks, what an upgrade leaves in place.
//!
//! In most of it the webhook does not run, which is the point: a webhook that is down must block nothing but pods that use GMSA.
//!
//! `just e2e-install` runs this, never `cargo test`: it needs kube-apiserver, etcd and kube-controller-manager in the folder that
//! `KUBEBUILDER_ASSETS` names, and `helm`, `kubectl` and `pre-commit` on the PATH. Each test has a control plane of its own.
//!
//! `objects/` holds what tests apply, `refused/` what is refused and in which words, `outcomes/` what `doctor` finds (`UPDATE_SNAPSHOTS=1` writes these),
//! `commands` how each block of commands on the pages is tried.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

use gmsa_test_support::{control_plane, helm};

mod accounts;
mod admission;
mod before;
mod certificates;
mod cluster;
mod crd;
mod dependency;
mod desk;
mod doctor;
mod gitops;
mod guard;
mod installed;
mod nodes;
mod objects;
mod pages;
mod path;
mod pipelines;
mod platforms;
mod pods;
mod probed;
mod release;
mod remedies;
mod rights;
mod script;
mod sources;
mod static_policies;
mod system_namespaces;
mod trial;
mod upgrade;
mod warnings;
mod ways;
mod workloads;
