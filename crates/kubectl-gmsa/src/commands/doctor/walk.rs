//! One workload, or one pod, from its template to its containers, as far as the first cause.
//!
//! Invariant: each step has a line, also those that are not reached because a step before them fails.

use std::collections::HashMap;

use anyhow::{Context as _, bail};
use serde_json::value::RawValue;

use super::{
    cause::{self, ADMISSION, is_cause},
    containers::{CONTAINERS, INIT, SANDBOX},
    decision::{self, PERMISSION, TEMPLATE},
    events::Events,
    found, not_checked,
    scheduling::{Nodes, SCHEDULING, node_name},
    workload::{Object, Workload, assemble},
};
use crate::shared::{
    connection::Cluster,
    pods::{ClusterPod, ContentsState, FIX_UNMATCHED, contents_by_name},
    rules::{self, Names, Subject},
    workloads::Kind,
};
use gmsa_cluster::resolver::live::collection;
use gmsa_core::{
    admission::{advice::advise, pod::Pod},
    credspec::{Contents, CredentialSpec, SpecName, is_dns_label, is_dns_subdomain},
    diagnostic::{Check, Diagnostic},
};

const NEXT: &str = "in the pod";

/// The steps, in their order.
const STEPS: [&str; 8] = [TEMPLATE, PERMISSION, ADMISSION, SCHEDULING, SANDBOX, INIT, CONTAINERS, NEXT];

/// A workload as the user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// Where none is named, that of the context.
    namespace: Option<String>,
    kind: Kind,
    name: String,
}

impl Named {
    /// Reads `NAMESPACE/KIND/NAME`, or `KIND/NAME`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let (namespace, kind, name) = match parts.as_slice() {
            [namespace, kind, name] => (Some((*namespace).to_owned()), *kind, *name),
            [kind, name] => (None, *kind, *name),
            _ => return Err("expected NAMESPACE/KIND/NAME".to_owned()),
        };
        if namespace.as_ref().is_some_and(|namespace| !is_dns_label(namespace)) || !is_dns_subdomain(name) {
            return Err("expected NAMESPACE/KIND/NAME, with names in lower case".to_owned());
        }
        let kind = Kind::of_word(kind).ok_or_else(|| {
            format!("{kind:?} is none of deploy, sts, ds, rs, job and cronjob; for a pod there is --pod")
        })?;
        Ok(Self { namespace, kind, name: name.to_owned() })
    }
}

/// Adds a line for each step that was not reached, where one before it fails.
fn with_unreached(mut checks: Vec<Check>) -> Vec<Check> {
    let cause = checks.iter().find(|check| is_cause(check)).map(|check| check.about);
    let Some(at) = cause.and_then(|cause| STEPS.iter().position(|step| *step == cause)) else { return checks };
    let unreached =
        |step: &&'static str| Check::found(step, Diagnostic::new(&rules::NOT_CHECKED, "not reached").with_fix(""));
    checks.extend(STEPS.iter().skip(at + 1).map(unreached));
    checks
}

