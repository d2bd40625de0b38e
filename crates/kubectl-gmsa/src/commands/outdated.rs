//! `outdated`: lists the workloads with pods whose contents differ from their credential spec, and the command that updates them.
//!
//! Invariants: nothing is changed; a restart is recommended only for Deployments, StatefulSets and DaemonSets whose ownership
//! [`owners`](crate::shared::owners) has verified. Pods of other owners are reported.

use std::collections::BTreeMap;

use anyhow::ensure;
use clap::{Args, ValueEnum};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::shared::{
    Outcome,
    connection::{Connection, block_on},
    credspecs::contents_by_name,
    kinds::Kind,
    names,
    output::{Filter, Format, Report, Style, first_five},
    owners::{NamedOwner, NotOwned},
    pods::{ClusterPod, ContentsState, FIX_UNMATCHED, unparsable},
    print, rules,
    walk::workload::is_active,
    world::{ClusterSource, World},
};
use gmsa_cluster::resolver::live::collection;
use gmsa_core::{
    credspec::{is_dns_label, is_dns_subdomain},
    diagnostic::Diagnostic,
};

const EXAMPLES: &str = "Examples:
  # List the workloads of all namespaces
  kubectl gmsa outdated -A

  # Restart those of one namespace
  kubectl gmsa outdated -n shop -o name | xargs -r kubectl rollout restart -n shop";

#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Options {
    /// List the workloads of all namespaces
    ///
    /// [default: the namespace of --namespace or the context]
    #[arg(long, short = 'A')]
    all_namespaces: bool,
    #[command(flatten)]
    from: ClusterSource,
    /// Print table, json or name
    ///
    /// name is the input of kubectl rollout restart, for one namespace. Workloads with a restart under way are left out
    #[arg(long, short, value_enum, default_value = "table", hide_possible_values = true)]
    output: OutputForm,
    #[command(flatten)]
    filter: Filter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputForm {
    /// For people
    Table,
    /// For programs
    Json,
    /// For kubectl rollout restart
    Name,
}

/// Lists the workloads in the namespace of `--namespace` or of the context, or in all.
pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    let is_by_name = options.output == OutputForm::Name;
    ensure!(!(is_by_name && options.all_namespaces), "-o name is for one namespace: use --namespace instead of -A");
    let (mut report, workloads) = block_on(async {
        let world = options.from.open(connection).await?;
        let namespace = &world.namespace;
        ensure!(options.all_namespaces || is_dns_label(namespace), "{namespace:?} is not the name of a namespace");
        let found = outdated(&world, (!options.all_namespaces).then_some(namespace)).await?;
        if !options.all_namespaces && found.0.documents == 0 && connection.asked_namespace().is_some() {
            names::expect(&world, &format!("namespace {namespace}"), "/api/v1/namespaces", namespace).await?;
        }
        Ok(found)
    })?;
    let findings = workloads.iter().map(|(workload, pods)| finding(workload, pods));
    // Findings about workloads come first.
    let of_pods = std::mem::take(&mut report.findings);
    report.findings.extend(findings.chain(of_pods));
    match options.output {
        OutputForm::Table => report.print(Format::Table, &options.filter),
        OutputForm::Json => report.print(Format::Json, &options.filter),
        OutputForm::Name => {
            let (_, outcome) = report.render(Format::Json, &options.filter, Style::PLAIN)?;
            let is_meant = |(workload, pods): &(&PodOwner, &Pods)| is_restarted_by_name(workload, pods);
            let lines = workloads.iter().filter(is_meant).map(|(workload, _)| format!("{}\n", target(workload)));
            print(lines.collect::<String>())?;
            Ok(outcome)
        }
    }
}

/// Whether a restart would replace the pods, and no restart is under way.
fn is_restarted_by_name(workload: &PodOwner, pods: &Pods) -> bool {
    fix(workload, pods).starts_with("kubectl rollout restart")
}

/// The outdated pods of a workload.
#[derive(Debug)]
struct Pods {
    names: Vec<String>,
    /// Whether all of them are older than the last restart, so they are being replaced.
    are_restarted: bool,
}

