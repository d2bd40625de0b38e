//! The checks of one workload or one pod, from its template to its containers, up to the first cause. `worst.rs` chooses the pod that
//! explains a workload.
//!
//! Invariant: after a step that fails, each later step has a line too, which says that it was not reached.

use std::{collections::HashMap, fmt};

use anyhow::Context as _;
use gmsa_core::{
    admission::{Denial, SpecFact, Webhook, advice::advise, workload::PodCount},
    credspec::{Contents, SpecName, is_dns_label, is_dns_subdomain},
    diagnostic::{Check, Diagnostic, Severity},
};
use k8s_openapi::api::core::v1::Namespace;

use super::{
    admission::{NewPod, Reviewed, labels},
    configured::Configured,
    kinds::{Kind, is_pod},
    pods::{ClusterPod, ContentsState, FIX_UNMATCHED},
    rules::{self, FixTarget},
    unread::{Read, because, is_cause, not_reached},
    webhook::{installer, replica},
    world::World,
};

pub mod containers;
mod controller;
pub mod decision;
pub mod events;
pub mod nodes;
pub mod scheduling;
pub mod tickets;
pub mod workload;
pub mod worst;

use containers::{CONTAINERS, INIT, SANDBOX, Seen};
use decision::{PERMISSION, TEMPLATE, ending_namespace, finding_or_skip};
use events::Events;
use nodes::Nodes;
use scheduling::SCHEDULING;
use workload::WorkloadTree;
use worst::ADMISSION;

const NAMESPACE: &str = "namespace";
const WEBHOOKS: &str = "webhooks";
const IN_THE_POD: &str = "in the pod";

/// The steps, in their order; the name of each is beside its code.
const STEPS: [&str; 8] = [TEMPLATE, PERMISSION, ADMISSION, SCHEDULING, SANDBOX, INIT, CONTAINERS, IN_THE_POD];

/// The object to check, by kind and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRef {
    pub kind: RefKind,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefKind {
    Pod,
    Workload(Kind),
    /// A controller of another kind, as typed; it may have pods or ReplicaSets.
    Other(String),
}

impl fmt::Display for ObjectRef {
    /// `deployment/web`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            RefKind::Pod => "pod",
            RefKind::Workload(kind) => &kind.as_str().to_ascii_lowercase(),
            RefKind::Other(word) => word,
        };
        write!(f, "{kind}/{}", self.name)
    }
}

impl ObjectRef {
    /// Parses `TYPE/NAME` as `kubectl` does.
    pub fn parse(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected TYPE/NAME with a lower-case name, such as deploy/web or pod/web-0";
        let (word, name) = text.split_once('/').ok_or_else(|| match text {
            kind if is_pod(kind) || Kind::of_word(kind).is_some() => {
                format!("expected TYPE/NAME: is {kind}/NAME meant?")
            }
            name if is_dns_subdomain(name) => format!("expected TYPE/NAME: is deploy/{name} or pod/{name} meant?"),
            _ => EXPECTED.to_owned(),
        })?;
        if !is_dns_subdomain(name) || !is_dns_subdomain(&word.to_ascii_lowercase()) {
            return Err(EXPECTED.to_owned());
        }
        let kind = match Kind::of_word(word) {
            _ if is_pod(word) => RefKind::Pod,
            Some(kind) => RefKind::Workload(kind),
            None => RefKind::Other(word.to_ascii_lowercase()),
        };
        Ok(Self { kind, name: name.to_owned() })
    }

    /// The lines of the steps, in their order.
    pub async fn lines(&self, world: &World) -> anyhow::Result<Vec<Check>> {
        let namespace = world.valid_namespace()?;
        // In a namespace that is being deleted, no other step matters.
        let ending = ending_namespace(world, namespace).await;
        let mut checks = match (ending, &self.kind) {
            (Some(ending), _) => vec![Check::found(NAMESPACE, ending)],
            (None, RefKind::Pod) => Box::pin(pod(world, &self.name)).await?,
            (None, RefKind::Workload(kind)) => Box::pin(workload(world, *kind, &self.name)).await?,
            (None, RefKind::Other(typed)) => Box::pin(controller::lines(world, typed, &self.name)).await?,
        };
        if let Some(cause) = checks.iter().find(|check| is_cause(check)) {
            let after = STEPS.iter().position(|step| *step == cause.about).map_or(0, |at| at + 1);
            checks.extend(STEPS.iter().skip(after).map(|step| not_reached(step)));
        }
        Ok(checks)
    }
}

