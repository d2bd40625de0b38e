//! Advice about a pod: what its template says, whatever is decided about it.
//!
//! The annotations that switch GMSA off belong to hcsshim (`pkg/annotations`) and containerd. By default containerd passes on those with
//! the prefix `io.microsoft.container.`.

use gmsa_core::{
    admission::{
        advice::{
            advise, advise_template, advise_tickets,
            same_computer::{Replicas, advise_replicas},
        },
        pod::{Pod, RANDOM_HOSTNAME, SlotKind, fields},
        workload::PodNames,
    },
    diagnostic::{Diagnostic, Severity},
    pointer::dotted,
};
use serde_json::Value;

use super::{
    context::CheckContext,
    template::{CheckedPod, annotation},
};
use crate::shared::{
    rules,
    webhook::{gives_hostnames, is_true},
};

/// Annotations, each with its effect if it is `true`.
const SWITCHES: [(&str, &str); 5] = [
    ("io.microsoft.container.wcow.gmsa.disable", "the container gets no gMSA"),
    ("io.microsoft.disable-unsafe-operations", "the container gets no gMSA"),
    ("microsoft.com/hostprocess-container", "the container is a hostProcess and acts as the host's account"),
    ("microsoft.com/hostprocess-inherit-user", "the container acts as the account of containerd"),
    ("io.kubernetes.cri.untrusted-workload", "another runtime runs the pod"),
];

/// Annotations that name another runtime.
const RUNTIMES: [&str; 2] = ["io.containerd.cri.runtime-handler", "io.kubernetes.cri.runtime-handler"];

/// The findings on what the pod says, which no decision is about.
pub(super) async fn findings(checked: &CheckedPod<'_>, pod: &Pod, context: &CheckContext) -> Vec<Diagnostic> {
    let unsupported = fields::read(&checked.pod.json.to_string());
    let advice = advise(pod).into_iter().chain(advise_template(pod, &unsupported, checked.count()));
    let advised = |found: Diagnostic| checked.placed(&found.field.clone(), found);
    let mut found: Vec<Diagnostic> = advice.chain(advise_tickets(pod, false)).map(advised).collect();
    found.extend(runtime_annotations(checked));
    found.extend(ignored(checked));
    found.extend(alike(checked, pod, context).await);
    found.extend(new_ephemeral_containers(checked, pod));
    found
}

/// The finding on each annotation that makes containerd run the containers without the account, with another account, or by another runtime.
fn runtime_annotations(checked: &CheckedPod<'_>) -> Vec<Diagnostic> {
    let annotations =
        checked.pod.json.pointer("/metadata/annotations").and_then(Value::as_object).into_iter().flatten();
    let finding = |(key, value): (&String, &Value)| {
        let value = value.as_str().filter(|value| !value.is_empty())?;
        // hcsshim reads it by `strconv.ParseBool`.
        let switch =
            SWITCHES.iter().find(|(name, _)| key == name).filter(|_| is_true(value)).map(|(_, effect)| *effect);
        let effect = switch.or_else(|| RUNTIMES.contains(&key.as_str()).then_some("another runtime runs the pod"))?;
        let message = format!("where containerd takes the annotation {key}, {effect}");
        Some(checked.finding(&rules::RUNTIME_ANNOTATION, &annotation(key), message).with_fix("remove the annotation"))
    };
    annotations.filter_map(finding).collect()
}

/// The findings on the host names of a workload's pods. The cluster is asked only if the answer matters.
async fn alike(checked: &CheckedPod<'_>, pod: &Pod, context: &CheckContext) -> Option<Diagnostic> {
    let replicas = checked.replicas()?;
    advise_replicas(pod, replicas, false)?;
    let found = advise_replicas(pod, replicas, context.replica_is(gives_hostnames).await)?;
    Some(checked.placed_at(&format!("{}{}", checked.root, found.field), found))
}

/// The finding that the webhook ignores the annotation for a random host name.
fn ignored(checked: &CheckedPod<'_>) -> Option<Diagnostic> {
    let annotation = annotation(RANDOM_HOSTNAME);
    let finding = |message: String| checked.finding(&rules::IGNORED_FIELD, &annotation, message);
    let is_numbered = |replicas: Replicas<'_>| replicas.kind.facts().pod_names == PodNames::Numbered;
    let found = match (checked.text(&annotation), checked.of_workload(&annotation)) {
        (Some("true"), _) if checked.replicas().is_some_and(is_numbered) => {
            let text = "a StatefulSet sets the host names of its pods itself, so the webhook gives none";
            return Some(finding(text.to_owned()).with_severity(Severity::Note).with_fix("remove the annotation"));
        }
        (Some("true" | "false"), _) => return None,
        (Some(value), _) => {
            finding(format!("the webhook gives a random host name for the value \"true\" alone, not for {value:?}"))
        }
        (None, place) => {
            let right = dotted(&checked.place(&annotation));
            let text = format!("the webhook ignores this annotation: its place is {right}");
            checked.finding_at(&rules::IGNORED_FIELD, &place?, text)
        }
    };
    Some(found.with_severity(Severity::Warning).with_fix(format!("{RANDOM_HOSTNAME}: \"true\"")))
}

/// The finding on a new pod with ephemeral containers, which `ValidatePodCreate` and `ValidatePodTemplateSpec` of kube-apiserver
/// refuse. Without other containers it is a patch, not a pod.
fn new_ephemeral_containers(checked: &CheckedPod<'_>, pod: &Pod) -> Option<Diagnostic> {
    let has = |kind| pod.slots().any(|slot| slot.kind == kind);
    let is_new = has(SlotKind::Container) && has(SlotKind::EphemeralContainer) && !checked.exists();
    let text = "a new pod may not have ephemeral containers: the API server refuses it";
    let at = "/spec/ephemeralContainers";
    is_new.then(|| checked.finding(&rules::EPHEMERAL_CONTAINERS, at, text).with_fix("remove the field"))
}
