//! `outdated`: the workloads whose pods carry contents that their credential spec no longer has, and how they get the new ones.
//!
//! Invariants: nothing is changed without `--restart` and a confirmation, or `--yes`; a restart changes one annotation of the pod
//! template, as `kubectl rollout restart` does; only Deployments, StatefulSets and DaemonSets are restarted, and pods of anything
//! else are reported.

use std::{
    collections::{BTreeMap, HashMap},
    io::{self, BufRead as _, IsTerminal as _, Write as _},
};

use anyhow::{Context as _, bail};
use clap::Args;
use http::{Request, header::CONTENT_TYPE};
use k8s_openapi::{api::apps::v1::ReplicaSet, apimachinery::pkg::apis::meta::v1::OwnerReference, jiff::Timestamp};
use kube::api::ObjectMeta;
use serde_json::{Value, json, value::RawValue};
use tokio::time::Instant;

use crate::shared::{
    Outcome,
    connection::{CALL, Cluster, Connection, DryRun, block_on},
    output::{Filter, Format, Report, first_five},
    pods::{ClusterPod, ContentsState, FIX_UNMATCHED, contents_by_name},
    print,
};
use gmsa_cluster::resolver::live::collection;
use gmsa_core::{
    credspec::{CredentialSpec, is_dns_label, is_dns_subdomain},
    diagnostic::{Diagnostic, rules},
    quote::one_line,
};

#[derive(Debug, Args)]
pub struct Options {
    /// Restart the workloads, as kubectl rollout restart does, after confirmation
    #[arg(long, conflicts_with = "output")]
    restart: bool,
    /// Restart without confirmation
    #[arg(long, short, requires = "restart")]
    yes: bool,
    #[command(flatten)]
    dry_run: DryRun,
    /// The form of the output
    #[arg(long, short, value_enum, default_value = "table")]
    output: Format,
    #[command(flatten)]
    filter: Filter,
}

/// What controls pods: a workload, or nothing but the pod itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Workload {
    namespace: String,
    kind: String,
    name: String,
    /// The plural name of the resource in `apps/v1`; `None` where a restart is not possible.
    resource: Option<&'static str>,
}

/// Lists the workloads, and restarts them with `--restart`. In one namespace if `--namespace` says so, otherwise in all.
pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    let namespace = connection.asked_namespace();
    if let Some(namespace) = namespace.filter(|namespace| !is_dns_label(namespace)) {
        bail!("{namespace:?} is not the name of a namespace");
    }
    let Found { count, workloads, unmatched } =
        block_on(async { outdated(&connection.cluster().await?, namespace).await })?;
    let mut report = Report { documents: count, ..Report::default() };
    report.findings.extend(workloads.iter().map(|(workload, pods)| finding(workload, pods)));
    report.findings.extend(unmatched.iter().map(|pod| without_credential_spec(pod)));
    let outcome = report.print(options.output, &options.filter)?;
    let restartable: Vec<(&Workload, &str)> =
        workloads.keys().filter_map(|workload| Some((workload, workload.resource?))).collect();
    if !options.restart || restartable.is_empty() {
        return Ok(outcome);
    }
    if options.dry_run.is_off() && !options.yes && !confirmed(restartable.len())? {
        print("nothing was restarted\n")?;
        return Ok(outcome);
    }
    let all_replaced = block_on(async {
        let cluster = connection.cluster().await?;
        let mut all_replaced = restartable.len() == workloads.len() && unmatched.is_empty();
        for (workload, resource) in restartable {
            all_replaced &= restart(&cluster, workload, resource, &options.dry_run).await?;
        }
        Ok(all_replaced)
    })?;
    Ok(if all_replaced && options.dry_run.is_off() { Outcome::Clean } else { Outcome::Findings })
}

