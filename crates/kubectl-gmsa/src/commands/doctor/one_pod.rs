//! One pod, from admission to node.

use std::collections::HashMap;

use futures::future::join_all;

use super::{
    found,
    not_checked::{Remedy, because, not_checked},
    place::{self, NODE},
};
use crate::shared::{
    connection::Cluster,
    pods::{ClusterPod, ContentsState, FIX_UNMATCHED, contents_by_name},
};
use gmsa_cluster::{authorizer::Authorizer as _, resolver::live::collection};
use gmsa_core::{
    admission::{Subject, UseFact, advice::advise, pod::Pod},
    credspec::{Contents, SpecName},
    diagnostic::{Check, Diagnostic, rules},
};

const ADMISSION: &str = "admission";
const SPEC: &str = "credential spec";
const PERMISSION: &str = "permission";
const NEXT: &str = "in the pod";

pub(super) async fn explain(cluster: &Cluster, pod: &str) -> anyhow::Result<Vec<Check>> {
    let (namespace, name, pod) = ClusterPod::find(cluster, pod).await?;
    let mut names: Vec<SpecName> =
        pod.admission.slots().filter_map(|slot| slot.name.and_then(SpecName::parse)).collect();
    names.sort();
    names.dedup();
    let asked = names.iter().map(async |name| {
        let path = format!("{}/{name}", collection());
        tokio::join!(cluster.find(&path), permission(cluster, &namespace, &pod.admission, name))
    });
    let (asked, placed) = tokio::join!(join_all(asked), place::checks(cluster, &pod));
    let (mut checks, mut specs, mut unread) = (Vec::new(), Vec::new(), None);
    for (name, (spec, permission)) in names.iter().zip(asked) {
        match spec {
            Ok(Some(spec)) => specs.push(spec),
            Ok(None) => {
                let missing = Diagnostic::new(&rules::SPEC_MISSING, format!("{name} does not exist"));
                checks.push(Check::found(SPEC, missing.with_fix(format!("kubectl gmsa credspec new {name}"))));
            }
            Err(error) => unread = Some(error),
        }
        checks.push(permission);
    }
    let is_in_place = placed.iter().all(|check| check.severity().is_none());
    let next = pod.phase() == "Running" && !specs.is_empty() && is_in_place;
    checks.insert(0, admitted(&pod.admission, &contents_by_name(specs), unread.as_ref()));
    for advice in advise(&pod.admission) {
        checks.push(found(NODE, advice.rule, advice.text));
    }
    checks.extend(placed);
    if next {
        checks.push(Check::pass(NEXT, format!("run: kubectl gmsa verify {namespace}/{name}")));
    }
    Ok(checks)
}

/// `unread` is why a credential spec could not be read.
fn admitted(pod: &Pod, contents: &HashMap<String, Contents>, unread: Option<&anyhow::Error>) -> Check {
    match (ContentsState::of(pod, contents), unread) {
        (ContentsState::Unmatched, Some(error)) => not_checked(ADMISSION, error),
        (state, _) => with_state(state),
    }
}

fn with_state(state: ContentsState) -> Check {
    match state {
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
    match cluster.api.may_use(&subject, name, cluster.deadline()).await.fact {
        UseFact::Allowed => Check::pass(PERMISSION, format!("{namespace}:{account} may use {name}")),
        UseFact::Denied { .. } => {
            let fix = format!("kubectl gmsa grant --credspec {name} --serviceaccount {namespace}:{account} --apply");
            let denied = Diagnostic::new(&rules::NOT_AUTHORIZED, format!("{namespace}:{account} may not use {name}"));
            Check::found(PERMISSION, denied.with_fix(fix))
        }
        UseFact::Failed(failure) if failure.cause.contains("answered 403") => {
            let remedy =
                Remedy::new("Run the command as a user who may create localsubjectaccessreviews in the namespace.");
            because(PERMISSION, &failure.cause, remedy)
        }
        UseFact::Failed(failure) => because(PERMISSION, &failure.cause, Remedy::later("Try again.")),
    }
}