/// The number of GMSA pods that have not ended, findings about pods that no restart helps or that cannot be parsed, and the workloads of
/// outdated pods.
async fn outdated(world: &World, namespace: Option<&String>) -> anyhow::Result<(Report, BTreeMap<PodOwner, Pods>)> {
    let contents = contents_by_name(world.list::<serde_json::Value>(&collection()).await?);
    let pods = world.pods(namespace.map(String::as_str), false).await?;
    let (mut report, mut workloads) = (Report::default(), BTreeMap::new());
    for json in pods.iter() {
        let pod = match ClusterPod::read(json) {
            Ok(pod) => pod,
            Err(error) => {
                report.findings.push(unparsable(json, &error));
                continue;
            }
        };
        // A pod that has ended, or is being deleted, needs no replacement.
        if !is_active(&pod) {
            continue;
        }
        let state = ContentsState::of(&pod.admission, &contents);
        report.documents += usize::from(state != ContentsState::NoGmsa);
        match state {
            ContentsState::Outdated => match owner_of(world, &pod).await {
                Ok((owner, is_restarted)) => {
                    let none = || Pods { names: Vec::new(), are_restarted: true };
                    let pods = workloads.entry(owner).or_insert_with(none);
                    pods.names.push(pod.place().1.to_owned());
                    pods.are_restarted &= is_restarted;
                }
                Err(not_owned) => report.findings.push(without_owner(&pod, not_owned)),
            },
            // A restart would not help: the new pod would be refused.
            ContentsState::Unmatched => {
                let text = "carries contents, and there is no credential spec to compare them with";
                report.findings.push(about(&pod, text).with_fix(FIX_UNMATCHED));
            }
            // A pod without contents is not outdated: `doctor` reports it, because the webhook did not review it.
            ContentsState::NoGmsa | ContentsState::UpToDate | ContentsState::WithoutContents => {}
        }
    }
    Ok((report, workloads))
}

const OUTDATED: &str = "carries other contents than its credential spec has now";

fn finding(workload: &PodOwner, pods: &Pods) -> Diagnostic {
    let PodOwner { namespace, kind, name, .. } = workload;
    let message = match kind.as_str() {
        "Pod" => OUTDATED.to_owned(),
        _ => format!(
            "{} of its pods carry other contents than their credential spec has now: {}",
            pods.names.len(),
            first_five(&pods.names)
        ),
    };
    Diagnostic {
        object: format!("{kind} {namespace}/{name}"),
        consequence: Some("a pod keeps its contents until it is replaced"),
        ..Diagnostic::new(&rules::CONTENTS_OUTDATED, message)
    }
    .with_fix(fix(workload, pods))
}

fn about(pod: &ClusterPod, message: impl Into<String>) -> Diagnostic {
    let (namespace, name) = pod.place();
    Diagnostic { object: format!("Pod {namespace}/{name}"), ..Diagnostic::new(&rules::CONTENTS_OUTDATED, message) }
}

/// The finding for a pod whose owner could not be verified.
fn without_owner(pod: &ClusterPod, NotOwned { why, fix }: NotOwned) -> Diagnostic {
    let (namespace, name) = pod.place();
    let fix = if let Some(fix) = fix {
        fix
    } else if is_dns_label(namespace) && is_dns_subdomain(name) {
        format!("find out what made it, then: kubectl delete pod --namespace {namespace} {name}")
    } else {
        "find out what made it, then delete it".to_owned()
    };
    about(pod, format!("{OUTDATED}, and {why}")).with_fix(fix)
}

