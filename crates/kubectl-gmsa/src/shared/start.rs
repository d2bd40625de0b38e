//! What keeps a pod from running, from its node to its containers, as far as the first cause.

use gmsa_core::diagnostic::{Check, Severity};

use crate::shared::{
    pods::ClusterPod,
    rules::{self, Subject},
};

pub mod cause;
pub mod containers;
pub mod events;
pub mod placement;
pub mod scheduling;
pub mod workload;

use containers::Seen;
use events::Events;
use scheduling::Nodes;

/// Whether a check names a cause. What could not be checked is none.
pub fn is_cause(check: &Check) -> bool {
    check.result.as_ref().is_err_and(|found| found.severity == Severity::Error && *found.rule != rules::NOT_CHECKED)
}

/// The steps of a pod, from its node to its containers, as far as the first that fails.
pub fn steps(pod: &ClusterPod, subject: Subject<'_>, nodes: &Nodes, events: &Events) -> Vec<Check> {
    let seen = Seen { pod, subject, events };
    let mut checks = vec![scheduling::check(pod, subject, nodes, events)];
    for step in [Seen::sandbox, Seen::init_containers, Seen::containers_run] {
        if checks.iter().any(is_cause) {
            break;
        }
        checks.push(step(&seen));
    }
    checks
}
