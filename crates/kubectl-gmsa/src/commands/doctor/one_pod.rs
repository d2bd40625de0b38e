//! One pod, from admission to node.

use std::collections::HashMap;

use super::found;
use crate::shared::{
    connection::Cluster,
    pods::{ClusterPod, ContentsState, FIX_UNMATCHED, contents_by_name},
};
use gmsa_cluster::{authorizer::Authorizer as _, resolver::live::collection};
use gmsa_core::{
    admission::{Subject, UseFact, advice::advise, pod::Pod},
    credspec::{Contents, CredentialSpec, SpecName},
    diagnostic::{Check, Diagnostic, rules},
};

const ADMISSION: &str = "admission";
const SPEC: &str = "credential spec";
const PERMISSION: &str = "permission";
const NODE: &str = "node";
const NEXT: &str = "in the pod";

pub(super) async fn explain(cluster: &Cluster, pod: &str) -> anyhow::Result<Vec<Check>> {
    let (namespace, name, pod) = ClusterPod::find(cluster, pod).await?;
    let mut names: Vec<SpecName> =
        pod.admission.slots().filter_map(|slot| slot.name.and_then(SpecName::parse)).collect();
    names.sort();
    names.dedup();
    let (mut checks, mut specs) = (Vec::new(), Vec::new());
    for name in &names {
        let spec: Option<CredentialSpec> = cluster.find(&format!("{}/{name}", collection())).await?;
        if spec.is_none() {
            let missing = Diagnostic::new(&rules::SPEC_MISSING, format!("{name} does not exist"));
            checks.push(Check::found(SPEC, missing.with_fix(format!("kubectl gmsa credspec new {name}"))));
        }
        specs.extend(spec);
        checks.push(permission(cluster, &namespace, &pod.admission, name).await);
    }
    let next = pod.phase() == "Running" && !specs.is_empty();
    checks.insert(0, admitted(&pod.admission, &contents_by_name(specs)));
    for advice in advise(&pod.admission) {
        checks.push(found(NODE, advice.rule, advice.text));
    }
    checks.push(placed(&pod));
    if next {
        checks.push(Check::pass(NEXT, format!("run: kubectl gmsa verify {namespace}/{name}")));
    }
    Ok(checks)
}

fn admitted(pod: &Pod, contents: &HashMap<String, Contents>) -> Check {
    match ContentsState::of(pod, contents) {
        ContentsState::NoGmsa => found(ADMISSION, &rules::NO_CREDENTIAL_SPEC, "the pod does not use GMSA"),
        ContentsState::UpToDate => Check::pass(ADMISSION, "the pod carries the contents of its credential spec"),
        ContentsState::WithoutContents => {
            let text = "the pod names a credential spec and carries no contents: the webhook did not review it";
            let fix = "delete it: its controller creates a new one; then run doctor without --pod";
            Check::found(ADMISSION, Diagnostic::new(&rules::NAME_WITHOUT_CONTENTS, text).with_fix(fix))
        }
        ContentsState::Outdated => {
            let text = "the pod carries other contents than its credential spec has now";
            found(ADMISSION, &rules::CONTENTS_OUTDATED, text)
        }
        ContentsState::Unmatched => {
            let text = "the pod carries contents, and there is no credential spec to compare them with";
            Check::found(ADMISSION, Diagnostic::new(&rules::CONTENTS_OUTDATED, text).with_fix(FIX_UNMATCHED))
        }
    }
}

async fn permission(cluster: &Cluster, namespace: &str, pod: &Pod, name: &SpecName) -> Check {
    let account = pod.service_account();
    let subject = Subject { namespace: namespace.into(), service_account: account.into() };
    let diagnostic = match cluster.api.may_use(&subject, name, cluster.deadline()).await.fact {
        UseFact::Allowed => return Check::pass(PERMISSION, format!("{namespace}:{account} may use {name}")),
        UseFact::Denied { .. } => {
            let fix = format!("kubectl gmsa grant --credspec {name} --serviceaccount {namespace}:{account} --apply");
            Diagnostic::new(&rules::NOT_AUTHORIZED, format!("{namespace}:{account} may not use {name}")).with_fix(fix)
        }
        UseFact::Failed(failure) => Diagnostic::new(&rules::NOT_CHECKED, failure.cause)
            .with_fix("run this as a user who may create access reviews"),
    };
    Check::found(PERMISSION, diagnostic)
}

fn placed(pod: &ClusterPod) -> Check {
    let status = pod.object.status.as_ref();
    let Some(node) = pod.object.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) else {
        let mut conditions = status.iter().flat_map(|status| status.conditions.iter().flatten());
        let why = conditions.find(|condition| condition.type_ == "PodScheduled");
        let why = why.and_then(|condition| condition.message.as_deref()).filter(|why| !why.is_empty());
        let why = why.unwrap_or("the scheduler has not tried it");
        return found(NODE, &rules::NOT_SCHEDULED, format!("the pod is not on a node: {why}"));
    };
    let containers = status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let waiting: Vec<String> = containers
        .filter_map(|container| container.state.as_ref()?.waiting.as_ref())
        .map(|waiting| [&waiting.reason, &waiting.message].map(|text| text.as_deref().unwrap_or("")).join(": "))
        .collect();
    let place = format!("{} on {node}", pod.phase());
    if waiting.is_empty() {
        Check::pass(NODE, place)
    } else {
        found(NODE, &rules::NOT_STARTED, format!("{place}, waiting: {}", waiting.join("; ")))
    }
}
