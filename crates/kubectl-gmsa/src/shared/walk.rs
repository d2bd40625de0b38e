//! One workload, or one pod, from its template to its containers, as far as the first cause.
//!
//! Invariant: each step has a line, even if an earlier step fails and it is not reached.

use std::collections::HashMap;

use super::{
    admission::FactFinder,
    pods::{ClusterPod, ContentsState, FIX_UNMATCHED},
    rules::{self, Names, Subject},
    snapshot::Snapshot,
    start::{
        cause::{self, ADMISSION},
        containers::{CONTAINERS, INIT, SANDBOX},
        events::Events,
        is_cause,
        scheduling::{Nodes, SCHEDULING, node_name},
        steps,
        workload::{Workload, controller},
    },
    unread::because,
    webhook::{Configured, configured, installer},
    workloads::{Kind, is_pod},
};
use anyhow::{Context as _, ensure};
use gmsa_core::{
    admission::{Denial, SpecFact, advice::advise},
    credspec::{Contents, SpecName, is_dns_label, is_dns_subdomain},
    diagnostic::{Check, Diagnostic, Severity},
};
use k8s_openapi::api::core::v1::Namespace;

mod decision;

use decision::{PERMISSION, TEMPLATE};

const NEXT: &str = "in the pod";

/// The steps, in their order.
const STEPS: [&str; 8] = [TEMPLATE, PERMISSION, ADMISSION, SCHEDULING, SANDBOX, INIT, CONTAINERS, NEXT];

/// What is walked through: a workload, or a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walkthrough {
    /// `None` for the namespace of the context.
    namespace: Option<String>,
    /// `None` for a pod.
    kind: Option<Kind>,
    name: String,
}

impl Walkthrough {
    /// Reads `TYPE/NAME`, as `kubectl` has it.
    pub fn parse(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected TYPE/NAME, such as deploy/web or pod/web-0";
        let (word, name) = text.split_once('/').ok_or(EXPECTED)?;
        let kind = if is_pod(word) { None } else { Some(Kind::of_word(word).ok_or_else(|| no_kind(word, "pod"))?) };
        Ok(Self { kind, ..Self::of(None, name, EXPECTED)? })
    }

    /// Reads `NAMESPACE/KIND/NAME`, or `KIND/NAME`, of a workload.
    pub fn parse_workload(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let (namespace, kind, name) = match *parts.as_slice() {
            [namespace, kind, name] => (Some(namespace), kind, name),
            [kind, name] => (None, kind, name),
            _ => return Err("expected NAMESPACE/KIND/NAME".to_owned()),
        };
        let named = Self::of(namespace, name, "expected NAMESPACE/KIND/NAME, with names in lower case")?;
        let kind = Kind::of_word(kind).ok_or_else(|| no_kind(kind, "--pod for a pod"))?;
        Ok(Self { kind: Some(kind), ..named })
    }

    /// Reads `NAMESPACE/NAME`, or `NAME`, of a pod.
    pub fn parse_pod(text: &str) -> Result<Self, String> {
        let (namespace, name) = text.split_once('/').map_or((None, text), |(namespace, name)| (Some(namespace), name));
        Self::of(namespace, name, "expected NAMESPACE/NAME")
    }

    fn of(namespace: Option<&str>, name: &str, expected: &str) -> Result<Self, String> {
        if namespace.is_some_and(|namespace| !is_dns_label(namespace)) || !is_dns_subdomain(name) {
            return Err(expected.to_owned());
        }
        Ok(Self { namespace: namespace.map(str::to_owned), kind: None, name: name.to_owned() })
    }

    /// The lines of the walk.
    pub async fn lines(&self, snapshot: &Snapshot) -> anyhow::Result<Vec<Check>> {
        let namespace = self.namespace.as_deref().unwrap_or(&snapshot.namespace);
        ensure!(is_dns_label(namespace), "{namespace:?} is not the name of a namespace");
        match self.kind {
            Some(kind) => workload(snapshot, namespace, kind, &self.name).await,
            None => pod(snapshot, namespace, &self.name).await,
        }
    }
}

