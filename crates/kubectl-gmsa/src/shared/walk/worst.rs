//! Were the pods of a workload created, and if not, why? Of the pods that exist, `walked` picks the worst, whose cause stands for the workload.

use std::cmp::Reverse;

use gmsa_core::{
    admission::pod::Pod,
    diagnostic::{Check, Diagnostic, Severity},
};
use serde_json::value::to_raw_value;

use super::{
    containers::Seen,
    events::{Event, Events},
    nodes::Nodes,
    workload::{Idle, WorkloadTree, is_active},
};
use crate::shared::{
    pods::{ClusterPod, with_sidecar},
    rules::{self, Names},
    unread::is_cause,
};

pub const ADMISSION: &str = "admission";

/// A pod, and its steps.
pub type Walked<'w> = (&'w ClusterPod, Vec<Check>);

/// Whether the pods of a workload were created, and the worst pod of the newest template that has pods: the one with the most severe finding, then
/// with the fewest steps, then by name. Failed pods count only if pods are missing.
pub fn walked<'w>(workload: &'w WorkloadTree, nodes: &Nodes, events: &Events) -> (Check, Option<Walked<'w>>) {
    let counts: [fn(&ClusterPod) -> bool; 2] = [is_active, |pod| pod.phase() == "Failed"];
    let worst = counts.into_iter().take(1 + usize::from(workload.has_too_few_pods())).find_map(|counts| {
        // Pods of older templates are being replaced.
        let maker = workload.makers.iter().rev().find(|maker| maker.pods.iter().any(counts))?;
        let walked = maker.pods.iter().filter(|pod| counts(pod)).map(|pod| {
            let mut checks = Seen { pod, target: workload.target(), nodes, events }.steps();
            if let Some(again) = pod.created_again().filter(|_| workload.keeps_old(pod)) {
                // Its workload has another template by now, and waits for the deletion of the pod.
                let fix = format!("The template is another one by now, and the pod is older. {again}");
                let causes = checks.iter_mut().filter(|check| is_cause(check));
                causes.filter_map(|check| check.result.as_mut().err()).for_each(|found| found.fix = Some(fix.clone()));
            }
            (pod, checks)
        });
        walked.min_by_key(|(pod, checks)| {
            (Reverse(checks.iter().filter_map(Check::severity).max()), checks.len(), pod.place().1.to_owned())
        })
    });
    let is_broken = worst.iter().flat_map(|(_, checks)| checks).any(is_cause);
    (created(workload, is_broken, nodes, events), worst)
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

/// The step: whether its pods were created, and if not, what the API server said.
fn created(workload: &WorkloadTree, is_broken: bool, nodes: &Nodes, events: &Events) -> Check {
    let ((wanted, idle), complaint) = (workload.wanted(), workload.complaint());
    if wanted == 0 && complaint.is_none() {
        return without_pods(workload, idle, nodes, events);
    }
    let count = format!("{} of {wanted} pods", workload.has());
    let mut why = complaint.map(|message| missing(workload, format!("{count}, and its controller reports: {message}")));
    if workload.has_too_few_pods() {
        if let Some(message) = refused(workload, events) {
            return Check::found(ADMISSION, refusal(workload, &count, message));
        }
        // A StatefulSet creates the next pod of the same name only after this one is deleted.
        let ending = || {
            let mut seen = workload.pods().map(|pod| Seen { pod, target: workload.target(), nodes, events });
            seen.find_map(|seen| {
                let text = format!("{count}, and pod {} {}", seen.pod.place().1, seen.ending()?);
                Some(rules::found(&rules::POD_ENDING, text, &seen.names()))
            })
        };
        let no_event = if workload.object.is_paused() { "it is paused" } else { events.none() };
        why = why.or_else(ending).or_else(|| Some(missing(workload, format!("{count}, and {no_event}"))));
    }
    // StatefulSets and rolling updates wait for existing pods.
    match why.filter(|_| !is_broken) {
        Some(why) => Check::found(ADMISSION, why),
        None => Check::pass(ADMISSION, format!("{count} were created")),
    }
}

/// The finding that the API server refuses its pods with this message.
fn refusal(workload: &WorkloadTree, count: &str, message: &str) -> Diagnostic {
    let (said, pod) = (rules::said(message), workload.template.pod());
    let names = Names {
        namespace: Some(&workload.namespace),
        service_account: pod.map(Pod::service_account),
        pod,
        target: Some(workload.target()),
        ..Names::of_refusal(said)
    };
    with_sidecar(pod, said, rules::found(rules::refusal(said), format!("{count}: {said}"), &names))
}

/// The line for a workload that wants no pods: what it is refused, and what its template misses on the Windows nodes.
fn without_pods(workload: &WorkloadTree, idle: Idle, nodes: &Nodes, events: &Events) -> Check {
    let text = format!("no pod is wanted: {}", idle.as_str());
    let severity = match idle {
        Idle::Scaled | Idle::Suspended => Severity::Note,
        Idle::NoNode | Idle::NotSeen => Severity::Warning,
        Idle::NoJobYet | Idle::Complete => {
            let refused = events.newest(workload.object.uid(), |event| event.reason == "FailedCreate");
            return match refused.filter(|_| idle == Idle::NoJobYet) {
                Some(event) => Check::found(ADMISSION, refusal(workload, idle.as_str(), &event.message)),
                None => Check::pass(ADMISSION, text),
            };
        }
    };
    let pod = to_raw_value(&workload.template.json).ok().and_then(|json| ClusterPod::read(&json).ok());
    let pod = pod.filter(|_| matches!(idle, Idle::NoNode | Idle::NotSeen));
    let misfit = pod.and_then(|pod| Seen { pod: &pod, target: workload.target(), nodes, events }.misfit(&text));
    let found = misfit.unwrap_or_else(|| missing(workload, text)).with_severity(severity);
    let verb = format!("scale {}", workload.kind.as_str().to_ascii_lowercase());
    let again = workload.target().command(&verb, &workload.name, " --replicas=1").filter(|_| idle == Idle::Scaled);
    let fix = again.map(|command| format!("{command}.")).or_else(|| found.fix.clone());
    Check::found(ADMISSION, Diagnostic { fix, ..found })
}

fn missing(workload: &WorkloadTree, text: String) -> Diagnostic {
    rules::found(&rules::PODS_MISSING, text, &Names { target: Some(workload.target()), ..Names::default() })
}

/// The message with which pods are refused: from the newest event since the last created pod, or from a condition, which keeps the
/// first message.
fn refused<'w>(workload: &'w WorkloadTree, events: &'w Events) -> Option<&'w str> {
    let maker = workload.makers.last().filter(|maker| maker.has_too_few_pods())?;
    let newest = |reason| events.newest(maker.uid(), |event| event.reason == reason);
    let pods = maker.pods.iter().filter_map(|pod| Some(pod.object.metadata.creation_timestamp.as_ref()?.0));
    let last = pods.chain(newest("SuccessfulCreate").and_then(|event| event.at)).max();
    // The condition means that the newest attempt failed.
    let is_now = |refusal: &&Event| maker.failure().is_some() || last.is_none_or(|last| Some(last) < refusal.at);
    let refusal = newest("FailedCreate").filter(is_now).map(|event| event.message.as_str());
    refusal.or_else(|| maker.failure().filter(|message| !message.is_empty()))
}
