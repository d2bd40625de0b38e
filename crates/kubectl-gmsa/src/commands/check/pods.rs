//! The findings on one pod, or one pod template, of a manifest.

use std::sync::Arc;

use serde_json::Value;

use super::{
    advice, builds,
    context::{CheckContext, RuntimeClass, denied, rule},
    misplaced,
    placeholders::Placeholders,
    template::CheckedPod,
    tickets,
};
use crate::shared::{
    admission::{NotReviewed, Reviewed, WrongType, labels},
    output::{Report, ReportRow},
    rules::{self, Fix, Names},
    world::{Admission, World, is_unchecked},
};
use gmsa_core::admission::{
    Denial, SlotDenial,
    pod::{Pod, Slot, SlotKind, SlotRef},
};
use gmsa_core::diagnostic::{Diagnostic, Severity};

/// A pod, and what the webhooks decide about it.
struct PodDecision<'p> {
    pod: &'p Pod,
    denials: &'p [SlotDenial],
    /// The denial of the pod as a whole. A denial about tickets does not count, because it leaves the slots unchanged.
    of_the_pod: Option<&'p Denial>,
    reviewed: &'p Reviewed,
    /// Whether its namespace is being deleted.
    is_ending: bool,
    placeholders: &'p Placeholders,
}

/// Checks a pod. If the pod is the whole document and asks for no tickets, returns it as the API server would store it.
pub(super) async fn check(
    checked: &CheckedPod<'_>,
    context: &CheckContext,
    report: &mut Report,
) -> anyhow::Result<Option<Value>> {
    let review = match checked.pod.review() {
        Ok(review) => review,
        Err(wrong) => {
            report.findings.push(not_a_pod(checked, &wrong));
            return Ok(None);
        }
    };
    let Some(pod) = &review.object else { return Ok(None) };
    let wants_tickets = pod.tickets().is_some() || pod.audiences().next().is_some();
    if !pod.uses_gmsa() && !pod.has_too_many_slots() && !wants_tickets {
        return Ok(None);
    }
    report.findings.extend(advice::misspelt(checked));
    report.findings.extend(misplaced::linux_with_options(checked));
    let mut reviewed = context.reviewed(&checked.namespace, &labels(&checked.pod.json)).await;
    // A pod that exists was created while the webhook answered.
    reviewed.silent.take_if(|_| checked.exists());
    let ending = context.ending_namespace(&checked.namespace).await;
    let Admission { stored, denials, .. } = context.world.admit(&checked.pod, &reviewed).await?;
    let placeholders = Placeholders::of(checked, pod, &denials);
    report.findings.extend(placeholders.finding(checked));
    let mut of_the_pod = denials.iter().filter(|found| found.slot.is_none()).map(|found| &found.denial);
    let of_the_pod = of_the_pod.find(|denial| !wants_tickets || !tickets::is_of_tickets(denial));
    let decision = PodDecision {
        pod,
        denials: &denials,
        of_the_pod,
        reviewed: &reviewed,
        is_ending: ending.is_some(),
        placeholders: &placeholders,
    };
    for slot in pod.slots().filter(Slot::uses_gmsa) {
        check_slot(checked, &decision, &slot, context, report).await;
    }
    if let Some(denial) = of_the_pod.filter(|denial| !placeholders.explain_rule(denial.rule())) {
        report.findings.push(checked.finding(rule(denial), "/spec", denial.to_string()));
    }
    tickets::check(checked, pod, (&denials, &reviewed), &placeholders, context, report).await;
    if let Some(Diagnostic { rule, message, fix, .. }) = ending {
        report.findings.push(checked.finding(rule, "/spec", message).fixed(fix));
    }
    if let Some(NotReviewed { rule, message, consequence, fix }) = reviewed.problem() {
        let found = checked.finding(rule, "/spec", message).fixed(fix);
        report.findings.push(Diagnostic { consequence: Some(consequence), ..found });
        let later = context.world.admit(&checked.pod, &Reviewed::ASSUMED).await?;
        report.findings.extend(refused_later(checked, pod, &denials, &later, &context.world));
    }
    report.findings.extend(advice::findings(checked, pod, context).await);
    refers(checked, pod, context, report).await;
    // A refused pod is not stored, so its document stays as it is. The sidecar that was injected is not that of a cluster.
    let is_stored = denials.is_empty() && checked.misspelling.is_none() && !wants_tickets;
    Ok((checked.is_document() && is_stored).then_some(stored))
}

/// The finding on a value that the webhooks cannot read as a pod.
fn not_a_pod(checked: &CheckedPod<'_>, wrong: &WrongType) -> Diagnostic {
    // In other kinds a value may only look like a pod template.
    let severity = if checked.is_of_kubernetes() { rules::NOT_A_POD.severity } else { Severity::Note };
    let found = checked.finding(&rules::NOT_A_POD, &wrong.pointer, wrong.to_string()).with_severity(severity);
    if wrong.pointer == "/spec/os" { found.with_fix("os: {name: windows}") } else { found }
}

