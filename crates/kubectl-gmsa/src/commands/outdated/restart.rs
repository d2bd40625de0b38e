//! The workload that is restarted to replace a pod, and its restart, as `kubectl rollout restart` does it.
//!
//! Invariant: it owns the pod by the rules of [`owners`](crate::shared::owners), and its own template uses GMSA.

use std::io::{self, Write as _};

use http::{Request, header::CONTENT_TYPE};
use k8s_openapi::jiff::Timestamp;
use kube::api::ObjectMeta;
use serde_json::{Value, json};

use super::Pods;
use crate::shared::{
    Outcome,
    args::DryRun,
    connection::Cluster,
    owners::{NamedOwner, NotOwned},
    pods::ClusterPod,
    print,
    snapshot::Snapshot,
    workloads::Kind,
};
use gmsa_core::{
    causes,
    credspec::{is_dns_label, is_dns_subdomain},
    quote::one_line,
};

/// The annotation of a pod template, and so of its pods, by which `kubectl rollout restart` makes a new revision.
const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

/// What controls pods: a workload, or nothing but the pod itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PodOwner {
    pub namespace: String,
    pub kind: String,
    pub name: String,
    /// `None` where a restart is not possible.
    pub restartable: Option<Kind>,
    /// Whether it replaces a pod only after the pod is deleted.
    pub on_delete: bool,
}

/// The owner of a pod, a Deployment rather than its `ReplicaSet`, and whether the pod is of a template from before its last restart, so that it is
/// being replaced.
///
/// # Errors
/// Where the owner that the pod names is not its owner, or cannot be read.
pub(super) async fn owner_of(snapshot: &Snapshot, pod: &ClusterPod) -> Result<(PodOwner, bool), NotOwned> {
    let owners = NamedOwner::all_of(snapshot, pod).await?;
    let other = owners.iter().find(|owner| owner.read.as_ref().is_some_and(|(kind, read)| !read.uses_gmsa(*kind)));
    if let Some(owner) = other {
        let (kind, name) = (&owner.reference.kind, &owner.reference.name);
        return Err(format!("names {kind} {name} as its owner, whose pod template does not use GMSA").into());
    }
    let (namespace, name) = pod.place();
    let (kind, name, read) = match owners.into_iter().next_back() {
        Some(owner) => (owner.reference.kind, owner.reference.name, owner.read),
        None => ("Pod".to_owned(), name.to_owned(), None),
    };
    let mut owner = PodOwner { namespace: namespace.to_owned(), kind, name, restartable: None, on_delete: false };
    let Some((kind, read)) = read else { return Ok((owner, false)) };
    owner.restartable = Some(kind).filter(|kind| *kind != Kind::ReplicaSet);
    owner.on_delete = read.replaces_on_delete();
    let template = read.of_template(kind).unwrap_or_default();
    Ok((owner, restarted_at(&template) != restarted_at(&pod.object.metadata)))
}

fn restarted_at(metadata: &ObjectMeta) -> Option<&str> {
    metadata.annotations.as_ref()?.get(RESTARTED_AT).map(String::as_str)
}

/// The workload, as `kubectl` takes it.
pub(super) fn target(workload: &PodOwner) -> String {
    format!("{}/{}", workload.kind.to_ascii_lowercase(), workload.name)
}

/// Restarts workloads, or tries to in a dry run, and reports each; an error for one does not end the others. Clean where that replaces
/// all of their pods.
pub(super) async fn restart_all<'w>(
    cluster: &Cluster,
    workloads: impl IntoIterator<Item = (&'w PodOwner, Kind, &'w Pods)>,
    dry_run: &DryRun,
) -> anyhow::Result<Outcome> {
    let mut worst = Outcome::Clean;
    for (workload, kind, pods) in workloads {
        let outcome = match restart(cluster, workload, kind, pods, dry_run).await {
            Ok((line, outcome)) => {
                say(&line)?;
                if workload.on_delete {
                    let target = target(workload);
                    say(&format!(
                        "{target} replaces a pod only when it is deleted (updateStrategy OnDelete): delete its pods"
                    ))?;
                }
                outcome
            }
            Err(error) => {
                let (target, cause) = (target(workload), causes::chain(error.as_ref()));
                let line = format!("error: cannot restart {target} in {}: {cause}", workload.namespace);
                writeln!(io::stderr(), "{}", one_line(&line))?;
                Outcome::Incomplete
            }
        };
        worst = worst.max(outcome);
    }
    Ok(worst)
}

/// Restarts one workload, unless that is under way already; returns what to say.
async fn restart(
    cluster: &Cluster,
    workload: &PodOwner,
    kind: Kind,
    pods: &Pods,
    dry_run: &DryRun,
) -> anyhow::Result<(String, Outcome)> {
    let PodOwner { namespace, name, on_delete, .. } = workload;
    let path = format!("{}/{name}", kind.collection(Some(namespace)));
    let target = target(workload);
    let object: Value = cluster.get(&path).await?;
    if object.pointer("/spec/paused") == Some(&Value::Bool(true)) {
        let are_names = is_dns_label(namespace) && is_dns_subdomain(name);
        let resume = are_names.then(|| format!(": kubectl rollout resume {target} --namespace {namespace}"));
        let resume = resume.unwrap_or_default();
        return Ok((format!("{target} in {namespace} is paused, so it is not restarted{resume}"), Outcome::Findings));
    }
    let outcome = if *on_delete { Outcome::Findings } else { Outcome::Clean };
    if pods.are_restarted {
        let line = format!("{target} in {namespace} was restarted already, and its pods are not replaced yet");
        return Ok((line, outcome));
    }
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let change = json!({"spec": {"template": {"metadata": {"annotations": {RESTARTED_AT: now}}}}});
    let request = Request::patch(format!("{path}?fieldManager=kubectl-gmsa{}", dry_run.parameter()))
        .header(CONTENT_TYPE, "application/merge-patch+json")
        .body(change.to_string().into_bytes())?;
    cluster.api.call(request, cluster.deadline()).await?;
    Ok((format!("{target} restarted in {namespace}{}", dry_run.suffix()), outcome))
}

fn say(line: &str) -> anyhow::Result<()> {
    print(format!("{}\n", one_line(line))).map(drop)
}
