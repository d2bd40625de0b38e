//! The host names of a workload's pods: names that look like one computer to Windows, and annotations without effect.

use crate::shared::{rules, webhook::gives_hostnames};
use gmsa_core::{
    admission::{
        advice::same_computer::advise_replicas,
        pod::{Pod, RANDOM_HOSTNAME},
        workload::PodNames,
    },
    diagnostic::{Diagnostic, Severity},
};

use super::{context::CheckContext, pointer::dotted, template::CheckedPod};

pub(super) async fn findings(
    checked: &CheckedPod<'_>,
    pod: &Pod,
    context: &CheckContext,
) -> impl Iterator<Item = Diagnostic> {
    ignored(checked).into_iter().chain(alike(checked, pod, context).await)
}

/// The findings on the host names of a workload's pods. The cluster is asked only if the answer matters.
async fn alike(checked: &CheckedPod<'_>, pod: &Pod, context: &CheckContext) -> Option<Diagnostic> {
    let replicas = checked.replicas()?;
    advise_replicas(pod, replicas, false)?;
    let advice = advise_replicas(pod, replicas, context.replica_is(gives_hostnames).await)?;
    let place = format!("{}{}", checked.root, advice.pointer);
    Some(checked.advised_at(&place, advice))
}

/// The finding that the webhook ignores the annotation for a random host name.
fn ignored(checked: &CheckedPod<'_>) -> Option<Diagnostic> {
    let annotation = format!("/metadata/annotations/{}", RANDOM_HOSTNAME.replace('/', "~1"));
    let finding = |message: String| checked.finding(&rules::IGNORED_FIELD, &annotation, message);
    let found = match (checked.text(&annotation), checked.of_workload(&annotation)) {
        (Some("true"), _) if sets_hostnames(checked) => {
            let text = "a StatefulSet sets the host names of its pods itself, so the webhook gives none";
            return Some(finding(text.to_owned()).with_severity(Severity::Note).with_fix("remove the annotation"));
        }
        (Some("true" | "false"), _) | (None, None) => return None,
        (Some(value), _) => {
            finding(format!("the webhook gives a random host name for the value \"true\" alone, not for {value:?}"))
        }
        (None, Some(place)) => {
            let right = dotted(&checked.place(&annotation));
            let text = format!("the webhook ignores this annotation: its place is {right}");
            checked.finding_at(&rules::IGNORED_FIELD, &place, text)
        }
    };
    Some(found.with_severity(Severity::Warning).with_fix(format!("{RANDOM_HOSTNAME}: \"true\"")))
}

/// Whether the controller of the pod sets its host name.
fn sets_hostnames(checked: &CheckedPod<'_>) -> bool {
    checked.replicas().is_some_and(|replicas| replicas.kind.pod_names() == PodNames::Numbered)
}
