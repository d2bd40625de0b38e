//! The restart of a workload, as `kubectl rollout restart` does it.

use std::io::{self, Write as _};

use http::{Request, header::CONTENT_TYPE};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Pods,
    owner::{PodOwner, RESTARTED_AT},
};
use crate::shared::{Outcome, args::DryRun, connection::Cluster, print, workloads::Kind};
use gmsa_core::{
    causes,
    credspec::{is_dns_label, is_dns_subdomain},
    quote::one_line,
};

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