fn fix(workload: &PodOwner, pods: &Pods) -> String {
    let PodOwner { namespace, kind, name, .. } = workload;
    let names = &pods.names;
    // An invalid name is not put into a shell command.
    if !is_dns_label(namespace) || !is_dns_subdomain(name) || !names.iter().all(|pod| is_dns_subdomain(pod)) {
        return "delete the pods, so that they are created again".to_owned();
    }
    let delete = format!("kubectl delete pod --namespace {namespace} {}", names.join(" "));
    let target = target(workload);
    match workload.restart {
        Restart::OnDelete => {
            return format!(
                "a restart alone does not replace them (it is paused, OnDelete or has a partition): {delete}"
            );
        }
        Restart::ReplacesPods if pods.are_restarted => {
            return format!(
                "it was restarted, and its pods are being replaced: kubectl rollout status {target} --namespace {namespace}"
            );
        }
        Restart::ReplacesPods => {
            return format!("kubectl rollout restart {target} --namespace {namespace}");
        }
        Restart::Impossible => {}
    }
    let known = Kind::ALL.into_iter().find(|known| known.as_str() == kind && !known.follows_template());
    match kind.as_str() {
        "Node" => "it is a static pod: write its contents into the file on the node".to_owned(),
        _ if known.is_some_and(Kind::runs_to_completion) => format!(
            "wait until it ends, or delete and create it again: kubectl delete {} --namespace {namespace} {name}",
            kind.to_ascii_lowercase()
        ),
        _ if known.is_some() => format!("{delete}: it creates new ones"),
        "Pod" => format!("{delete}, then create it again from its manifest: no controller does"),
        kind if kind.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b)) => {
            format!("{delete}, if {kind} {name} creates new ones")
        }
        // The API server accepts any text as the kind of an owner.
        _ => format!("{delete}, if its owner {name} creates new ones"),
    }
}

/// The annotation that `kubectl rollout restart` sets in the pod template to make a new revision; pods inherit it.
const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

/// The owner of pods: a workload, or the pod itself if it has no owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PodOwner {
    pub namespace: String,
    pub kind: String,
    pub name: String,
    pub restart: Restart,
}

/// What a restart of the owner does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Restart {
    /// It has none.
    Impossible,
    ReplacesPods,
    /// It replaces some pods only after they are deleted: paused, `OnDelete`, or a partition.
    OnDelete,
}

/// The owner of a pod (the Deployment, not its `ReplicaSet`), and whether the pod is older than the last restart, so it is being
/// replaced.
///
/// # Errors
/// If the owner could not be verified.
async fn owner_of(world: &World, pod: &ClusterPod) -> Result<(PodOwner, bool), NotOwned> {
    let owners = NamedOwner::all_of(world, pod).await?;
    let other = owners.iter().find(|owner| owner.read.as_ref().is_some_and(|read| !read.uses_gmsa()));
    if let Some(owner) = other {
        let (kind, name) = (&owner.reference.kind, &owner.reference.name);
        return Err(format!("names {kind} {name} as its owner, whose pod template does not use GMSA").into());
    }
    let (namespace, name) = pod.place();
    let (kind, name, read) = match owners.into_iter().next_back() {
        Some(owner) => (kind_of(&owner.reference), owner.reference.name, owner.read),
        None => ("Pod".to_owned(), name.to_owned(), None),
    };
    let mut owner = PodOwner { namespace: namespace.to_owned(), kind, name, restart: Restart::Impossible };
    let Some(read) = read else { return Ok((owner, false)) };
    if read.kind.rolls_out() {
        let is_on_delete = read.is_paused() || read.replaces_on_delete() || read.partition() > 0;
        owner.restart = if is_on_delete { Restart::OnDelete } else { Restart::ReplacesPods };
    }
    let template = read.of_template().unwrap_or_default();
    Ok((owner, restarted_at(&template) != restarted_at(&pod.object.metadata)))
}

/// The kind; with its group (`Job.batch.volcano.sh`) where another API has a kind of the same name as Kubernetes.
fn kind_of(OwnerReference { api_version, kind, .. }: &OwnerReference) -> String {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let is_of_core = |known: &str| known == kind && !group.is_empty();
    let is_like = |known: Kind| known.as_str() == kind && known.group() != group;
    let is_other = Kind::ALL.into_iter().any(is_like) || ["Node", "Pod"].into_iter().any(is_of_core);
    if is_other { format!("{kind}.{group}") } else { kind.clone() }
}

fn restarted_at(metadata: &ObjectMeta) -> Option<&str> {
    metadata.annotations.as_ref()?.get(RESTARTED_AT).map(String::as_str)
}

/// The workload in the form that `kubectl` accepts.
fn target(workload: &PodOwner) -> String {
    format!("{}/{}", workload.kind.to_ascii_lowercase(), workload.name)
}
