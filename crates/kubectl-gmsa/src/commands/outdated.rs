//! `outdated`: lists the workloads with pods whose contents differ from their credential spec, and the command that updates them.
//!
//! Invariants: nothing is changed; a restart is recommended only for Deployments, StatefulSets and DaemonSets whose ownership
//! `owner.rs` has verified. Pods of other owners are reported.

use std::collections::BTreeMap;

use crate::shared::{
    Outcome,
    connection::{Connection, block_on},
    credspecs::contents_by_name,
    kinds::Kind,
    names,
    output::{Filter, Format, Report, first_five},
    pods::{ClusterPod, ContentsState, FIX_UNMATCHED, unparsable},
    print, rules,
    walk::workload::is_active,
    world::{ClusterSource, World, pods_of},
};
use anyhow::ensure;
use clap::{Args, ValueEnum};
use gmsa_cluster::resolver::live::collection;
use gmsa_core::{
    credspec::{is_dns_label, is_dns_subdomain},
    diagnostic::Diagnostic,
};
use serde_json::value::RawValue;

mod owner;

use owner::{NotOwned, PodOwner, Restart};

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
    let (report, restartable) = block_on(async {
        let world = options.from.open(connection).await?;
        let namespace = &world.namespace;
        let scope = if options.all_namespaces { None } else { Some(world.valid_namespace()?) };
        let (report, restartable) = outdated(&world, scope, &options.filter).await?;
        if scope.is_some() && report.documents == 0 && connection.asked_namespace().is_some() {
            names::expect(&world, &format!("namespace {namespace}"), "/api/v1/namespaces", namespace).await?;
        }
        Ok((report, restartable))
    })?;
    match options.output {
        OutputForm::Table => report.print(Format::Table, &options.filter),
        OutputForm::Json => report.print(Format::Json, &options.filter),
        OutputForm::Name => {
            print(restartable.into_iter().map(|target| target + "\n").collect::<String>())?;
            Ok(report.outcome(&options.filter))
        }
    }
}

/// The outdated pods of a workload.
#[derive(Debug)]
struct Pods {
    names: Vec<String>,
    /// Whether all of them are older than the last restart, so they are being replaced.
    are_restarted: bool,
}

/// The report on the GMSA pods that have not ended, and the workloads whose outdated pods a restart would replace.
async fn outdated(world: &World, scope: Option<&str>, filter: &Filter) -> anyhow::Result<(Report, Vec<String>)> {
    let contents = contents_by_name(world.list::<serde_json::Value>(&collection()).await?);
    // A pod that has ended, or is being deleted, needs no replacement.
    let read = |json: Box<RawValue>| match ClusterPod::read(&json) {
        Ok(pod) => (pod.admission.uses_gmsa() && is_active(&pod)).then_some(Ok(pod)),
        Err(error) => Some(Err(unparsable(&json, &error))),
    };
    let (mut report, mut workloads, mut of_pods) = (Report::default(), BTreeMap::new(), Vec::new());
    for pod in world.some_of(&pods_of(scope), read).await? {
        let pod = match pod {
            Ok(pod) => pod,
            Err(unparsable) => {
                of_pods.push(unparsable);
                continue;
            }
        };
        report.documents += 1;
        match ContentsState::of(&pod.admission, &contents) {
            ContentsState::Outdated => match PodOwner::of(world, &pod).await {
                Ok((owner, is_restarted)) => {
                    let none = || Pods { names: Vec::new(), are_restarted: true };
                    let pods = workloads.entry(owner).or_insert_with(none);
                    pods.names.push(pod.place().1.to_owned());
                    pods.are_restarted &= is_restarted;
                }
                Err(not_owned) => of_pods.push(without_owner(&pod, not_owned)),
            },
            // A restart would not help: the new pod would be refused.
            ContentsState::Unmatched => {
                let text = "carries contents, and there is no credential spec to compare them with";
                of_pods.push(about(&pod, text).with_fix(FIX_UNMATCHED));
            }
            // A pod without contents is not outdated: `doctor` reports it, because the webhook did not review it.
            ContentsState::NoGmsa | ContentsState::UpToDate | ContentsState::WithoutContents => {}
        }
    }
    // Findings about workloads come first.
    report.findings.extend(workloads.iter().map(|(workload, pods)| finding(workload, pods)).chain(of_pods));
    let restartable = workloads
        .iter()
        .filter(|(workload, pods)| is_restartable(workload, pods) && filter.keeps(&finding(workload, pods)));
    Ok((report, restartable.map(|(workload, _)| target(workload)).collect()))
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
fn without_owner(pod: &ClusterPod, (why, fix): NotOwned) -> Diagnostic {
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

/// Whether a restart would replace the pods, and no restart is under way.
fn is_restartable(workload: &PodOwner, pods: &Pods) -> bool {
    workload.restart == Restart::ReplacesPods && !pods.are_restarted && have_valid_names(workload, pods)
}

/// Whether the names can be put into a shell command.
fn have_valid_names(PodOwner { namespace, name, .. }: &PodOwner, pods: &Pods) -> bool {
    is_dns_label(namespace) && is_dns_subdomain(name) && pods.names.iter().all(|pod| is_dns_subdomain(pod))
}

fn fix(workload: &PodOwner, pods: &Pods) -> String {
    let PodOwner { namespace, kind, name, .. } = workload;
    if !have_valid_names(workload, pods) {
        return "delete the pods, so that they are created again".to_owned();
    }
    let delete = format!("kubectl delete pod --namespace {namespace} {}", pods.names.join(" "));
    let target = target(workload);
    let known = Kind::ALL.into_iter().find(|known| known.as_str() == kind && !known.facts().follows_template);
    match (workload.restart, kind.as_str()) {
        (Restart::OnDelete, _) => {
            format!("a restart alone does not replace them (it is paused, OnDelete or has a partition): {delete}")
        }
        (Restart::ReplacesPods, _) if pods.are_restarted => format!(
            "it was restarted, and its pods are being replaced: kubectl rollout status {target} --namespace {namespace}"
        ),
        (Restart::ReplacesPods, _) => format!("kubectl rollout restart {target} --namespace {namespace}"),
        (_, "Node") => "it is a static pod: write its contents into the file on the node".to_owned(),
        (_, "Pod") => format!("{delete}, then create it again from its manifest: no controller does"),
        _ if known.is_some_and(Kind::runs_to_completion) => format!(
            "wait until it ends, or delete and create it again: kubectl delete {} --namespace {namespace} {name}",
            kind.to_ascii_lowercase()
        ),
        _ if known.is_some() => format!("{delete}: it creates new ones"),
        _ if kind.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b)) => {
            format!("{delete}, if {kind} {name} creates new ones")
        }
        // The API server accepts any text as the kind of an owner.
        _ => format!("{delete}, if its owner {name} creates new ones"),
    }
}

/// The workload in the form that `kubectl` accepts.
fn target(workload: &PodOwner) -> String {
    format!("{}/{}", workload.kind.to_ascii_lowercase(), workload.name)
}