async fn workload(world: &World, kind: Kind, name: &str) -> anyhow::Result<Vec<Check>> {
    let namespace = world.namespace.as_str();
    let (workload, events) =
        tokio::join!(WorkloadTree::expect(world, kind, name), Events::read(world, Some(namespace)));
    let workload = workload?;
    let parsed = workload.template.pod().context("its pod template cannot be parsed")?;
    if !parsed.uses_gmsa() && parsed.asks_tickets_of().next().is_none() {
        let text = "its pod template does not use GMSA: `kubectl gmsa check` finds a field that is misspelt or in the wrong place";
        return Ok(vec![Check::breach(TEMPLATE, &rules::NO_CREDENTIAL_SPEC, text)]);
    }
    let target = workload.target();
    let mut checks = decision::checks(world, &workload.template, target).await?;
    if !checks.iter().any(is_cause) {
        checks.extend(unreviewed_template(world, &workload).await);
    }
    if checks.iter().any(is_cause) {
        return Ok(checks);
    }
    let pods: Vec<&ClusterPod> = workload.pods().collect();
    let nodes = Nodes::read(world, &pods, workload.kind.facts().pod_count == PodCount::Nodes).await;
    let (created, worst) = worst::walked(&workload, &nodes, &events);
    // Without the right to read events the cause may be missing.
    let is_broken = is_cause(&created) || worst.iter().flat_map(|(_, steps)| steps).any(is_cause);
    checks.extend(events.not_read().filter(|_| is_broken));
    if is_cause(&created) {
        // Only if both steps were checked.
        let is_admitted = [TEMPLATE, PERMISSION]
            .iter()
            .all(|step| checks.iter().any(|check| check.about == *step && check.result.is_ok()));
        checks.push(if is_admitted { decision::retried_by_controller(created, &workload) } else { created });
        return Ok(checks);
    }
    let Some((pod, steps)) = worst else {
        checks.push(created);
        return Ok(checks);
    };
    let Check { about, result } = created;
    let (_, name) = pod.place();
    checks.push(Check { about, result: result.map(|text| format!("{text}; what follows is of {name}")) });
    let admission = match finding_or_skip(unreviewed(world, pod).await, WEBHOOKS, &mut checks) {
        Some(unreviewed) => Check::found(ADMISSION, unreviewed),
        None => contents(world, pod).await,
    };
    // The line about the creation of the pods stands for a pass.
    checks.extend(Some(admission).filter(|check| check.severity().is_some()));
    Ok(with_steps(world, pod, target, steps, checks).await)
}

async fn pod(world: &World, name: &str) -> anyhow::Result<Vec<Check>> {
    let pod = ClusterPod::find(world, name).await?;
    let namespace = world.namespace.as_str();
    let target = FixTarget::Pod { namespace };
    let mut checks = Vec::new();
    if pod.admission.uses_gmsa() && pod.is_static() {
        let text =
            "a static pod: its kubelet runs it from a file of the node, without the contents that a webhook fills in";
        let fix = "Run it by a DaemonSet or a Deployment: a static Pod cannot use a credential spec by its name.";
        checks.push(Check::found(ADMISSION, Diagnostic::new(&rules::NAME_WITHOUT_CONTENTS, text).with_fix(fix)));
    } else if pod.admission.uses_gmsa() || pod.admission.asks_tickets_of().next().is_some() {
        let template = NewPod::new(namespace, decision::as_created(&pod)?);
        checks = decision::checks(world, &template, target).await?;
        // A pod that no webhook reviewed has an unchecked permission.
        if let Some(unreviewed) = finding_or_skip(unreviewed(world, &pod).await, WEBHOOKS, &mut checks) {
            checks.retain(|check| !is_cause(check));
            checks.push(Check::found(ADMISSION, unreviewed));
        }
    }
    if checks.iter().any(is_cause) {
        return Ok(checks);
    }
    checks.push(contents(world, &pod).await);
    let advice = advise(&pod.admission);
    checks.extend(advice.into_iter().map(|found| Check::breach(ADMISSION, found.rule, found.message)));
    let pods = [&pod];
    let (events, nodes) = tokio::join!(Events::read(world, Some(namespace)), Nodes::read(world, &pods, false));
    let steps = Seen { pod: &pod, target, nodes: &nodes, events: &events }.steps();
    checks.extend(events.not_read().filter(|_| steps.iter().any(is_cause)));
    Ok(with_steps(world, &pod, target, steps, checks).await)
}

