//! The findings on one pod, or one pod template, of a manifest.

use std::collections::BTreeSet;

use super::{
    advice, builds,
    context::CheckContext,
    decided::{Decided, UNCHECKED, refused, reported_rule},
    misplaced,
    placeholders::Placeholders,
    template::CheckedPod,
    tickets,
};
use crate::shared::{
    admission::{Reviewed, WrongType, labels},
    output::{Report, ReportRow},
    rules,
    walk::decision::{ending_namespace, missing_account, missing_class},
    windows_build::hyper_v,
};
use gmsa_core::{
    admission::{
        Denial, SlotDenial, Webhook,
        pod::{Slot, SlotKind},
    },
    diagnostic::{Diagnostic, Severity},
};

/// Checks a pod.
pub(super) async fn check(checked: &CheckedPod<'_>, context: &CheckContext, report: &mut Report) -> anyhow::Result<()> {
    report.findings.extend(checked.pod.review().err().map(|wrong| not_a_pod(checked, &wrong)));
    let Some(pod) = checked.pod.pod() else { return Ok(()) };
    let asked = tickets::asked(pod);
    if !pod.uses_gmsa() && !pod.has_too_many_slots() && asked.is_empty() {
        return Ok(());
    }
    report.findings.extend(misplaced::misspelt(checked));
    report.findings.extend(misplaced::linux_with_options(checked));
    let mut reviewed = context.reviewed(&checked.namespace, &labels(&checked.pod.json)).await;
    // A pod that exists was created while the webhook answered.
    reviewed.silent.take_if(|_| checked.exists());
    let ending = ending_namespace(&context.world, &checked.namespace).await;
    let denials = context.world.admit(&checked.pod, &reviewed).await?;
    let placeholders = Placeholders::of(checked, pod, &denials);
    report.findings.extend(placeholders.finding(checked));
    let decided = Decided { checked, pod, context, denials, reviewed, is_ending: ending.is_some(), placeholders };
    let is_ticket = |denial: &Denial| asked.iter().any(|asked| asked.is_denied_by(denial));
    // A denial about tickets leaves the slots unchanged.
    let of_the_pod = decided.denials_of(None).find(|denial| !is_ticket(denial));
    for slot in pod.slots().filter(Slot::uses_gmsa) {
        decided.check_slot(&slot, of_the_pod, report).await;
    }
    let has_placeholder = decided.placeholders.explain("/spec/serviceAccountName");
    let is_explained = |denial: &Denial| has_placeholder && *denial.rule() == rules::INVALID_SERVICE_ACCOUNT;
    if let Some(denial) = of_the_pod.filter(|denial| !is_explained(denial)) {
        report.findings.push(checked.finding(reported_rule(denial), "/spec", denial.to_string()));
    }
    tickets::check(&decided, asked, report).await;
    report.findings.extend(ending.map(|found| checked.placed("/spec", found)));
    if let Some(found) = decided.reviewed.problem() {
        report.findings.push(checked.placed("/spec", found));
        let later = context.world.admit(&checked.pod, &Reviewed::ASSUMED).await?;
        report.findings.extend(decided.refused_later(later).await);
    }
    report.findings.extend(advice::findings(checked, pod, context).await);
    decided.refers(report).await;
    Ok(())
}

/// The finding on a value that the webhooks cannot read as a pod.
fn not_a_pod(checked: &CheckedPod<'_>, wrong: &WrongType) -> Diagnostic {
    // In other kinds a value may only look like a pod template.
    let severity = if checked.owner.pod().is_some() { rules::NOT_A_POD.severity } else { Severity::Note };
    let found = checked.finding(&rules::NOT_A_POD, &wrong.pointer, wrong.to_string()).with_severity(severity);
    if wrong.pointer == "/spec/os" { found.with_fix("os: {name: windows}") } else { found }
}

