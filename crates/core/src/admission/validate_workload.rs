//! `/validate-workload`: warns what will happen to the pods of a workload when the workload is applied, not when its pods
//! fail to start.
//!
//! Invariants: a workload is never refused here, because its pods are checked when they are created; a workload that another
//! one controls (the ReplicaSet of a Deployment) is skipped, because the owner has its own review.

use std::collections::{HashMap, HashSet};

use super::{
    AllowReason, Denial, Facts, MAX_SPECS_PER_POD, Review, ServiceAccount, SlotDenial, TicketSettings,
    advice::{advise, advise_template, advise_tickets},
    case::{Assessment, Case},
    claims::{Claim, SpecClaims},
    pod::{MAX_SLOTS, Pod, Slot, SlotKind},
    preconditions::expect_few_names,
    tickets,
    warning::Warnings,
};
use crate::{
    credspec::{SpecName, Verb, compare::ExpectedContents},
    diagnostic::rules,
};

/// The pod template to check, or the reason to skip the workload.
fn template(review: &Review) -> Result<&Pod, AllowReason> {
    let workload = review.workload.as_ref().ok_or(AllowReason::NoGmsa)?;
    if workload.is_controlled {
        return Err(AllowReason::Controlled);
    }
    let pod = workload.template.as_ref().ok_or(AllowReason::NoGmsa)?;
    if pod.asks_tickets_of().next().is_some() {
        return Ok(pod);
    }
    if pod.is_linux() {
        return Err(AllowReason::Linux);
    }
    if pod.uses_gmsa() { Ok(pod) } else { Err(AllowReason::NoGmsa) }
}

/// The slots that name a credential spec by a name that can be one, up to the bound on one pod.
fn named(pod: &Pod) -> impl Iterator<Item = (Slot<'_>, SpecName)> {
    let mut seen: HashSet<SpecName> = HashSet::new();
    pod.slots().filter_map(|slot| slot.name.and_then(SpecName::parse).map(|name| (slot, name))).take_while(
        move |(_, name)| {
            seen.insert(name.clone());
            seen.len() <= MAX_SPECS_PER_POD
        },
    )
}

/// The slots and tokens whose credential specs are looked up.
pub(super) fn claims(review: &Review, settings: &TicketSettings) -> SpecClaims {
    let pod = match template(review) {
        Ok(pod) => pod,
        Err(reason) => return reason.into(),
    };
    let mut claims = SpecClaims::from(AllowReason::Workload);
    claims.service_account = ServiceAccount::of(review, pod).ok();
    if claims.service_account.is_some() {
        claims.all =
            named(pod).map(|(slot, spec)| Claim::Named { slot: slot.position(), spec, needs_contents: true }).collect();
        claims.all.extend(tickets::claims(pod, settings));
        let tokens = pod.tokens().filter_map(|(verb, name)| Some(Claim::Token(verb, SpecName::parse(name)?)));
        claims.all.extend(tokens.filter(|_| expect_few_names(pod).is_ok()));
    }
    claims
}

/// Warns what will happen to the pods of a workload.
pub(super) fn foresee(case: &Case) -> Assessment {
    let mut warnings = Warnings::default();
    if let Ok(pod) = template(&case.review) {
        warn_of_pods(pod, case, &mut warnings);
    }
    Assessment { denials: Vec::new(), patch: None, warnings: warnings.into_lines(), reason: case.claims.reason }
}

fn warn_of_pods(pod: &Pod, Case { review, settings, claims, facts, .. }: &Case, warnings: &mut Warnings) {
    if pod.has_too_many_slots() {
        let sentence = format!("the pods have more than {} containers: they will be refused", MAX_SLOTS - 1);
        warnings.add(&rules::TOO_MANY_SLOTS, &sentence, &[]);
    }
    if expect_few_names(pod).is_err() {
        let sentence =
            format!("the pods name more than {MAX_SPECS_PER_POD} distinct GMSA cred specs: they will be refused");
        warnings.add(&rules::TOO_MANY_SPECS, &sentence, &[]);
    }
    unusable_names(pod, warnings);
    if claims.service_account.is_none() {
        let sentence = "service account name {} is not a lower-case DNS subdomain: the pods will be refused";
        warnings.add(&rules::INVALID_SERVICE_ACCOUNT, sentence, &[pod.service_account()]);
    }
    check_specs(pod, claims, facts, warnings);
    warnings.extend(advise_tickets(pod, matches!(settings.tickets, TicketSettings::On(_))));
    warnings.extend(advise(pod));
    if let Some(workload) = &review.workload {
        warnings.extend(advise_template(pod, &workload.unsupported, workload.replicas));
    }
}