/// Adds the steps of a pod, with its tickets, and the command that asks the containers themselves if all pass; nothing after a cause.
async fn with_steps(
    world: &World,
    pod: &ClusterPod,
    target: FixTarget<'_>,
    mut steps: Vec<Check>,
    mut checks: Vec<Check>,
) -> Vec<Check> {
    if checks.iter().any(is_cause) {
        return checks;
    }
    tickets::add(world, pod, target, &mut steps).await;
    checks.extend(steps);
    let (namespace, name) = pod.place();
    let is_running = pod.phase() == "Running" && pod.object.metadata.deletion_timestamp.is_none();
    let is_next = is_running && pod.admission.uses_gmsa() && !checks.iter().any(is_cause);
    if is_next && is_dns_label(namespace) && is_dns_subdomain(name) {
        let is_container_user = |user: &str| user.to_ascii_lowercase().ends_with("containeruser");
        let text = if pod.admission.slots().filter_map(|slot| slot.run_as_user).any(is_container_user) {
            "a container runs as ContainerUser: its processes have no identity in the domain, services and IIS application pools may"
        } else {
            "nothing has asked a container yet whether it has its identity"
        };
        let fix = format!("run: kubectl gmsa verify pod/{name} -n {namespace}");
        checks.push(Check::found(IN_THE_POD, Diagnostic::new(&rules::NOT_VERIFIED, text).with_fix(fix)));
    }
    checks
}

/// The step: whether the contents in an existing pod match its credential specs.
async fn contents(world: &World, of: &ClusterPod) -> Check {
    if of.admission.asks_tickets_of().next().is_some() {
        let text = "the pod has a token for the broker of tickets, by which its sidecar asks";
        let result = tickets::not_injected(world, of).await.map_or_else(|| Ok(text.to_owned()), Err);
        return Check { about: ADMISSION, result };
    }
    let (pod, mut contents, mut unread) = (&of.admission, HashMap::new(), None);
    for name in pod.slots().filter_map(|slot| slot.name.and_then(SpecName::parse)) {
        match world.spec(&name).await {
            SpecFact::Contents(known) => drop(contents.insert(name.to_string(), known)),
            SpecFact::Failed(failure) => unread = Some(Denial::SpecUnreadable { spec: name, failure }),
            SpecFact::Missing | SpecFact::Unusable => {}
        }
    }
    let unread = unread.as_ref().and_then(|denial| world.unread_fact(denial, ""));
    let (rule, text, fix) = match (ContentsState::of(pod, &contents), unread) {
        (ContentsState::Unmatched, Some((cause, remedy))) => return because(ADMISSION, cause, remedy),
        (ContentsState::UpToDate, _) => {
            return Check::pass(ADMISSION, "the pod carries the contents of its credential spec");
        }
        (ContentsState::NoGmsa, _) => (&rules::NO_CREDENTIAL_SPEC, "the pod does not use GMSA", None),
        (ContentsState::WithoutContents, _) => {
            // Without the right to read configurations a missing webhook goes unnoticed.
            let again = if world.webhooks().await.is_err() {
                " If that one has no contents either, no webhook reviews it: ask a cluster administrator to run `kubectl gmsa doctor`."
            } else {
                ""
            };
            let text = "the pod names a credential spec and carries no contents: the webhook did not review it";
            (&rules::NAME_WITHOUT_CONTENTS, text, of.created_again().map(|fix| fix + again))
        }
        (ContentsState::Outdated, _) => {
            let text = "the pod carries other contents than its credential spec has now";
            (&rules::CONTENTS_OUTDATED, text, of.created_again())
        }
        (ContentsState::Unmatched, None) => {
            let text = "the pod carries contents, and there is no credential spec to compare them with";
            (&rules::CONTENTS_OUTDATED, text, Some(FIX_UNMATCHED.to_owned()))
        }
    };
    Check::found(ADMISSION, Diagnostic::new(rule, text).fixed(fix))
}

