//! The steps of a pod, the worst pod of a workload (`worst_of` says by what), and the cause that it names for the workload.

use std::cmp::Reverse;

use gmsa_core::diagnostic::{Check, Diagnostic, Severity};

use super::{
    containers::{CONTAINERS, Seen},
    created::{created, without_pods},
    events::Events,
    scheduling::{self, Nodes},
    workload::{Idle, WorkloadTree, is_active},
};
use crate::shared::{
    pods::ClusterPod,
    rules::{self, FixTarget},
    unread::is_cause,
};

/// A pod, and its steps.
pub type Walked<'w> = (&'w ClusterPod, Vec<Check>);

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

/// The worst pod of a workload. Failed pods count only if the workload has given up, or wants pods and has no others.
pub fn worst<'w>(workload: &'w WorkloadTree, nodes: &Nodes, events: &Events) -> Option<Walked<'w>> {
    let active = || worst_of(is_active, workload, nodes, events);
    let failed = || worst_of(|pod| pod.phase() == "Failed", workload, nodes, events);
    if workload.given_up().is_some() {
        return failed().or_else(active);
    }
    active().or_else(|| if workload.wanted().0 > 0 { failed() } else { None })
}

/// The worst of the pods that count: with the most severe finding, of the newest template, with the fewest steps, by name.
fn worst_of<'w>(
    counts: fn(&ClusterPod) -> bool,
    workload: &'w WorkloadTree,
    nodes: &Nodes,
    events: &Events,
) -> Option<Walked<'w>> {
    // Pods of older templates are being replaced.
    let has_current = workload.current().iter().flat_map(|maker| &maker.pods).any(counts);
    let makers = if has_current { workload.current() } else { &workload.makers };
    let newest_first = makers.iter().rev().enumerate();
    let pods = newest_first.flat_map(|(age, maker)| maker.pods.iter().map(move |pod| (age, pod)));
    let ranked = pods.filter(|(_, pod)| counts(pod)).map(|(age, pod)| {
        let mut checks = steps(pod, workload.target(), nodes, events);
        if workload.keeps_old(pod) {
            checks.iter_mut().filter(|check| is_cause(check)).for_each(|check| replaced_by_hand(check, pod));
        }
        let severity = checks.iter().filter_map(Check::severity).max();
        let (_, name) = pod.place();
        ((Reverse(severity), age, checks.len(), name), (pod, checks))
    });
    ranked.min_by(|(rank, _), (other, _)| rank.cmp(other)).map(|(_, walked)| walked)
}

/// Has the remedy replace a pod whose workload has another template by now, and waits for the deletion of the pod.
fn replaced_by_hand(check: &mut Check, pod: &ClusterPod) {
    if let (Err(found), Some(again)) = (&mut check.result, pod.created_again()) {
        found.fix = Some(format!("The template is another one by now, and the pod is older. {again}"));
    }
}

/// The line about failed pods of a workload that has all its pods.
pub fn leftovers(workload: &WorkloadTree, nodes: &Nodes, events: &Events) -> Option<Check> {
    // A Job counts its failed pods; StatefulSets and DaemonSets delete theirs.
    let mut failed =
        workload.pods().filter(|pod| pod.phase() == "Failed" && pod.object.metadata.deletion_timestamp.is_none());
    if workload.given_up().is_some() || workload.wanted().0 == 0 || workload.kind.runs_to_completion() {
        return None;
    }
    let pod = failed.next()?;
    let last = steps(pod, workload.target(), nodes, events).pop()?;
    let found = last.result.err()?;
    let more = failed.count();
    let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
    let message = format!("pod {}: {}{more}", pod.place().1, found.message);
    Some(Check::found(CONTAINERS, Diagnostic { message, ..found }.with_severity(Severity::Warning)))
}

/// Whether the worst pod has a cause.
pub fn is_broken(worst: Option<&Walked<'_>>) -> bool {
    worst.is_some_and(|(_, checks)| checks.iter().any(is_cause))
}

/// The problem of a workload that must have pods: also that it is scaled to 0.
pub fn absence(workload: &WorkloadTree, nodes: &Nodes, events: &Events) -> Option<Diagnostic> {
    let scaled = || match workload.wanted() {
        (0, idle @ Idle::Scaled) => without_pods(workload, idle).result.err(),
        _ => None,
    };
    cause(workload, nodes, events).or_else(|| scaled().map(|found| found.with_severity(Severity::Error)))
}

/// The problem of a workload; `None` if it has its pods and they run.
pub fn cause(workload: &WorkloadTree, nodes: &Nodes, events: &Events) -> Option<Diagnostic> {
    let worst = worst(workload, nodes, events);
    let created = created(workload, is_broken(worst.as_ref()), nodes, events);
    if is_cause(&created) {
        return created.result.err();
    }
    let of_pod = worst.and_then(|(pod, checks)| {
        let is_warning = |check: &&Check| check.severity() == Some(Severity::Warning);
        let found = checks.iter().find(|check| is_cause(check)).or_else(|| checks.iter().find(is_warning))?;
        let found = found.result.clone().err().filter(|found| *found.rule != rules::NOT_CHECKED)?;
        let message = format!("pod {}: {}", pod.place().1, found.message);
        Some(Diagnostic { message, ..found })
    });
    of_pod.or_else(|| leftovers(workload, nodes, events)?.result.err())
}
