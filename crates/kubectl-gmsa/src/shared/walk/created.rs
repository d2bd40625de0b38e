//! Whether the pods of a workload were created, and if not, why.

use gmsa_core::{
    admission::pod::Pod,
    diagnostic::{Check, Diagnostic, Severity},
};

use serde_json::value::to_raw_value;

use super::{
    containers::Seen,
    events::Events,
    scheduling::{Nodes, misfit},
    workload::{Idle, Maker, WorkloadTree},
};
use crate::shared::{
    pods::{ClusterPod, SIDECAR_RESOURCES},
    rules::{self, Names},
};

pub const ADMISSION: &str = "admission";

/// The step: whether its pods were created, and if not, what the API server said.
pub fn created(workload: &WorkloadTree, is_broken: bool, nodes: &Nodes, events: &Events) -> Check {
    let (wanted, idle) = workload.wanted();
    if wanted == 0 && workload.given_up().is_none() {
        // What a CronJob is refused, its own event says.
        let refused = events.newest(workload.object.uid(), |event| event.reason == "FailedCreate");
        return match refused.filter(|_| idle == Idle::NoJobYet) {
            Some(event) => Check::found(ADMISSION, refusal(workload, idle.as_str(), &event.message)),
            None => match without_nodes(workload, nodes).filter(|_| matches!(idle, Idle::NoNode | Idle::NotSeen)) {
                Some(found) => Check::found(ADMISSION, found),
                None => without_pods(workload, idle),
            },
        };
    }
    let (count, is_paused) = (format!("{} of {wanted} pods", workload.has()), workload.object.is_paused());
    let all_created = format!("{count} were created");
    let result = if let Some(why) = workload.given_up() {
        let text = format!("it has failed: {why}");
        if is_broken { Ok(text) } else { Err(missing(workload, text)) }
    } else if !workload.lacks() {
        match workload.object.stuck() {
            Some(why) if !is_broken => {
                Err(missing(workload, format!("{count}, and its rollout does not go on: {why}")))
            }
            _ if is_paused => Err(paused(workload, &count).with_severity(Severity::Note)),
            _ => Ok(all_created),
        }
    } else if let Some(message) = refused(workload, events) {
        Err(refusal(workload, &count, message))
    } else {
        let ended = workload.pods().find(|pod| pod.object.metadata.deletion_timestamp.is_some());
        match ended {
            // StatefulSets and rolling updates wait for existing pods.
            _ if is_broken && is_paused => Err(paused(workload, &count).with_severity(Severity::Warning)),
            _ if is_broken => Ok(all_created),
            _ if is_paused => Err(paused(workload, &count)),
            // A StatefulSet creates the next pod of the same name only after this one is deleted.
            Some(pod) => Err(ending(workload, pod, &count, events)),
            None => Err(missing(workload, format!("{count}, and no event says why"))),
        }
    };
    Check { about: ADMISSION, result }
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
    let gets_sidecar = pod.is_some_and(|pod| pod.tickets().is_some()) && *found.rule == rules::POD_REFUSED;
    let is_about = |words: &[&str]| gets_sidecar && words.iter().any(|word| said.contains(word));
    if is_about(&["violates PodSecurity"]) {
        let fix = "Change the fields that the message names. The sidecar for tickets meets the level `restricted`.";
        found.with_fix(fix)
    } else if is_about(&["exceeded quota", " usage per ", " limit to request ratio per "]) {
        let fix = format!("{} {SIDECAR_RESOURCES}", found.remedy());
        found.with_fix(fix)
    } else {
        found
    }
}

/// The finding for a pod whose deletion does not finish.
fn ending(workload: &WorkloadTree, pod: &ClusterPod, count: &str, events: &Events) -> Diagnostic {
    let seen = Seen { pod, target: workload.target(), events };
    let (text, fix) = seen.why_ending();
    missing(workload, format!("{count}, and pod {} {text}", pod.place().1)).fixed(fix)
}

/// The finding for a DaemonSet that wants no pods: what its template misses on the Windows nodes.
fn without_nodes(workload: &WorkloadTree, nodes: &Nodes) -> Option<Diagnostic> {
    let text = format!("no pod is wanted: {}", Idle::NoNode.as_str());
    let json = to_raw_value(&workload.template.json).ok()?;
    let found = misfit(&ClusterPod::read(&json).ok()?, workload.target(), nodes, &text);
    found.map(|found| found.with_severity(Severity::Warning))
}

/// The line for a workload that wants no pods, with the remedy.
pub(super) fn without_pods(workload: &WorkloadTree, idle: Idle) -> Check {
    let WorkloadTree { kind, name, .. } = workload;
    let text = format!("no pod is wanted: {}", idle.as_str());
    let severity = match idle {
        Idle::Scaled | Idle::Suspended => Severity::Note,
        Idle::NoNode | Idle::NotSeen => Severity::Warning,
        Idle::NoJobYet | Idle::Complete | Idle::NothingLeft => return Check::pass(ADMISSION, text),
    };
    let found = missing(workload, text).with_severity(severity);
    let verb = format!("scale {}", kind.as_str().to_ascii_lowercase());
    let again = workload.target().command(&verb, name, " --replicas=1").filter(|_| idle == Idle::Scaled);
    Check::found(
        ADMISSION,
        match again {
            Some(command) => found.with_fix(format!("{command}.")),
            None => found,
        },
    )
}

/// The finding for a paused Deployment, whose controller does not roll out changes.
fn paused(workload: &WorkloadTree, count: &str) -> Diagnostic {
    missing(workload, format!("{count}, and it is paused: its controller rolls out no change"))
}

fn missing(workload: &WorkloadTree, text: String) -> Diagnostic {
    rules::found(&rules::PODS_MISSING, text, &Names { target: Some(workload.target()), ..Names::default() })
}

/// The message with which pods are refused: from the newest event since the last created pod, or from a condition, which keeps the
/// first message.
fn refused<'w>(workload: &'w WorkloadTree, events: &'w Events) -> Option<&'w str> {
    let lacking = || workload.current().iter().filter(|maker| maker.lacks());
    let event = |maker: &Maker| {
        let newest = |reason| events.newest(maker.uid(), |event| event.reason == reason);
        let refusal = newest("FailedCreate")?;
        let pods = maker.pods.iter().filter_map(|pod| pod.object.metadata.creation_timestamp.as_ref());
        let pods = pods.map(|created| created.0).chain(newest("SuccessfulCreate").and_then(|event| event.at));
        // The condition means that the newest attempt failed.
        let is_past = maker.failure().is_none() && pods.max().is_some_and(|last| Some(last) >= refusal.at);
        (!is_past).then_some(refusal)
    };
    let newest = lacking().filter_map(event).max_by_key(|event| event.at).map(|event| event.message.as_str());
    newest.or_else(|| lacking().filter_map(Maker::failure).find(|message| !message.is_empty()))
}