/// Adds what becomes of a slot that uses GMSA, and the finding where that is a denial of its own.
async fn check_slot(
    checked: &CheckedPod<'_>,
    decision: &PodDecision<'_>,
    slot: &Slot<'_>,
    context: &CheckContext,
    report: &mut Report,
) {
    let PodDecision { pod, reviewed, is_ending, .. } = *decision;
    let own = decision.denials.iter().find(|found| found.slot == Some((slot.kind, slot.index)));
    let own = own.map(|found| &found.denial);
    // The slot's own denial takes precedence over the pod's.
    let denial = own.or(decision.of_the_pod);
    let unread = context.unread_file(denial).map(str::to_owned);
    let result = match denial {
        _ if unread.is_some() => "could not be checked".to_owned(),
        Some(denial) if is_unchecked(denial) => "could not be checked".to_owned(),
        Some(denial) => format!("refused, {}: {}", denial.code(), denial.reason()),
        None if is_ending => "is not created".to_owned(),
        None if slot.contents.is_some() && !reviewed.is_refused() => "carries its contents already".to_owned(),
        None if reviewed.silent.is_some() => reviewed.silence().unwrap_or_default().to_owned(),
        None if !reviewed.mutates() => "is not reviewed: gets no contents".to_owned(),
        None if reviewed.is_unsure => "gets its contents, if the webhook reviews it".to_owned(),
        None => "gets its contents".to_owned(),
    };
    report.places.push(ReportRow {
        file: Arc::clone(&checked.document.location.file),
        line: checked.document.location_of(&checked.place(&pointer(slot, denial))).line(),
        object: checked.object.clone(),
        slot: match &checked.template {
            Some(template) if slot.kind == SlotKind::Pod => template.clone(),
            _ => SlotRef::from(slot).to_string(),
        },
        credential_spec: slot.name.map(str::to_owned),
        admitted: denial.is_none() && !is_ending && !reviewed.is_refused(),
        result,
    });
    if decision.placeholders.explain(&format!("{}/gmsaCredentialSpecName", slot.pointer())) {
        return;
    }
    let at = pointer(slot, own);
    if let (Some(Denial::SpecMissing(spec)), Some(file)) = (own, unread) {
        let message = format!("cred spec {} is in no file that could be read: it may be in {file}", spec.as_str());
        report.findings.push(checked.finding(&rules::NOT_CHECKED, &at, message));
    } else if let Some(denial) = own {
        let nearest = match denial {
            Denial::SpecMissing(spec) => context.nearest_spec(spec.as_str()).await,
            _ => None,
        };
        let found = denied(checked, pod, (Some(slot), nearest.as_deref()), &at, denial, &context.world);
        // A pod that the mutating webhook does not get stays without contents.
        let unfilled = reviewed.problem().filter(|_| matches!(denial, Denial::NameWithoutContents { .. }));
        let fix = unfilled.map(|problem| problem.fix.unwrap_or_else(|| problem.rule.remedy.to_owned()));
        report.findings.push(found.fixed(fix));
    }
}

/// The field of a slot that a denial is about.
fn pointer(slot: &Slot<'_>, denial: Option<&Denial>) -> String {
    let field = if slot.name.is_some() && !matches!(denial, Some(Denial::ContentsDiffer { .. })) {
        "gmsaCredentialSpecName"
    } else {
        "gmsaCredentialSpec"
    };
    format!("{}/{field}", slot.pointer())
}

/// The findings on a pod that will be refused once both webhooks review it, after an installation or an upgrade.
fn refused_later(
    checked: &CheckedPod<'_>,
    pod: &Pod,
    now: &[SlotDenial],
    later: &Admission,
    world: &World,
) -> impl Iterator<Item = Diagnostic> {
    let is_new = |found: &&SlotDenial| now.iter().all(|known| known.slot != found.slot);
    later.denials.iter().filter(is_new).map(|found| {
        let slot = pod.slots().find(|slot| found.slot == Some((slot.kind, slot.index)));
        let finding = match &slot {
            Some(slot) => {
                let at = pointer(slot, Some(&found.denial));
                denied(checked, pod, (Some(slot), None), &at, &found.denial, world)
            }
            None => checked.finding(rule(&found.denial), "/spec", found.denial.to_string()),
        };
        let message = format!("once the webhook reviews this pod: {}", finding.message);
        Diagnostic { message, ..finding }.with_severity(Severity::Warning)
    })
}

/// The findings on the objects that the pod refers to.
async fn refers(checked: &CheckedPod<'_>, pod: &Pod, context: &CheckContext, report: &mut Report) {
    let (namespace, account) = (&checked.namespace, pod.service_account());
    if let Some((place, severity)) = context.lacks_service_account(namespace, account).await {
        let text = format!("there is no service account {account:?} in namespace {namespace:?} {place}");
        let finding = checked.finding(&rules::SERVICE_ACCOUNT_MISSING, "/spec/serviceAccountName", text);
        let names = Names { namespace: Some(namespace), service_account: Some(account), ..Names::default() };
        let fix = rules::fix(&rules::SERVICE_ACCOUNT_MISSING, &names).and_then(Fix::in_manifest);
        report.findings.push(Diagnostic { fix, ..finding.with_severity(severity) });
    }
    let name = checked.text("/spec/runtimeClassName");
    let class = context.runtime_class(name).await;
    let name = name.unwrap_or_default();
    if matches!(class, RuntimeClass::Missing) {
        let text = format!("there is no runtime class {name:?} in the cluster: the API server refuses the pod");
        report.findings.push(checked.finding(&rules::RUNTIME_CLASS_MISSING, "/spec/runtimeClassName", text));
    }
    if let Some(handler) = class.hyper_v() {
        let text = format!("runtime class {name:?} isolates containers by Hyper-V (handler {handler:?})");
        report.findings.push(checked.finding(&rules::HYPER_V, "/spec/runtimeClassName", text));
    }
    report.findings.extend(builds::findings(checked, pod, &class, context).await);
}
