//! Tickets for Linux pods in a manifest: the annotation, and the credential specs that a pod asks for tickets of.
//!
//! Invariant: a pod whose author asks for no tickets gets no finding from here. `misplaced` finds a misspelt annotation.

use std::sync::Arc;

use gmsa_core::{
    admission::{
        Denial, SlotDenial,
        pod::{
            Pod,
            tickets::{ANNOTATION, AUDIENCE},
        },
    },
    credspec::{SpecName, lint::suggest_name, placeholder::is_placeholder},
    diagnostic::Diagnostic,
};

use super::{
    context::{CheckContext, denied},
    placeholders::{Placeholders, TICKETS},
    sidecar,
    template::CheckedPod,
};
use crate::shared::{
    admission::Reviewed,
    credspecs::without_tickets,
    output::{Report, ReportRow},
    rules::{self, Fix, Names, instead_of},
    walk::tickets::{NOT_ENABLED, NOT_INJECTED, lacks_sidecar},
    webhook::lacks_tickets,
    world::is_unchecked,
};

const VOLUMES: &str = "/spec/volumes";

/// Whether a denial of a pod is about its tickets, if it wants some.
pub(super) fn is_of_tickets(denial: &Denial) -> bool {
    matches!(
        denial,
        Denial::NotAuthorized { .. }
            | Denial::AuthorizationFailed { .. }
            | Denial::InvalidSpecName { .. }
            | Denial::TicketsImpossible(_)
            | Denial::TicketsUnavailable(_)
    )
}

/// A credential spec that a pod asks for tickets of.
struct TicketName<'p> {
    name: &'p str,
    /// Its place in the pod.
    at: &'static str,
    /// Its name in a report.
    slot: String,
}

/// The names of the annotation and of the tokens.
fn asked(pod: &Pod) -> Vec<TicketName<'_>> {
    let by_annotation = pod.tickets();
    let annotation =
        by_annotation.map(|name| TicketName { name, at: TICKETS, slot: format!("annotation {ANNOTATION}") });
    let tokens = pod.audiences().filter(|name| by_annotation != Some(*name));
    let tokens = tokens.map(|name| TicketName { name, at: VOLUMES, slot: format!("audience {AUDIENCE}NAME") });
    annotation.into_iter().chain(tokens).collect()
}

impl TicketName<'_> {
    /// Whether a denial of the pod is about this name.
    fn is_denied_by(&self, denial: &Denial) -> bool {
        match denial {
            Denial::NotAuthorized { spec, .. } | Denial::AuthorizationFailed { spec, .. } => spec.as_str() == self.name,
            Denial::InvalidSpecName { place, .. } => *place == self.slot && SpecName::parse(self.name).is_none(),
            Denial::TicketsImpossible(_) | Denial::TicketsUnavailable(_) => true,
            _ => false,
        }
    }

    /// The remedy where it names no credential spec, or several.
    fn right(&self) -> String {
        let first = self.name.split([',', ' ']).find(|name| !name.is_empty()).unwrap_or("NAME");
        if is_placeholder(self.name) {
            return instead_of(self.name).in_manifest().unwrap_or_default();
        }
        let key = if self.at == TICKETS { format!("{ANNOTATION}: ") } else { format!("audience: {AUDIENCE}") };
        let more =
            if first.len() < self.name.trim().len() { "  # one name: a pod has tickets of one account" } else { "" };
        let right = if first == "NAME" { first.to_owned() } else { suggest_name(first) };
        format!("{key}{right}{more}")
    }
}