impl Decided<'_> {
    /// Adds what becomes of a slot that uses GMSA, and the finding where that is a denial of its own.
    async fn check_slot(&self, slot: &Slot<'_>, of_the_pod: Option<&Denial>, report: &mut Report) {
        let Self { checked, context, reviewed, is_ending, .. } = self;
        let own = self.denials_of(Some(slot)).next();
        // The slot's own denial takes precedence over the pod's.
        let denial = own.or(of_the_pod);
        let unread = context.unread_file(denial);
        let result = match denial {
            _ if unread.is_some() => UNCHECKED,
            Some(denial) => &refused(denial),
            None if *is_ending => "is not created",
            None if slot.contents.is_some() && !reviewed.is_refused() => "carries its contents already",
            None if reviewed.silent.is_some() => reviewed.silence().unwrap_or_default(),
            None if !reviewed.webhooks.contains(&Webhook::Mutate) => "is not reviewed: gets no contents",
            None if reviewed.is_unsure => "gets its contents, if the webhook reviews it",
            None => "gets its contents",
        };
        let name = match &checked.template {
            Some(template) if slot.kind == SlotKind::Pod => template.clone(),
            _ => slot.to_string(),
        };
        let admitted = denial.is_none() && !is_ending && !reviewed.is_refused();
        let row = checked.row(&pointer(slot, denial), name, slot.name);
        report.places.push(ReportRow { admitted, result: result.to_owned(), ..row });
        let Some(denial) = own else { return };
        if self.placeholders.explain(&format!("{}/gmsaCredentialSpecName", slot.pointer())) {
            return;
        }
        let found = self.denied(Some(slot), &pointer(slot, own), denial).await;
        // A pod that the mutating webhook does not get stays without contents.
        let unfilled = reviewed.problem().filter(|_| matches!(denial, Denial::NameWithoutContents { .. }));
        report.findings.push(found.fixed(unfilled.map(|problem| problem.remedy().to_owned())));
    }

    /// The findings on a pod that will be refused once both webhooks review it, after an installation or an upgrade.
    async fn refused_later(&self, later: Vec<SlotDenial>) -> Vec<Diagnostic> {
        let mut known: BTreeSet<_> = self.denials.iter().map(|found| found.slot).collect();
        let mut all = Vec::new();
        for SlotDenial { slot, denial } in later.into_iter().filter(|found| known.insert(found.slot)) {
            let found = match self.pod.slots().find(|it| Some(it.position()) == slot) {
                Some(slot) => self.denied(Some(&slot), &pointer(&slot, Some(&denial)), &denial).await,
                None => self.checked.finding(reported_rule(&denial), "/spec", denial.to_string()),
            };
            let message = format!("once the webhook reviews this pod: {}", found.message);
            all.push(Diagnostic { message, ..found }.with_severity(Severity::Warning));
        }
        all
    }

    /// Adds the findings on the objects that the pod refers to.
    async fn refers(&self, report: &mut Report) {
        let Self { checked, pod, context, .. } = self;
        let (world, namespace, account) = (&context.world, &checked.namespace, pod.service_account());
        let missing = missing_account(world, namespace, account).await;
        let missing = context.read(missing, &format!("service account {namespace}/{account}")).unwrap_or_default();
        report.findings.extend(missing.map(|found| checked.placed("/spec/serviceAccountName", found)));
        let (at, name) = ("/spec/runtimeClassName", checked.text("/spec/runtimeClassName"));
        let class = world.runtime_class(name).await;
        let name = name.unwrap_or_default();
        let class = context.read(class, &format!("runtime class {name}")).unwrap_or_default();
        report.findings.extend((class == Some(None)).then(|| checked.placed(at, missing_class(name))));
        let class = class.flatten();
        if let Some(handler) = class.as_ref().and_then(hyper_v) {
            let text = format!("runtime class {name:?} isolates containers by Hyper-V (handler {handler:?})");
            report.findings.push(checked.finding(&rules::HYPER_V, at, text));
        }
        report.findings.extend(builds::findings(checked, class.as_ref(), context).await);
    }
}

/// The field of a slot that a denial is about.
fn pointer(slot: &Slot<'_>, denial: Option<&Denial>) -> String {
    let is_of_contents = slot.name.is_none() || matches!(denial, Some(Denial::ContentsDiffer { .. }));
    format!("{}/{}", slot.pointer(), if is_of_contents { "gmsaCredentialSpec" } else { "gmsaCredentialSpecName" })
}