struct Found {
    /// How many pods use GMSA, of those that have not ended.
    count: usize,
    /// The names of those that are outdated, by workload.
    workloads: BTreeMap<Workload, Vec<String>>,
    /// Those whose contents cannot be compared, as `NAMESPACE/NAME`. They are never restarted: new pods would be refused.
    unmatched: Vec<String>,
}

async fn outdated(cluster: &Cluster, namespace: Option<&str>) -> anyhow::Result<Found> {
    let specs: Vec<CredentialSpec> = cluster.list(&collection()).await?;
    let contents = contents_by_name(specs);
    let path = namespace.map_or("/api/v1/pods".to_owned(), |name| format!("/api/v1/namespaces/{name}/pods"));
    let pods: Vec<Box<RawValue>> = cluster.list(&path).await?;
    let mut found = Found { count: 0, workloads: BTreeMap::new(), unmatched: Vec::new() };
    let mut replica_sets = HashMap::new();
    for json in &pods {
        let pod = ClusterPod::read(json).context("a pod cannot be parsed")?;
        let metadata = &pod.object.metadata;
        // A pod that has ended, or is being deleted, needs no replacement.
        if pod.has_ended() || metadata.deletion_timestamp.is_some() {
            continue;
        }
        let (namespace, name) = pod.place();
        let state = ContentsState::of(&pod.admission, &contents);
        found.count += usize::from(state != ContentsState::NoGmsa);
        match state {
            ContentsState::Outdated => {
                let workload = workload(cluster, &pod, &mut replica_sets).await?;
                found.workloads.entry(workload).or_default().push(name.to_owned());
            }
            ContentsState::Unmatched => {
                found.unmatched.push(format!("{namespace}/{name}"));
            }
            // A pod without contents is not outdated: `doctor` reports it, because the webhook did not review it.
            ContentsState::NoGmsa | ContentsState::UpToDate | ContentsState::WithoutContents => {}
        }
    }
    Ok(found)
}

/// The workload of a pod: the Deployment rather than its `ReplicaSet`.
async fn workload(
    cluster: &Cluster,
    pod: &ClusterPod,
    replica_sets: &mut HashMap<String, Option<OwnerReference>>,
) -> anyhow::Result<Workload> {
    let (namespace, name) = pod.place();
    let namespace = namespace.to_owned();
    let Some(mut owner) = controller(&pod.object.metadata).cloned() else {
        return Ok(Workload { namespace, kind: "Pod".to_owned(), name: name.to_owned(), resource: None });
    };
    if owner.kind == "ReplicaSet" && owner.api_version == "apps/v1" {
        let path = format!("/apis/apps/v1/namespaces/{namespace}/replicasets/{}", owner.name);
        if !replica_sets.contains_key(&path) {
            let found: Option<ReplicaSet> = cluster.find(&path).await?;
            replica_sets.insert(path.clone(), found.and_then(|found| controller(&found.metadata).cloned()));
        }
        if let Some(Some(parent)) = replica_sets.get(&path) {
            owner = parent.clone();
        }
    }
    let resource = match (owner.api_version.as_str(), owner.kind.as_str()) {
        ("apps/v1", "Deployment") => Some("deployments"),
        ("apps/v1", "StatefulSet") => Some("statefulsets"),
        ("apps/v1", "DaemonSet") => Some("daemonsets"),
        _ => None,
    };
    Ok(Workload { namespace, kind: owner.kind, name: owner.name, resource })
}

fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

fn finding(workload: &Workload, pods: &[String]) -> Diagnostic {
    let Workload { namespace, kind, name, .. } = workload;
    let message = match kind.as_str() {
        "Pod" => "carries other contents than its credential spec has now".to_owned(),
        _ => format!(
            "{} of its pods carry other contents than their credential spec has now: {}",
            pods.len(),
            first_five(pods)
        ),
    };
    Diagnostic {
        object: format!("{kind} {namespace}/{name}"),
        consequence: Some("a pod keeps its contents until it is replaced"),
        ..Diagnostic::new(&rules::CONTENTS_OUTDATED, message)
    }
    .with_fix(fix(workload, pods))
}