/// Reports the credential specs that the pod asks for tickets of, and a sidecar that was written by hand.
pub(super) async fn check(
    checked: &CheckedPod<'_>,
    pod: &Pod,
    (denials, reviewed): (&[SlotDenial], &Reviewed),
    placeholders: &Placeholders,
    context: &CheckContext,
    report: &mut Report,
) {
    let of_pod: Vec<&Denial> = denials.iter().filter(|found| found.slot.is_none()).map(|found| &found.denial).collect();
    let mut all = asked(pod);
    if lacks_sidecar(pod) {
        let found = if context.replica_is(lacks_tickets).await {
            Some((&rules::TICKETS_NOT_ENABLED, NOT_ENABLED))
        } else {
            checked.exists().then_some((&rules::TICKETS_NOT_INJECTED, NOT_INJECTED))
        };
        if let Some((rule, text)) = found {
            all.clear();
            report.findings.push(checked.finding(rule, TICKETS, text));
        }
    }
    all.retain(|asked| !placeholders.explain(asked.at));
    for (index, asked) in all.iter().enumerate() {
        let missing = match SpecName::parse(asked.name) {
            Some(spec) => no_tickets(checked, asked, &spec, context).await,
            None => None,
        };
        // A permission for a name that does not exist says nothing.
        let is_missing = missing.as_ref().is_some_and(|found| *found.rule != rules::TICKET_SERVICES);
        let is_of_use =
            |denial: &Denial| matches!(denial, Denial::NotAuthorized { .. } | Denial::AuthorizationFailed { .. });
        let own = of_pod.iter().filter(|denial| asked.is_denied_by(denial) && !(is_missing && is_of_use(denial)));
        let own: Vec<&Denial> = own.copied().collect();
        let result = match (own.first(), &missing) {
            (Some(denial), _) if is_unchecked(denial) => "could not be checked".to_owned(),
            (Some(denial), _) => format!("refused, {}: {}", denial.code(), denial.reason()),
            (None, Some(found)) if *found.rule == rules::NOT_CHECKED => "could not be checked".to_owned(),
            (None, Some(found)) => format!("gets no tickets: {}", found.rule.id),
            (None, None) => reviewed.silence().unwrap_or("gets tickets").to_owned(),
        };
        report.places.push(ReportRow {
            file: Arc::clone(&checked.document.location.file),
            line: checked.document.location_of(&checked.place(asked.at)).line(),
            object: checked.object.clone(),
            slot: asked.slot.clone(),
            credential_spec: Some(asked.name.to_owned()),
            admitted: own.is_empty() && !reviewed.is_refused(),
            result,
        });
        // What makes tickets impossible is said once.
        let is_new = |denial: &&Denial| {
            index == 0 || !matches!(denial, Denial::TicketsImpossible(_) | Denial::TicketsUnavailable(_))
        };
        for denial in own.into_iter().filter(is_new) {
            let found = denied(checked, pod, (None, None), asked.at, denial, &context.world);
            let is_name = matches!(denial, Denial::InvalidSpecName { .. });
            report.findings.push(if is_name { found.with_fix(asked.right()) } else { found });
        }
        report.findings.extend(missing);
    }
    report.findings.extend(sidecar::findings(checked, pod));
}

/// The finding that a credential spec is missing, or that its owner did not opt in.
async fn no_tickets(
    checked: &CheckedPod<'_>,
    asked: &TicketName<'_>,
    spec: &SpecName,
    context: &CheckContext,
) -> Option<Diagnostic> {
    match context.services(spec).await {
        Ok(annotation) => {
            let (message, fix) = without_tickets(spec, annotation.as_deref())?;
            Some(checked.finding(&rules::TICKET_SERVICES, asked.at, message).with_fix(fix))
        }
        Err(Some(denial)) => {
            if let Some(file) = context.unread_file(Some(&denial)) {
                let message = format!("cred spec {spec} is in no file that could be read: it may be in {file}");
                return Some(checked.finding(&rules::NOT_CHECKED, asked.at, message));
            }
            let nearest = context.nearest_spec(spec.as_str()).await;
            let nearest = nearest.map(|nearest| format!("{ANNOTATION}: {nearest}")).filter(|_| asked.at == TICKETS);
            let other = || rules::fix(&rules::SPEC_MISSING, &Names::of_denial(&denial)).and_then(Fix::in_manifest);
            let fix = nearest.or_else(other);
            Some(checked.finding(&rules::SPEC_MISSING, asked.at, denial.to_string()).fixed(fix))
        }
        Err(None) => None,
    }
}