fn no_kind(word: &str, pod: &str) -> String {
    format!("{word:?} is none of deploy, sts, ds, rs, job, cronjob and {pod}")
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

async fn workload(snapshot: &Snapshot, namespace: &str, kind: Kind, name: &str) -> anyhow::Result<Vec<Check>> {
    let (workload, events) =
        tokio::join!(Workload::find(snapshot, namespace, kind, name), Events::read(snapshot, Some(namespace)));
    let workload = workload?.with_context(|| format!("there is no {} {namespace}/{name}", kind.as_str()))?;
    if !workload.pod().context("its pod template cannot be parsed")?.uses_gmsa() {
        let text = "its pod template does not use GMSA: `kubectl gmsa check` finds a field that is misspelt or in the wrong place";
        return Ok(vec![Check::breach(TEMPLATE, &rules::NO_CREDENTIAL_SPEC, text)]);
    }
    let subject = workload.subject();
    let mut finder = FactFinder::of(snapshot).await;
    let mut checks = decision::checks(snapshot, &mut finder, namespace, &workload.template, subject).await?;
    if checks.iter().any(is_cause) {
        return Ok(with_unreached(checks));
    }
    let pods: Vec<&ClusterPod> = workload.pods().collect();
    let nodes = nodes(snapshot, &pods).await;
    let worst = cause::worst(&workload, &nodes, &events);
    let created = cause::created(&workload, worst.as_ref(), &events);
    // Where no event can be read, the reason may be in one.
    let broken = is_cause(&created) || worst.as_ref().is_some_and(|(_, checks)| checks.iter().any(is_cause));
    checks.extend(events.lacking().filter(|_| broken));
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
    checks.extend(Some(contents(snapshot, &mut finder, pod).await).filter(|check| check.severity().is_some()));
    let more = if broken { None } else { cause::leftovers(&workload, &nodes, &events) };
    Ok(walked(pod, steps, checks, more))
}

async fn pod(snapshot: &Snapshot, namespace: &str, name: &str) -> anyhow::Result<Vec<Check>> {
    let pod = ClusterPod::find(snapshot, &format!("{namespace}/{name}")).await?;
    let subject = Subject::Pod { namespace };
    let (mut checks, mut finder) = (Vec::new(), FactFinder::of(snapshot).await);
    if pod.admission.uses_gmsa() {
        let template = decision::without_contents(&pod)?;
        checks = decision::checks(snapshot, &mut finder, namespace, &template, subject).await?;
        // No webhook has checked the permission of a pod that none reviewed.
        if let Some(unreviewed) = unreviewed(snapshot, &pod).await {
            checks.retain(|check| !is_cause(check));
            checks.push(Check::found(ADMISSION, unreviewed));
        }
        if checks.iter().any(is_cause) {
            return Ok(with_unreached(checks));
        }
    }
    checks.push(contents(snapshot, &mut finder, &pod).await);
    for advice in advise(&pod.admission) {
        checks.push(Check::breach(ADMISSION, advice.rule, advice.text));
    }
    let events = Events::read(snapshot, Some(namespace));
    let pods = [&pod];
    let (events, nodes) = tokio::join!(events, nodes(snapshot, &pods));
    let steps = steps(&pod, subject, &nodes, &events);
    checks.extend(events.lacking().filter(|_| steps.iter().any(is_cause)));
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

/// The nodes of these pods, and the Windows nodes where a pod does not run.
async fn nodes(snapshot: &Snapshot, pods: &[&ClusterPod]) -> Nodes {
    let mut nodes = Nodes::default();
    if pods.iter().any(|pod| node_name(pod).is_none() || pod.phase() != "Running") {
        nodes.windows = snapshot.list(Nodes::WINDOWS).await.ok();
    }
    nodes.add(snapshot, pods.iter().copied()).await;
    nodes
}

/// The step: whether a pod that exists carries what its credential specs hold.
async fn contents(snapshot: &Snapshot, finder: &mut FactFinder, of: &ClusterPod) -> Check {
    if let Some(unreviewed) = unreviewed(snapshot, of).await {
        return Check::found(ADMISSION, unreviewed);
    }
    let (pod, mut contents, mut unread) = (&of.admission, HashMap::new(), None);
    for name in pod.slots().filter_map(|slot| slot.name.and_then(SpecName::parse)) {
        match finder.spec(&name).await.fact {
            SpecFact::Contents(known) => drop(contents.insert(name.to_string(), known)),
            SpecFact::Failed(failure) => unread = Some(Denial::SpecUnreadable { spec: name, failure }),
            SpecFact::Missing | SpecFact::Unusable => {}
        }
    }
    let outdated = |text: &str| Diagnostic::new(&rules::CONTENTS_OUTDATED, text).fixed(created_again(of));
    let unread = unread.as_ref().and_then(|denial| finder.lacking(denial, ""));
    let result = match (ContentsState::of(pod, &contents), unread) {
        (ContentsState::Unmatched, Some((cause, remedy))) => return because(ADMISSION, cause, remedy),
        (ContentsState::NoGmsa, _) => Err(Diagnostic::new(&rules::NO_CREDENTIAL_SPEC, "the pod does not use GMSA")),
        (ContentsState::UpToDate, _) => Ok("the pod carries the contents of its credential spec".to_owned()),
        (ContentsState::WithoutContents, _) => {
            let text = "the pod names a credential spec and carries no contents: the webhook did not review it";
            let names = Names { exists: true, ..Names::default() };
            Err(rules::found(&rules::NAME_WITHOUT_CONTENTS, text, &names).fixed(created_again(of)))
        }
        (ContentsState::Outdated, _) => {
            Err(outdated("the pod carries other contents than its credential spec has now"))
        }
        (ContentsState::Unmatched, None) => {
            let text = "the pod carries contents, and there is no credential spec to compare them with";
            Err(outdated(text).with_fix(FIX_UNMATCHED))
        }
    };
    Check { about: ADMISSION, result }
}

/// How a pod is created again: by its controller, where it has one.
fn created_again(pod: &ClusterPod) -> Option<String> {
    if controller(&pod.object.metadata).is_none() {
        let fix = "Create it again from its manifest, because no controller does: `kubectl replace --force -f FILE`.";
        return Some(fix.to_owned());
    }
    let (namespace, name) = pod.place();
    let delete = Subject::Pod { namespace }.command("delete pod", name, "")?;
    Some(format!("Delete the pod: {delete}. Its controller creates a new one."))
}

/// That no webhook reviewed a pod, because none is asked about pods of its namespace.
async fn unreviewed(snapshot: &Snapshot, pod: &ClusterPod) -> Option<Diagnostic> {
    if ContentsState::of::<Contents>(&pod.admission, &HashMap::new()) != ContentsState::WithoutContents {
        return None;
    }
    let webhooks = configured(snapshot).await.ok()?;
    let (namespace, _) = pod.place();
    let mutating: Vec<&Configured> = webhooks.iter().filter(|found| found.mutating && found.is_of_pods()).collect();
    if mutating.is_empty() {
        let text = "the pod names a credential spec and carries no contents: no MutatingWebhookConfiguration sends pods to a GMSA webhook";
        let found = Diagnostic::new(&rules::WEBHOOK_MISSING, text);
        let installer = installer(snapshot, &webhooks).await;
        let pod = created_again(pod).map(|fix| format!(" Pods get contents only when they are created. {fix}"));
        let fix =
            installer.map(|installer| format!("{} creates it again.{}", installer.restore(), pod.unwrap_or_default()));
        return Some(Diagnostic { fix, ..found });
    }
    let of: Namespace = snapshot.get(&format!("/api/v1/namespaces/{namespace}")).await.ok()?;
    let passes_by =
        mutating.iter().find(|found| found.selects(of.metadata.labels.as_ref()).is_ok_and(|selected| !selected))?;
    let name = &passes_by.name;
    let text =
        format!("the pod names a credential spec and carries no contents: {name} does not review pods in {namespace}");
    Some(Diagnostic::new(&rules::NAMESPACES_EXCLUDED, text).with_severity(Severity::Error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_or_a_pod_is_named_as_kubectl_names_it() {
        let named = |namespace: Option<&str>, kind| {
            Ok(Walkthrough { namespace: namespace.map(str::to_owned), kind, name: "web".to_owned() })
        };
        assert_eq!(Walkthrough::parse("deploy/web"), named(None, Some(Kind::Deployment)));
        assert_eq!(Walkthrough::parse("StatefulSet.apps/web"), named(None, Some(Kind::StatefulSet)));
        assert_eq!(Walkthrough::parse("deployments.v1.apps/web"), named(None, Some(Kind::Deployment)));
        assert_eq!(Walkthrough::parse("po/web"), named(None, None));
        assert_eq!(Walkthrough::parse_workload("shop/deploy/web"), named(Some("shop"), Some(Kind::Deployment)));
        assert_eq!(Walkthrough::parse_workload("sts/web"), named(None, Some(Kind::StatefulSet)));
        assert_eq!(Walkthrough::parse_pod("shop/web"), named(Some("shop"), None));
        for (text, error) in [
            ("web", "expected TYPE/NAME, such as deploy/web or pod/web-0"),
            ("deploy/Web", "expected TYPE/NAME, such as deploy/web or pod/web-0"),
            ("shop/deploy/web", "\"shop\" is none of deploy, sts, ds, rs, job, cronjob and pod"),
            (
                "deployment.example.com/web",
                "\"deployment.example.com\" is none of deploy, sts, ds, rs, job, cronjob and pod",
            ),
            ("svc/web", "\"svc\" is none of deploy, sts, ds, rs, job, cronjob and pod"),
        ] {
            assert_eq!(Walkthrough::parse(text), Err(error.to_owned()), "{text}");
        }
        for (text, error) in [
            ("web", "expected NAMESPACE/KIND/NAME"),
            ("a/b/c/d", "expected NAMESPACE/KIND/NAME"),
            ("shop/deploy/Web", "expected NAMESPACE/KIND/NAME, with names in lower case"),
            ("a?b/deploy/web", "expected NAMESPACE/KIND/NAME, with names in lower case"),
            ("shop/pod/web", "\"pod\" is none of deploy, sts, ds, rs, job, cronjob and --pod for a pod"),
        ] {
            assert_eq!(Walkthrough::parse_workload(text), Err(error.to_owned()), "{text}");
        }
    }
}