/// Faults of the template that do not depend on the cluster.
fn unusable_names(pod: &Pod, warnings: &mut Warnings) {
    for slot in pod.slots() {
        match (slot.name, slot.contents) {
            (None, Some(_)) => {
                let (place, names) = place(&slot);
                let sentence =
                    format!("{place} has GMSA cred spec contents without its name: the pods will be refused");
                warnings.add(&rules::CONTENTS_WITHOUT_NAME, &sentence, &names);
            }
            (Some(name), _) if SpecName::parse(name).is_none() => {
                let sentence = "GMSA cred spec name {} is not a lower-case DNS subdomain: the pods will be refused";
                warnings.add(&rules::INVALID_SPEC_NAME, sentence, &[name]);
            }
            _ => {}
        }
    }
}

/// A slot in a sentence, and the names that fill the sentence's `{}`. The template itself has no name.
fn place<'p>(slot: &Slot<'p>) -> (String, Vec<&'p str>) {
    match slot.kind {
        SlotKind::Pod => ("the pod template".to_owned(), Vec::new()),
        kind => (format!("{kind} {{}}"), vec![slot.owner]),
    }
}

/// Warnings about the named credential specs. Each is reported once, even if many slots name it.
fn check_specs(pod: &Pod, claims: &SpecClaims, facts: &Facts, warnings: &mut Warnings) {
    let (mut seen, mut expected, mut slots) = (HashSet::new(), HashMap::new(), pod.slots());
    for claim in &claims.all {
        let (verb, spec, slot) = match claim {
            Claim::Named { slot, spec, .. } => (Verb::Use, spec, Some(Slot::at(*slot, &mut slots))),
            Claim::Token(verb, spec) => (*verb, spec, None),
            Claim::Denied(SlotDenial { denial, .. }) => {
                warnings.push(denial.rule(), &denial.to_string());
                continue;
            }
        };
        let is_first = seen.insert((verb, spec));
        match facts.contents(spec) {
            Ok(contents) => {
                let expected = expected.entry(spec).or_insert_with(|| ExpectedContents::new(contents));
                if let Some(slot) = slot
                    && slot.contents.is_some_and(|own| expected.compare(own).is_err())
                {
                    let (place, mut names) = place(&slot);
                    names.push(spec.as_str());
                    let sentence =
                        format!("{place} has other contents than GMSA cred spec {{}}: the pods will be refused");
                    warnings.add(&rules::CONTENTS_DIFFER, &sentence, &names);
                }
            }
            Err(denial) if is_first => warn(&denial, warnings),
            Err(_) => {}
        }
        if let Err(denial) = facts.may(pod.service_account(), verb, spec)
            && is_first
        {
            warn(&denial, warnings);
        }
    }
}

/// The warning for a denial that the pods will meet.
fn warn(denial: &Denial, warnings: &mut Warnings) {
    let (sentence, names) = match denial {
        Denial::SpecMissing(spec) => {
            ("GMSA cred spec {} does not exist: the pods will be refused".to_owned(), vec![spec.as_str()])
        }
        Denial::SpecUnusable(spec) => {
            ("GMSA cred spec {} has no credspec key: the pods will be refused".to_owned(), vec![spec.as_str()])
        }
        Denial::SpecUnreadable { spec, .. } => {
            ("GMSA cred spec {} could not be read, so this workload was not checked".to_owned(), vec![spec.as_str()])
        }
        Denial::NotAuthorized { service_account, verb, spec, .. } => (
            format!("service account {{}} may not {} GMSA cred spec {{}}: the pods will be refused", verb.as_str()),
            vec![service_account.as_str(), spec.as_str()],
        ),
        Denial::AuthorizationFailed { service_account, verb, spec, .. } => (
            format!("it could not be checked whether service account {{}} may {} GMSA cred spec {{}}", verb.as_str()),
            vec![service_account.as_str(), spec.as_str()],
        ),
        // No other denial follows from a fact yet; its own text is the warning.
        _ => return warnings.push(denial.rule(), &denial.to_string()),
    };
    warnings.add(denial.rule(), &sentence, &names);
}

#[cfg(test)]
mod tests;
