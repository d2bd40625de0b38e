//! `/validate-workload`: warns what will happen to the pods of a workload when the workload is applied, not when its pods
//! fail to start.
//!
//! Invariants: a workload is never refused here, because its pods are checked when they are created; a workload that another
//! one controls (the ReplicaSet of a Deployment) is skipped, because the owner has its own review.

use std::collections::HashSet;

use super::{
    AllowReason, Denial, MAX_SPECS_PER_POD, Needs, Review, Subject, advice,
    inquiry::{Inquiry, Stop},
    pod::{MAX_SLOTS, Pod, Slot, SlotKind},
    preconditions::bound_names,
    warning::Warnings,
};
use crate::{credspec::SpecName, diagnostic::rules};

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

pub(super) fn decide(review: &Review, inquiry: &mut Inquiry<'_>, lines: &mut Vec<String>) -> Result<AllowReason, Stop> {
    let pod = match template(review) {
        Ok(pod) => pod,
        Err(reason) => return Ok(reason),
    };
    let mut warnings = Warnings::default();
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
        check_specs(pod, &subject, inquiry, &mut warnings)?;
    } else {
        let sentence = "service account name {} is not a lower-case DNS subdomain: the pods will be refused";
        warnings.add(&rules::INVALID_SERVICE_ACCOUNT, sentence, &[pod.service_account()]);
    }
    let template = review.workload.as_ref();
    let beside = template.map(|workload| advice::advise_template(pod, &workload.unsupported, workload.replicas));
    for advice in advice::advise(pod).into_iter().chain(beside.into_iter().flatten()) {
        warnings.push(advice.rule, &advice.text);
    }
    lines.extend(warnings.into_lines());
    Ok(AllowReason::Workload)
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

/// What will happen to the slots with a name. Each credential spec is reported once, even if many slots name it.
fn check_specs(pod: &Pod, subject: &Subject, inquiry: &mut Inquiry<'_>, warnings: &mut Warnings) -> Result<(), Stop> {
    let mut asked = Vec::new();
    for (slot, name) in named(pod) {
        let may_use = inquiry.may_use(subject, &name);
        let contents = inquiry.contents(&name);
        asked.push((slot, name, contents, may_use));
    }
    if asked.iter().any(|(_, _, contents, may_use)| {
        matches!(contents, Err(Stop::Lacking)) || matches!(may_use, Err(Stop::Lacking))
    }) {
        return Err(Stop::Lacking);
    }
    let mut seen = HashSet::new();
    for (slot, name, contents, may_use) in &asked {
        let is_first = seen.insert(name);
        match contents {
            Ok(contents) => {
                if let Some(own) = slot.contents
                    && inquiry.compare(own, name, contents).is_err()
                {
                    let (place, mut names) = place(slot);
                    names.push(name.as_str());
                    let sentence =
                        format!("{place} has other contents than GMSA cred spec {{}}: the pods will be refused");
                    warnings.add(&rules::CONTENTS_DIFFER, &sentence, &names);
                }
            }
            Err(stop) if is_first => warn(stop, warnings),
            Err(_) => {}
        }
        if let Err(stop) = may_use
            && is_first
        {
            warn(stop, warnings);
        }
    }
    Ok(())
}

/// What a fact against the pods means for the workload.
fn warn(stop: &Stop, warnings: &mut Warnings) {
    let Stop::Denied(denial) = stop else { return };
    let (sentence, names) = match denial {
        Denial::SpecMissing(spec) => {
            ("GMSA cred spec {} does not exist: the pods will be refused", vec![spec.as_str()])
        }
        Denial::SpecUnusable(spec) => {
            ("GMSA cred spec {} has no credspec key: the pods will be refused", vec![spec.as_str()])
        }
        Denial::SpecUnreadable { spec, .. } => {
            ("GMSA cred spec {} could not be read, so this workload was not checked", vec![spec.as_str()])
        }
        Denial::NotAuthorized { service_account, spec, .. } => (
            "service account {} may not use GMSA cred spec {}: the pods will be refused",
            vec![service_account.as_str(), spec.as_str()],
        ),
        Denial::AuthorizationFailed { service_account, spec, .. } => (
            "it could not be checked whether service account {} may use GMSA cred spec {}",
            vec![service_account.as_str(), spec.as_str()],
        ),
        _ => return,
    };
    warnings.add(denial.rule(), sentence, &names);
}

#[cfg(test)]
mod tests;