pub(super) async fn workload(cluster: &Cluster, named: &Named) -> anyhow::Result<Vec<Check>> {
    let namespace = named.namespace.as_deref().unwrap_or(&cluster.namespace);
    if !is_dns_label(namespace) {
        bail!("{namespace:?} is not the name of a namespace");
    }
    let (workload, events) = tokio::join!(read(cluster, namespace, named), Events::read(cluster, Some(namespace)));
    let Some(workload) = workload? else {
        let text = "its pod template does not use GMSA: `kubectl gmsa check` finds a field that is misspelt or in the wrong place";
        return Ok(vec![found(TEMPLATE, &rules::NO_CREDENTIAL_SPEC, text)]);
    };
    let subject = workload.subject();
    let mut checks = decision::checks(cluster, namespace, &workload.template, subject).await?;
    if checks.iter().any(is_cause) {
        return Ok(with_unreached(checks));
    }
    let (events, unread) = known(events);
    let pods: Vec<&ClusterPod> = workload.pods().collect();
    let nodes = nodes(cluster, &pods).await;
    let worst = cause::worst(&workload, &nodes, &events);
    let created = cause::created(&workload, worst.as_ref(), &events);
    // Where no event can be read, the reason may be in one.
    let broken = is_cause(&created) || worst.as_ref().is_some_and(|(_, checks)| checks.iter().any(is_cause));
    checks.extend(unread.filter(|_| broken));
    if is_cause(&created) {
        checks.push(decision::not_up_to_date(created, &workload));
        return Ok(with_unreached(checks));
    }
    let Some((pod, steps)) = worst else {
        checks.push(created);
        return Ok(checks);
    };
    let Check { about, result } = created;
    let (_, name) = pod.place();
    checks.push(Check { about, result: result.map(|text| format!("{text}; what follows is of {name}")) });
    checks.extend(contents(cluster, &pod.admission).await.filter(|check| check.severity().is_some()));
    let more = if broken { None } else { cause::leftovers(&workload, &nodes, &events) };
    Ok(walked(pod, steps, checks, more))
}

/// The workload; `None` where it does not use GMSA.
async fn read(cluster: &Cluster, namespace: &str, named: &Named) -> anyhow::Result<Option<Workload>> {
    let Named { kind, name, .. } = named;
    let top: Option<Object> = cluster.find(&format!("{}/{name}", kind.collection(Some(namespace)))).await?;
    let top = top.with_context(|| format!("there is no {} {namespace}/{name}", kind.as_str()))?;
    let mut objects = vec![(*kind, top)];
    let below = match kind {
        Kind::Deployment => Some(Kind::ReplicaSet),
        Kind::CronJob => Some(Kind::Job),
        _ => None,
    };
    if let Some(below) = below {
        let read: Vec<Object> = cluster.list(&below.collection(Some(namespace))).await?;
        objects.extend(read.into_iter().map(|object| (below, object)));
    }
    let pods: Vec<Box<RawValue>> = cluster.list(&format!("/api/v1/namespaces/{namespace}/pods")).await?;
    let workloads = assemble(objects, &pods);
    Ok(workloads.into_iter().find(|workload| workload.kind == *kind && workload.name == *name))
}

pub(super) async fn pod(cluster: &Cluster, named: &str) -> anyhow::Result<Vec<Check>> {
    let (namespace, _, pod) = ClusterPod::find(cluster, named).await?;
    let subject = Subject::Pod { namespace: &namespace };
    let mut checks = Vec::new();
    if pod.admission.uses_gmsa() {
        let template = decision::without_contents(&pod)?;
        checks = decision::checks(cluster, &namespace, &template, subject).await?;
        if checks.iter().any(is_cause) {
            return Ok(with_unreached(checks));
        }
    }
    checks.extend(contents(cluster, &pod.admission).await);
    for advice in advise(&pod.admission) {
        checks.push(found(ADMISSION, advice.rule, advice.text));
    }
    let events = Events::read(cluster, Some(&namespace));
    let pods = [&pod];
    let (events, nodes) = tokio::join!(events, nodes(cluster, &pods));
    let (events, unread) = known(events);
    let steps = cause::steps(&pod, subject, &nodes, &events);
    checks.extend(unread.filter(|_| steps.iter().any(is_cause)));
    Ok(walked(&pod, steps, checks, None))
}

/// The steps of a pod after those before it, and what to run next where all is well.
fn walked(pod: &ClusterPod, steps: Vec<Check>, mut checks: Vec<Check>, more: Option<Check>) -> Vec<Check> {
    if checks.iter().any(is_cause) {
        return with_unreached(checks);
    }
    let (namespace, name) = pod.place();
    let is_next = pod.phase() == "Running" && pod.admission.uses_gmsa() && !steps.iter().any(is_cause);
    checks.extend(steps);
    checks.extend(more);
    if is_next && is_dns_label(namespace) && is_dns_subdomain(name) {
        checks.push(Check::pass(NEXT, format!("run: kubectl gmsa verify {namespace}/{name}")));
    }
    with_unreached(checks)
}

