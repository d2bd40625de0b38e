//! The worst pod of a workload (`worst_of` says by what), and the cause that it names for the workload.

use std::cmp::Reverse;

use gmsa_core::diagnostic::{Check, Diagnostic, Severity};

use super::{
    containers::Seen,
    created::created,
    events::Events,
    nodes::Nodes,
    workload::{WorkloadTree, is_active},
};
use crate::shared::{pods::ClusterPod, unread::is_cause};

/// A pod, and its steps.
pub type Walked<'w> = (&'w ClusterPod, Vec<Check>);

/// Whether the pods of a workload were created, and the worst of them. Failed pods count only if pods are missing.
pub fn walked<'w>(workload: &'w WorkloadTree, nodes: &Nodes, events: &Events) -> (Check, Option<Walked<'w>>) {
    let failed = |pod: &ClusterPod| pod.phase() == "Failed";
    let worst = worst_of(is_active, workload, nodes, events)
        .or_else(|| if workload.lacks() { worst_of(failed, workload, nodes, events) } else { None });
    let is_broken = worst.iter().flat_map(|(_, checks)| checks).any(is_cause);
    (created(workload, is_broken, nodes, events), worst)
}

/// The worst of the pods that count, of the newest template that has such pods: with the most severe finding, with the fewest steps, by name.
fn worst_of<'w>(
    counts: fn(&ClusterPod) -> bool,
    workload: &'w WorkloadTree,
    nodes: &Nodes,
    events: &Events,
) -> Option<Walked<'w>> {
    // Pods of older templates are being replaced.
    let maker = workload.makers.iter().rev().find(|maker| maker.pods.iter().any(counts))?;
    let walked = maker.pods.iter().filter(|pod| counts(pod)).map(|pod| {
        let mut checks = Seen { pod, target: workload.target(), nodes, events }.steps();
        if workload.keeps_old(pod) {
            checks.iter_mut().filter(|check| is_cause(check)).for_each(|check| replaced_by_hand(check, pod));
        }
        (pod, checks)
    });
    walked.min_by_key(|(pod, checks)| {
        (Reverse(checks.iter().filter_map(Check::severity).max()), checks.len(), pod.place().1.to_owned())
    })
}

/// Has the remedy replace a pod whose workload has another template by now, and waits for the deletion of the pod.
fn replaced_by_hand(check: &mut Check, pod: &ClusterPod) {
    if let (Err(found), Some(again)) = (&mut check.result, pod.created_again()) {
        found.fix = Some(format!("The template is another one by now, and the pod is older. {again}"));
    }
}

/// The problem of a workload; `None` if it has its pods and they run.
pub fn cause(workload: &WorkloadTree, nodes: &Nodes, events: &Events) -> Option<Diagnostic> {
    let (created, worst) = walked(workload, nodes, events);
    if is_cause(&created) {
        return created.result.err();
    }
    let (pod, checks) = worst?;
    let found = checks.into_iter().find(is_cause)?.result.err()?;
    let message = format!("pod {}: {}", pod.place().1, found.message);
    Some(Diagnostic { message, ..found })
}

/// The problem of a workload that must have pods: also that it is scaled to 0.
pub fn absence(workload: &WorkloadTree, nodes: &Nodes, events: &Events) -> Option<Diagnostic> {
    let scaled = || Some(walked(workload, nodes, events).0.result.err()?.with_severity(Severity::Error));
    cause(workload, nodes, events).or_else(scaled)
}
