//! `/validate-workload`: warns what will happen to the pods of a workload when the workload is applied, not when its pods
//! fail to start.
//!
//! Invariants: a workload is never refused here, because its pods are checked when they are created; a workload that another
//! one controls (the ReplicaSet of a Deployment) is skipped, because the owner has its own review.

use std::collections::HashMap;

use super::{
    AllowReason, Facts, MAX_SPECS_PER_POD, Needs, Review, SpecFact, Subject, UseFact, advice,
    pod::{MAX_SLOTS, Pod, Slot, SlotKind},
    preconditions::bound_names,
    warning::Warnings,
};
use crate::{
    credspec::{SpecName, compare::Expected},
    diagnostic::rules,
};

/// The pod template to check, or why there is none.
fn template(review: &Review) -> Result<&Pod, AllowReason> {
    let workload = review.workload.as_ref().ok_or(AllowReason::NoGmsa)?;
    if workload.is_controlled {
        return Err(AllowReason::Controlled);
    }
    let pod = workload.template.as_ref().ok_or(AllowReason::NoGmsa)?;
    if pod.is_linux() {
        return Err(AllowReason::Linux);
    }
    if pod.uses_gmsa() { Ok(pod) } else { Err(AllowReason::NoGmsa) }
}

/// The slots that name a credential spec by a name that can be one, up to the bound on one pod.
fn named(pod: &Pod) -> impl Iterator<Item = (Slot<'_>, SpecName)> {
    let mut seen: Vec<SpecName> = Vec::new();
    pod.slots().filter_map(|slot| slot.name.and_then(SpecName::parse).map(|name| (slot, name))).take_while(
        move |(_, name)| {
            Needs::add(&mut seen, name);
            seen.len() <= MAX_SPECS_PER_POD
        },
    )
}

pub(super) fn needs(review: &Review) -> Needs {
    let mut needs = Needs::default();
    let Ok(pod) = template(review) else { return needs };
    for (_, name) in named(pod) {
        Needs::add(&mut needs.specs, &name);
    }
    needs.subject = Subject::of(review, pod).ok().filter(|_| !needs.specs.is_empty());
    if needs.subject.is_some() {
        needs.uses.clone_from(&needs.specs);
    }
    needs
}

pub(super) fn decide(review: &Review, facts: &Facts) -> (AllowReason, Vec<String>) {
    let mut warnings = Warnings::default();
    let pod = match template(review) {
        Ok(pod) => pod,
        Err(reason) => return (reason, Vec::new()),
    };
    if pod.has_too_many_slots() {
        let sentence = format!("the pods have more than {} containers: they will be refused", MAX_SLOTS - 1);
        warnings.add(&rules::TOO_MANY_SLOTS, &sentence, &[]);
    }
    if bound_names(pod).is_err() {
        let sentence =
            format!("the pods name more than {MAX_SPECS_PER_POD} distinct GMSA cred specs: they will be refused");
        warnings.add(&rules::TOO_MANY_SPECS, &sentence, &[]);
    }
    unusable_names(pod, &mut warnings);
    if let Ok(subject) = Subject::of(review, pod) {
        check_specs(pod, &subject, facts, &mut warnings);
    } else {
        let sentence = "service account name {} is not a lower-case DNS subdomain: the pods will be refused";
        warnings.add(&rules::INVALID_SERVICE_ACCOUNT, sentence, &[pod.service_account()]);
    }
    let template = review.workload.as_ref();
    let beside = template.map(|workload| advice::advise_template(pod, &workload.unsupported, workload.replicas));
    for advice in advice::advise(pod).into_iter().chain(beside.into_iter().flatten()) {
        warnings.push(advice.rule, &advice.text);
    }
    (AllowReason::Workload, warnings.into_lines())
}

/// What is wrong with the template, independent of the cluster.
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

/// A slot in a sentence, with the name that the sentence leaves a place for: a template has none of its own.
fn place<'p>(slot: &Slot<'p>) -> (String, Vec<&'p str>) {
    match slot.kind {
        SlotKind::Pod => ("the pod template".to_owned(), Vec::new()),
        kind => (format!("{kind} {{}}"), vec![slot.owner]),
    }
}

/// What will happen to the slots with a name. Each credential spec is checked once, even if many slots name it.
fn check_specs(pod: &Pod, subject: &Subject, facts: &Facts, warnings: &mut Warnings) {
    let mut known: HashMap<SpecName, Option<Expected<'_>>> = HashMap::new();
    for (slot, name) in named(pod) {
        let spec = name.as_str();
        let is_first = !known.contains_key(&name);
        if is_first {
            unusable_spec(&name, facts, warnings);
        }
        let expected =
            known.entry(name.clone()).or_insert_with(|| facts.contents(&name).ok().map(|found| Expected::new(found)));
        if let (Some(own), Some(expected)) = (slot.contents, expected)
            && expected.compare(own).is_err()
        {
            let (place, mut names) = place(&slot);
            names.push(spec);
            let sentence = format!("{place} has other contents than GMSA cred spec {{}}: the pods will be refused");
            warnings.add(&rules::CONTENTS_DIFFER, &sentence, &names);
        }
        if is_first {
            permission(&name, subject, facts, warnings);
        }
    }
}

fn unusable_spec(name: &SpecName, facts: &Facts, warnings: &mut Warnings) {
    let (rule, sentence) = match facts.spec(name) {
        Some(SpecFact::Contents(_)) => return,
        Some(SpecFact::Missing) => (&rules::SPEC_MISSING, "GMSA cred spec {} does not exist: the pods will be refused"),
        Some(SpecFact::Unusable) => {
            (&rules::SPEC_UNUSABLE, "GMSA cred spec {} has no credspec key: the pods will be refused")
        }
        Some(SpecFact::Failed(_)) | None => {
            (&rules::SPEC_UNREADABLE, "GMSA cred spec {} could not be read, so this workload was not checked")
        }
    };
    warnings.add(rule, sentence, &[name.as_str()]);
}

fn permission(name: &SpecName, subject: &Subject, facts: &Facts, warnings: &mut Warnings) {
    let (rule, sentence) = match facts.may_use(name) {
        Some(UseFact::Allowed) => return,
        Some(UseFact::Denied { .. }) => {
            (&rules::NOT_AUTHORIZED, "service account {} may not use GMSA cred spec {}: the pods will be refused")
        }
        Some(UseFact::Failed(_)) | None => (
            &rules::AUTHORIZATION_FAILED,
            "it could not be checked whether service account {} may use GMSA cred spec {}",
        ),
    };
    warnings.add(rule, sentence, &[&subject.service_account, name.as_str()]);
}

#[cfg(test)]
mod tests;
