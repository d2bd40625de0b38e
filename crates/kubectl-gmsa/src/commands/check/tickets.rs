//! Tickets for Linux pods in a manifest: the annotation, and the credential specs that a pod asks for tickets of.
//!
//! Invariant: a pod whose author asks for no tickets gets no finding from here. `misplaced` finds a misspelt annotation.

use std::slice;

use gmsa_core::{
    admission::{Denial, pod::Pod},
    credspec::{SpecName, Verb, lint::suggest_name, placeholder::is_placeholder},
    diagnostic::Diagnostic,
};

use super::{
    decided::{Decided, UNCHECKED, refused},
    sidecar,
    template::annotation,
};
use crate::shared::{
    names,
    output::{Report, ReportRow},
    rules::{self, instead_of},
    unread::Read,
    walk::tickets::{SpecFault, missing_product, of_missing, spec_fault},
    webhook::is_without_tickets,
    world::is_about_use,
};

/// A credential spec that a pod asks for tickets of, or for a keytab.
pub(super) struct TicketName<'p> {
    verb: Verb,
    name: &'p str,
    /// The place in the pod of the annotation or of the token.
    at: String,
    /// The annotation or the token in a report.
    slot: String,
    /// The YAML before the name.
    key: String,
}

/// The names of the annotations and of the tokens.
pub(super) fn asked(pod: &Pod) -> Vec<TicketName<'_>> {
    let annotations = pod.asks().map(|(verb, name)| {
        let (product, own) = (verb.product(), verb.product().annotation);
        TicketName { verb, name, at: annotation(own), slot: product.annotation_place(), key: format!("{own}: ") }
    });
    let tokens = pod.tokens().filter(|token| pod.asks().all(|asked| asked != *token));
    let tokens = tokens.map(|(verb, name)| {
        let (at, product) = ("/spec/volumes".to_owned(), verb.product());
        let key = format!("audience: {}", product.audience);
        TicketName { verb, name, at, slot: product.audience_place(), key }
    });
    annotations.chain(tokens).collect()
}

impl TicketName<'_> {
    /// Whether a denial of the pod is about this name.
    pub(super) fn is_denied_by(&self, denial: &Denial) -> bool {
        match denial {
            Denial::NotAuthorized { verb, spec, .. } | Denial::AuthorizationFailed { verb, spec, .. } => {
                (*verb, spec.as_str()) == (self.verb, self.name)
            }
            Denial::InvalidSpecName { place, .. } => *place == self.slot && SpecName::parse(self.name).is_none(),
            Denial::TicketsImpossible(..) | Denial::TicketsUnavailable(..) => true,
            _ => false,
        }
    }

    /// The remedy where it names no credential spec, or several.
    fn right(&self) -> String {
        if is_placeholder(self.name) {
            return instead_of(self.name).in_manifest().unwrap_or_default();
        }
        let Self { name, key, .. } = self;
        let first = name.split([',', ' ']).find(|name| !name.is_empty());
        let is_longer = first.is_some_and(|first| first.len() < name.trim().len());
        let more = if is_longer { "  # one name: a pod has tickets of one account" } else { "" };
        format!("{key}{}{more}", first.map_or_else(|| "NAME".to_owned(), suggest_name))
    }
}

/// Reports the credential specs that the pod asks for tickets of, and a sidecar that was written by hand.
pub(super) async fn check(decided: &Decided<'_>, mut all: Vec<TicketName<'_>>, report: &mut Report) {
    let Decided { checked, pod, context, reviewed, placeholders, .. } = decided;
    if let Some(verb) = missing_product(pod) {
        let is_off = context.replica_is(is_without_tickets).await;
        if is_off || checked.exists() {
            all.clear();
            report.findings.push(checked.placed(&annotation(verb.product().annotation), of_missing(verb, is_off)));
        }
    }
    all.retain(|asked| !placeholders.explain(&asked.at));
    for (index, asked) in all.iter().enumerate() {
        let fault = no_tickets(decided, asked).await;
        let is_unread = fault.is_err();
        let missing = fault.ok().flatten();
        // A permission for a name that does not exist says nothing.
        let is_missing =
            missing.as_ref().is_some_and(|found| [&rules::SPEC_MISSING, &rules::NOT_CHECKED].contains(&found.rule));
        let is_left = |denial: &&Denial| asked.is_denied_by(denial) && !(is_missing && is_about_use(denial));
        let own: Vec<&Denial> = decided.denials_of(None).filter(is_left).collect();
        let result = match (own.first(), &missing) {
            (Some(denial), _) => refused(denial),
            (None, Some(found)) if *found.rule == rules::NOT_CHECKED => UNCHECKED.to_owned(),
            (None, Some(found)) => format!("gets no {}: {}", asked.verb.product().name, found.rule.id),
            (None, None) if is_unread => UNCHECKED.to_owned(),
            (None, None) => {
                reviewed.silence().map_or_else(|| format!("gets {}", asked.verb.product().of_a_pod), str::to_owned)
            }
        };
        let admitted = own.is_empty() && !reviewed.is_refused();
        let row = checked.row(&asked.at, asked.slot.clone(), Some(asked.name));
        report.places.push(ReportRow { admitted, result, ..row });
        // A cause that makes tickets impossible is reported once.
        let is_new = |denial: &&Denial| {
            index == 0 || !matches!(denial, Denial::TicketsImpossible(..) | Denial::TicketsUnavailable(..))
        };
        for denial in own.into_iter().filter(is_new) {
            let found = decided.denied(None, &asked.at, denial).await;
            let is_name = matches!(denial, Denial::InvalidSpecName { .. });
            report.findings.push(if is_name { found.with_fix(asked.right()) } else { found });
        }
        report.findings.extend(missing);
    }
    report.findings.extend(sidecar::findings(checked, pod));
}

/// The finding on the credential spec itself.
async fn no_tickets(decided: &Decided<'_>, asked: &TicketName<'_>) -> Read<Option<Diagnostic>> {
    let Decided { checked, context, .. } = decided;
    let Some(spec) = SpecName::parse(asked.name) else { return Ok(None) };
    let about = format!("credential spec {spec}");
    let denial = match context.read(spec_fault(&context.world, asked.verb, spec.clone()).await, &about) {
        Ok(Some(SpecFault::NotListed(found))) => return Ok(Some(checked.placed(&asked.at, found))),
        Ok(Some(SpecFault::Denial(denial))) => denial,
        Ok(None) => return Ok(None),
        Err(unread) if context.world.has_cluster() => return Err(unread),
        // Manifests are all that there is.
        Err(_) => Denial::SpecMissing(spec),
    };
    let found = decided.denied(None, &asked.at, &denial).await;
    let nearest = names::nearest_spec(&context.world, slice::from_ref(&denial)).await;
    Ok(Some(found.fixed(nearest.map(|nearest| format!("{}{nearest}", asked.key)))))
}