/// The events, and a check where they could not be read.
fn known(events: anyhow::Result<Events>) -> (Events, Option<Check>) {
    match events {
        Ok(events) => (events, None),
        Err(error) => (Events::default(), Some(not_checked("events", &error))),
    }
}

/// The nodes of these pods, and the Windows nodes where a pod does not run.
async fn nodes(cluster: &Cluster, pods: &[&ClusterPod]) -> Nodes {
    let mut nodes = Nodes::default();
    if pods.iter().any(|pod| node_name(pod).is_none() || pod.phase() != "Running") {
        nodes.windows = cluster.list(Nodes::WINDOWS).await.ok();
    }
    nodes.add(cluster, pods.iter().copied()).await;
    nodes
}

/// The step: whether a pod that exists carries what its credential specs hold.
async fn contents(cluster: &Cluster, pod: &Pod) -> impl Iterator<Item = Check> {
    let mut names: Vec<SpecName> = pod.slots().filter_map(|slot| slot.name.and_then(SpecName::parse)).collect();
    names.sort();
    names.dedup();
    let (mut specs, mut unread) = (Vec::<CredentialSpec>::new(), None);
    for name in names {
        match cluster.find(&format!("{}/{name}", collection())).await {
            Ok(spec) => specs.extend(spec),
            Err(error) => unread = Some(error),
        }
    }
    std::iter::once(carried(pod, &contents_by_name(specs), unread.as_ref()))
}

/// `unread` is why a credential spec could not be read.
fn carried(pod: &Pod, contents: &HashMap<String, Contents>, unread: Option<&anyhow::Error>) -> Check {
    let state = ContentsState::of(pod, contents);
    let outdated = |text: &str| Diagnostic::new(&rules::CONTENTS_OUTDATED, text);
    match (state, unread) {
        (ContentsState::Unmatched, Some(error)) => not_checked(ADMISSION, error),
        (ContentsState::NoGmsa, _) => found(ADMISSION, &rules::NO_CREDENTIAL_SPEC, "the pod does not use GMSA"),
        (ContentsState::UpToDate, _) => Check::pass(ADMISSION, "the pod carries the contents of its credential spec"),
        (ContentsState::WithoutContents, _) => {
            let text = "the pod names a credential spec and carries no contents: the webhook did not review it";
            let names = Names { exists: true, ..Names::default() };
            Check::found(ADMISSION, rules::found(&rules::NAME_WITHOUT_CONTENTS, text, &names))
        }
        (ContentsState::Outdated, _) => {
            Check::found(ADMISSION, outdated("the pod carries other contents than its credential spec has now"))
        }
        (ContentsState::Unmatched, None) => {
            let text = "the pod carries contents, and there is no credential spec to compare them with";
            Check::found(ADMISSION, outdated(text).with_fix(FIX_UNMATCHED))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_is_named_by_namespace_kind_and_name() {
        let named = |namespace: Option<&str>, kind| {
            Ok(Named { namespace: namespace.map(str::to_owned), kind, name: "web".to_owned() })
        };
        assert_eq!(Named::parse("shop/deploy/web"), named(Some("shop"), Kind::Deployment));
        assert_eq!(Named::parse("sts/web"), named(None, Kind::StatefulSet));
        for (text, error) in [
            ("web", "expected NAMESPACE/KIND/NAME"),
            ("a/b/c/d", "expected NAMESPACE/KIND/NAME"),
            ("shop/deploy/Web", "expected NAMESPACE/KIND/NAME, with names in lower case"),
            ("a?b/deploy/web", "expected NAMESPACE/KIND/NAME, with names in lower case"),
            ("shop/pod/web", "\"pod\" is none of deploy, sts, ds, rs, job and cronjob; for a pod there is --pod"),
        ] {
            assert_eq!(Named::parse(text), Err(error.to_owned()), "{text}");
        }
    }
}