/// The finding that the API server would refuse the pods: only the validating webhook reviews them, not the mutating one.
async fn unreviewed_template(world: &World, workload: &WorkloadTree) -> Option<Check> {
    // Pods that ask for tickets are created without them.
    workload.template.pod().filter(|pod| pod.uses_gmsa())?;
    // After a failed read, the event of a refused pod says that it has no contents.
    let webhooks = world.webhooks().await.ok()?;
    let namespace = world.namespace(&workload.namespace).await.ok()??.metadata.labels.unwrap_or_default();
    let reviewed = Reviewed::of(webhooks, &namespace, &labels(&workload.template.json));
    if reviewed.webhooks != [Webhook::Validate] {
        return None;
    }
    let found = reviewed.problem()?;
    let message = format!("{}: {}", found.message, found.consequence.unwrap_or_default());
    let found = Diagnostic { message, consequence: None, ..found };
    Some(Check::found(ADMISSION, found.with_severity(Severity::Error)))
}

/// The finding that no webhook reviewed the pod, because there is none or its namespace is left out.
pub async fn unreviewed(world: &World, pod: &ClusterPod) -> Read<Option<Diagnostic>> {
    let missing = tickets::missing_product(&pod.admission);
    let (lacks, what) = if let Some(verb) = missing {
        (&*format!("the pod asks for {} and has no sidecar for that", verb.product().of_a_pod), "the sidecar")
    } else if ContentsState::of::<Contents>(&pod.admission, &HashMap::new()) == ContentsState::WithoutContents {
        ("the pod names a credential spec and carries no contents", "contents")
    } else {
        return Ok(None);
    };
    let webhooks = world.webhooks().await?;
    let (namespace, _) = pod.place();
    let mutating: Vec<&Configured> = webhooks.iter().filter(|found| found.mutating && found.is_of_pods()).collect();
    if mutating.is_empty() {
        let text = format!("{lacks}: no MutatingWebhookConfiguration sends pods to a GMSA webhook");
        let found = Diagnostic::new(&rules::WEBHOOK_MISSING, text);
        let installer = installer(world).await;
        let pod = pod.created_again().map(|fix| format!(" Pods get {what} only when they are created. {fix}"));
        let fix =
            installer.map(|installer| format!("{} creates it again.{}", installer.restore(), pod.unwrap_or_default()));
        return Ok(Some(Diagnostic { fix, ..found }));
    }
    let Namespace { metadata, .. } = world.get(&format!("/api/v1/namespaces/{namespace}")).await?;
    let excludes = |found: &Configured| found.selects(metadata.labels.as_ref()).is_ok_and(|selected| !selected);
    if let Some(Configured { name, .. }) = mutating.first().filter(|_| mutating.iter().all(|found| excludes(found))) {
        let text = format!("{lacks}: {name} does not review pods in {namespace}");
        return Ok(Some(Diagnostic::new(&rules::NAMESPACES_EXCLUDED, text).with_severity(Severity::Error)));
    }
    if missing.is_some() {
        // Without it, `tickets::not_injected` does not see that the webhook is installed without tickets.
        replica(world).await?;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_or_a_pod_is_named_as_kubectl_names_it() {
        let named = |kind| Ok(ObjectRef { kind, name: "web".to_owned() });
        assert_eq!(ObjectRef::parse("deploy/web"), named(RefKind::Workload(Kind::Deployment)));
        assert_eq!(ObjectRef::parse("StatefulSet.apps/web"), named(RefKind::Workload(Kind::StatefulSet)));
        assert_eq!(ObjectRef::parse("deployments.v1.apps/web"), named(RefKind::Workload(Kind::Deployment)));
        assert_eq!(ObjectRef::parse("po/web"), named(RefKind::Pod));
        assert_eq!(
            ObjectRef::parse("Rollout.argoproj.io/web"),
            named(RefKind::Other("rollout.argoproj.io".to_owned()))
        );
        for (text, meant) in [("web", "deploy/web or pod/web"), ("deploy", "deploy/NAME"), ("po", "po/NAME")] {
            assert_eq!(ObjectRef::parse(text), Err(format!("expected TYPE/NAME: is {meant} meant?")));
        }
        for text in ["Web", "deploy/Web", "shop/deploy/web", "/web", "a b/web"] {
            let expected = "expected TYPE/NAME with a lower-case name, such as deploy/web or pod/web-0";
            assert_eq!(ObjectRef::parse(text), Err(expected.to_owned()), "{text}");
        }
    }
}
