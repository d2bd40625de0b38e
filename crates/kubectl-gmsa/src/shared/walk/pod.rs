//! The steps of a pod, from its node to its containers, up to the first failure.

use gmsa_core::diagnostic::Check;

use super::{
    containers::Seen,
    events::Events,
    scheduling::{self, Nodes},
};
use crate::shared::{
    pods::ClusterPod,
    rules::{self, FixTarget},
    unread::is_cause,
};

/// The steps of a pod.
pub fn steps(pod: &ClusterPod, target: FixTarget<'_>, nodes: &Nodes, events: &Events) -> Vec<Check> {
    let seen = Seen { pod, target, events };
    let mut checks = vec![scheduling::check(pod, target, nodes, events)];
    let is_waiting = pod.node_name().is_none() && checks.iter().any(|check| check.result.is_err());
    if is_waiting || checks.iter().any(is_cause) {
        return checks;
    }
    if let Some(ending) = seen.ending() {
        checks.push(ending);
        return checks;
    }
    for step in [Seen::sandbox, Seen::init_containers, Seen::containers_run] {
        // A pod that has not started has no later steps.
        let has_not_begun =
            |check: &Check| check.result.as_ref().is_err_and(|found| *found.rule == rules::POD_STARTING);
        if checks.iter().any(|check| is_cause(check) || has_not_begun(check)) {
            break;
        }
        checks.push(step(&seen));
    }
    checks
}
