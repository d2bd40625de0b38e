//! Whether the pods of a workload were created, and if not, why.

use gmsa_core::{
    admission::pod::Pod,
    diagnostic::{Check, Diagnostic, Severity},
};

use serde_json::value::to_raw_value;

use super::{
    containers::Seen,
    events::{Event, Events},
    nodes::Nodes,
    workload::{Idle, WorkloadTree},
};
use crate::shared::{
    pods::{ClusterPod, with_sidecar},
    rules::{self, Names},
};

pub const ADMISSION: &str = "admission";

/// The step: whether its pods were created, and if not, what the API server said.
pub fn created(workload: &WorkloadTree, is_broken: bool, nodes: &Nodes, events: &Events) -> Check {
    let ((wanted, idle), complaint) = (workload.wanted(), workload.complaint());
    if wanted == 0 && complaint.is_none() {
        return without_pods(workload, idle, nodes, events);
    }
    let count = format!("{} of {wanted} pods", workload.has());
    let mut why = complaint.map(|message| missing(workload, format!("{count}, and its controller reports: {message}")));
    if workload.lacks() {
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
        let no_event = if workload.object.is_paused() { "it is paused" } else { "no event says why" };
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
    let found = rules::found(rules::refusal(said), format!("{count}: {said}"), &names);
    match pod {
        Some(pod) => with_sidecar(pod, said, found),
        None => found,
    }
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
    let maker = workload.makers.last().filter(|maker| maker.lacks())?;
    let newest = |reason| events.newest(maker.uid(), |event| event.reason == reason);
    let pods = maker.pods.iter().filter_map(|pod| Some(pod.object.metadata.creation_timestamp.as_ref()?.0));
    let last = pods.chain(newest("SuccessfulCreate").and_then(|event| event.at)).max();
    // The condition means that the newest attempt failed.
    let is_now = |refusal: &&Event| maker.failure().is_some() || last.is_none_or(|last| Some(last) < refusal.at);
    let refusal = newest("FailedCreate").filter(is_now).map(|event| event.message.as_str());
    refusal.or_else(|| maker.failure().filter(|message| !message.is_empty()))
}
