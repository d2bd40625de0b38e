//! `/validate-workload`: what will happen to the pods of a workload, said when the workload is applied rather than when
//! its pods fail to appear.
//!
//! What always holds: a workload is never refused here, for its pods are judged when they come; a workload that another
//! one controls (the ReplicaSet of a Deployment) is passed over, for its owner was told.

use serde::Deserialize;

use super::{
    Facts, Grounds, Needs, Review, SpecFact, Subject, UseFact, advice,
    pod::{Pod, Slot, SlotKind},
    review::null_is_default,
    validate::subject,
    warning::Warnings,
};
use crate::credspec::SpecName;

/// The kinds that carry a pod template, each with its group, as a [`Review`] names them.
pub const KINDS: [&str; 7] = [
    "CronJob.batch",
    "DaemonSet.apps",
    "Deployment.apps",
    "Job.batch",
    "ReplicaSet.apps",
    "ReplicationController",
    "StatefulSet.apps",
];

/// Where the pod template of a kind stands, as a JSON Pointer (RFC 6901); `None` for what is no workload.
#[must_use]
pub fn template_pointer(kind: &str) -> Option<&'static str> {
    match kind {
        "CronJob.batch" => Some("/spec/jobTemplate/spec/template"),
        _ => KINDS.contains(&kind).then_some("/spec/template"),
    }
}

/// The parts of a workload that matter, borrowed from the request.
#[derive(Debug, Default, Deserialize)]
pub struct Workload<'a> {
    #[serde(default, deserialize_with = "null_is_default")]
    metadata: Metadata,
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    spec: Spec<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default, deserialize_with = "null_is_default")]
    owner_references: Vec<Owner>,
}

#[derive(Debug, Deserialize)]
struct Owner {
    #[serde(default, deserialize_with = "null_is_default")]
    controller: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    #[serde(borrow)]
    template: Option<Box<Pod<'a>>>,
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    job_template: JobTemplate<'a>,
}

/// A `CronJob` holds its pod template one level deeper than the rest.
#[derive(Debug, Default, Deserialize)]
struct JobTemplate<'a> {
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    spec: JobSpec<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct JobSpec<'a> {
    #[serde(borrow)]
    template: Option<Box<Pod<'a>>>,
}

impl<'a> Workload<'a> {
    /// The template of the pods.
    #[must_use]
    pub fn template(&self) -> Option<&Pod<'a>> {
        self.spec.template.as_deref().or(self.spec.job_template.spec.template.as_deref())
    }

    /// Whether another object controls this one.
    #[must_use]
    pub fn is_controlled(&self) -> bool {
        self.metadata.owner_references.iter().any(|owner| owner.controller)
    }
}

/// The template to look at, or on what grounds there is none.
fn template<'r, 'a>(review: &'r Review<'a>) -> Result<&'r Pod<'a>, Grounds> {
    let workload = review.workload.as_ref().ok_or(Grounds::NoGmsa)?;
    if workload.is_controlled() {
        return Err(Grounds::Controlled);
    }
    let pod = workload.template().ok_or(Grounds::NoGmsa)?;
    if pod.is_linux() {
        return Err(Grounds::Linux);
    }
    if pod.slots().all(|slot| slot.name.is_none() && slot.contents.is_none()) {
        return Err(Grounds::NoGmsa);
    }
    Ok(pod)
}

/// The slots that name a credential spec by a name that can be one, up to the bound on one pod.
fn named<'r>(pod: &'r Pod<'_>) -> impl Iterator<Item = (Slot<'r>, SpecName)> {
    let mut seen: Vec<SpecName> = Vec::new();
    pod.slots().filter_map(|slot| slot.name.and_then(SpecName::parse).map(|name| (slot, name))).filter(
        move |(_, name)| {
            Needs::add(&mut seen, name);
            seen.len() <= super::MAX_SPECS_PER_POD
        },
    )
}

pub(super) fn needs(review: &Review<'_>) -> Needs {
    let mut needs = Needs::default();
    let Ok(pod) = template(review) else { return needs };
    for (_, name) in named(pod) {
        Needs::add(&mut needs.specs, &name);
    }
    needs.subject = subject(review, pod).ok().filter(|_| !needs.specs.is_empty());
    if needs.subject.is_some() {
        needs.uses.clone_from(&needs.specs);
    }
    needs
}

pub(super) fn decide(review: &Review<'_>, facts: &Facts) -> (Grounds, Vec<String>) {
    let mut warnings = Warnings::default();
    let pod = match template(review) {
        Ok(pod) => pod,
        Err(grounds) => return (grounds, Vec::new()),
    };
    if super::bound_names(pod).is_err() {
        let most = super::MAX_SPECS_PER_POD;
        warnings.add(&format!("the pods name more than {most} distinct GMSA cred specs: they will be refused"), &[]);
    }
    unusable_names(pod, &mut warnings);
    match subject(review, pod) {
        Ok(subject) => named(pod).for_each(|(slot, name)| foresee(&slot, &name, &subject, facts, &mut warnings)),
        Err(_) => warnings.add(
            "service account name {} is not a lower-case DNS subdomain: the pods will be refused",
            &[pod.service_account()],
        ),
    }
    for advice in advice::advise(pod) {
        warnings.push(advice.text);
    }
    (Grounds::Workload, warnings.into_lines())
}

/// What is wrong with the template whatever the cluster holds.
fn unusable_names(pod: &Pod<'_>, warnings: &mut Warnings) {
    for slot in pod.slots() {
        match (slot.name, slot.contents) {
            (None, Some(_)) => {
                let (place, names) = place(&slot);
                let sentence =
                    format!("{place} has GMSA cred spec contents without its name: the pods will be refused");
                warnings.add(&sentence, &names);
            }
            (Some(name), _) if SpecName::parse(name).is_none() => warnings
                .add("GMSA cred spec name {} is not a lower-case DNS subdomain: the pods will be refused", &[name]),
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

/// What will become of one slot.
fn foresee(slot: &Slot<'_>, name: &SpecName, subject: &Subject, facts: &Facts, warnings: &mut Warnings) {
    let spec = name.as_str();
    match facts.spec(name) {
        Some(SpecFact::Contents(contents)) => {
            if slot.contents.is_some_and(|carried| carried.compare(contents).is_err()) {
                let (place, mut names) = place(slot);
                names.push(spec);
                let sentence = format!("{place} has other contents than GMSA cred spec {{}}: the pods will be refused");
                warnings.add(&sentence, &names);
            }
        }
        Some(SpecFact::Missing) => warnings.add("GMSA cred spec {} does not exist: the pods will be refused", &[spec]),
        Some(SpecFact::Unusable) => {
            warnings.add("GMSA cred spec {} has no credspec key: the pods will be refused", &[spec]);
        }
        Some(SpecFact::Failed(_)) | None => {
            warnings.add("GMSA cred spec {} could not be read, so this workload was not checked", &[spec]);
        }
    }
    match facts.may_use(name) {
        Some(UseFact::Allowed) => {}
        Some(UseFact::Denied { .. }) => warnings.add(
            "service account {} may not use GMSA cred spec {}: the pods will be refused",
            &[&subject.service_account, spec],
        ),
        Some(UseFact::Failed(_)) | None => warnings.add(
            "it could not be checked whether service account {} may use GMSA cred spec {}",
            &[&subject.service_account, spec],
        ),
    }
}

#[cfg(test)]
mod tests;