/// A pod, as `NAMESPACE/NAME`, whose contents cannot be compared.
fn without_credential_spec(pod: &str) -> Diagnostic {
    let message = "carries contents, and there is no credential spec to compare them with";
    Diagnostic { object: format!("Pod {pod}"), ..Diagnostic::new(&rules::CONTENTS_OUTDATED, message) }
        .with_fix(FIX_UNMATCHED)
}

fn fix(workload: &Workload, pods: &[String]) -> String {
    let Workload { namespace, kind, name, .. } = workload;
    // An invalid name is not put into a shell command.
    if !is_dns_label(namespace) || !is_dns_subdomain(name) || !pods.iter().all(|pod| is_dns_subdomain(pod)) {
        return "delete the pods, so that they are created again".to_owned();
    }
    let delete = format!("kubectl delete pod --namespace {namespace} {}", pods.join(" "));
    match kind.as_str() {
        "Deployment" | "StatefulSet" | "DaemonSet" if workload.resource.is_some() => {
            format!(
                "kubectl gmsa outdated --restart, or: kubectl rollout restart {} --namespace {namespace}",
                target(workload)
            )
        }
        "ReplicaSet" | "ReplicationController" => format!("{delete}: it creates new ones"),
        "Job" => format!(
            "wait until it ends, or delete and create it again: kubectl delete job --namespace {namespace} {name}"
        ),
        "Pod" => format!("{delete}, then create it again from its manifest: no controller does"),
        _ => format!("{delete}, if {kind} {name} creates new ones"),
    }
}

/// The workload, as `kubectl` takes it.
fn target(workload: &Workload) -> String {
    format!("{}/{}", workload.kind.to_ascii_lowercase(), workload.name)
}

fn confirmed(count: usize) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        bail!("there is no terminal to ask for confirmation: use --yes");
    }
    write!(io::stderr(), "Restart {count} workload{}? [y/N] ", if count == 1 { "" } else { "s" })?;
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Restarts a workload, or tries to in a dry run, and reports it; returns whether that replaces its pods.
async fn restart(cluster: &Cluster, workload: &Workload, resource: &str, dry_run: &DryRun) -> anyhow::Result<bool> {
    let Workload { namespace, name, .. } = workload;
    let path = format!("/apis/apps/v1/namespaces/{namespace}/{resource}/{name}");
    let target = target(workload);
    let object: Value = cluster.get(&path).await?;
    if object.pointer("/spec/paused") == Some(&Value::Bool(true)) {
        let resume = format!("kubectl rollout resume {target} --namespace {namespace}");
        say(&format!("{target} in {namespace} is paused, so it is not restarted: {resume}"))?;
        return Ok(false);
    }
    let change = json!({"spec": {"template": {"metadata": {"annotations": {
        // The annotation of `kubectl rollout restart`.
        "kubectl.kubernetes.io/restartedAt": Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    }}}}});
    let request = Request::patch(format!("{path}?fieldManager=kubectl-gmsa{}", dry_run.parameter()))
        .header(CONTENT_TYPE, "application/merge-patch+json")
        .body(change.to_string().into_bytes())?;
    let patched = cluster.api.call(request, Instant::now() + CALL).await;
    patched.with_context(|| format!("cannot restart {target} in {namespace}"))?;
    say(&format!("{target} restarted in {namespace}{}", dry_run.suffix()))?;
    let on_delete = object.pointer("/spec/updateStrategy/type").is_some_and(|strategy| strategy == "OnDelete");
    if on_delete {
        say(&format!("{target} replaces a pod only when it is deleted (updateStrategy OnDelete): delete its pods"))?;
    }
    Ok(!on_delete)
}

fn say(line: &str) -> anyhow::Result<()> {
    print(format!("{}\n", one_line(line))).map(drop)
}
