//! Tickets for Linux pods in a manifest: the annotation, and the credential specs that a pod asks for tickets of.
//!
//! Invariant: a pod whose author asks for no tickets gets no finding from here. `misplaced` finds a misspelt annotation.

use gmsa_cluster::resolver::live::collection;
use gmsa_core::{
    admission::{
        Denial,
        pod::{
            Pod,
            tickets::{ANNOTATION, AUDIENCE},
        },
    },
    credspec::{SpecName, lint::suggest_name, placeholder::is_placeholder, services},
    diagnostic::Diagnostic,
};
use serde_json::Value;

use super::{
    placeholders::TICKETS,
    pods::{Decided, UNCHECKED, refused},
    sidecar,
};
use crate::shared::{
    credspecs::without_tickets,
    names,
    output::Report,
    rules::{self, instead_of},
    walk::tickets::{NOT_ENABLED, NOT_INJECTED, lacks_sidecar},
    webhook::lacks_tickets,
    world::is_about_use,
};

const VOLUMES: &str = "/spec/volumes";

/// A credential spec that a pod asks for tickets of.
pub(super) struct TicketName<'p> {
    name: &'p str,
    /// Its place in the pod.
    at: &'static str,
    /// Its name in a report.
    slot: String,
}

/// The names of the annotation and of the tokens.
pub(super) fn asked(pod: &Pod) -> Vec<TicketName<'_>> {
    let by_annotation = pod.tickets();
    let annotation =
        by_annotation.map(|name| TicketName { name, at: TICKETS, slot: format!("annotation {ANNOTATION}") });
    let tokens = pod.audiences().filter(|name| by_annotation != Some(*name));
    let tokens = tokens.map(|name| TicketName { name, at: VOLUMES, slot: format!("audience {AUDIENCE}NAME") });
    annotation.into_iter().chain(tokens).collect()
}

impl TicketName<'_> {
    /// Whether a denial of the pod is about this name.
    pub(super) fn is_denied_by(&self, denial: &Denial) -> bool {
        match denial {
            Denial::NotAuthorized { spec, .. } | Denial::AuthorizationFailed { spec, .. } => spec.as_str() == self.name,
            Denial::InvalidSpecName { place, .. } => *place == self.slot && SpecName::parse(self.name).is_none(),
            Denial::TicketsImpossible(..) | Denial::TicketsUnavailable(..) => true,
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
pub(super) async fn check(decided: &Decided<'_>, mut all: Vec<TicketName<'_>>, report: &mut Report) {
    let Decided { checked, pod, context, reviewed, placeholders, .. } = decided;
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
        let missing = no_tickets(decided, asked).await;
        // A permission for a name that does not exist says nothing.
        let is_missing = missing.as_ref().is_some_and(|found| *found.rule != rules::TICKET_SERVICES);
        let is_left = |denial: &&Denial| asked.is_denied_by(denial) && !(is_missing && is_about_use(denial));
        let own: Vec<&Denial> = decided.denials_of(None).filter(is_left).collect();
        let result = match (own.first(), &missing) {
            (Some(denial), _) => refused(denial),
            (None, Some(found)) if *found.rule == rules::NOT_CHECKED => UNCHECKED.to_owned(),
            (None, Some(found)) => format!("gets no tickets: {}", found.rule.id),
            (None, None) => reviewed.silence().unwrap_or("gets tickets").to_owned(),
        };
        let admitted = own.is_empty() && !reviewed.is_refused();
        report.places.push(checked.row(asked.at, asked.slot.clone(), Some(asked.name), admitted, result));
        // What makes tickets impossible is said once.
        let is_new = |denial: &&Denial| {
            index == 0 || !matches!(denial, Denial::TicketsImpossible(..) | Denial::TicketsUnavailable(..))
        };
        for denial in own.into_iter().filter(is_new) {
            let found = decided.denied(None, asked.at, denial).await;
            let is_name = matches!(denial, Denial::InvalidSpecName { .. });
            report.findings.push(if is_name { found.with_fix(asked.right()) } else { found });
        }
        report.findings.extend(missing);
    }
    report.findings.extend(sidecar::findings(checked, pod));
}

/// The finding that a credential spec is missing, or that its owner did not opt in.
async fn no_tickets(decided: &Decided<'_>, asked: &TicketName<'_>) -> Option<Diagnostic> {
    let Decided { checked, context, .. } = decided;
    let spec = SpecName::parse(asked.name)?;
    let read = context.world.find(&format!("{}/{spec}", collection())).await;
    let object: Option<Value> = match context.read(read, &format!("credential spec {spec}")) {
        Err(_) if context.world.has_cluster() => return None,
        read => read.unwrap_or_default(),
    };
    if let Some(object) = object {
        let (message, fix) = without_tickets(&spec, services::listed(&object))?;
        return Some(checked.finding(&rules::TICKET_SERVICES, asked.at, message).with_fix(fix));
    }
    let denial = Denial::SpecMissing(spec);
    let found = decided.denied(None, asked.at, &denial).await;
    let nearest = names::nearest_spec(&context.world, &denial).await.filter(|_| asked.at == TICKETS);
    Some(found.fixed(nearest.map(|nearest| format!("{ANNOTATION}: {nearest}"))))
}
