//! `verify`: runs commands in a container to verify that it has its identity in the domain, and finds the first cause if not.
//!
//! Invariant: the pod of a workload names it, or its ReplicaSet, as its controller by `uid`, and has the labels that both select.

use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;

use crate::shared::{
    Outcome,
    args::timeout,
    connection::{Connection, block_on},
    kinds::Kind,
    output::{Filter, Shape, print_checks},
    pods::ClusterPod,
    verification::{Executor, of_container, word},
    walk::{ObjectRef, RefKind, tickets::not_injected, unreviewed, workload::WorkloadTree},
    world::World,
};
use gmsa_core::{
    admission::pod::{Slot, SlotKind, tickets::SidecarFields},
    diagnostic::Check,
};

const EXAMPLES: &str = "Examples:
  # Verify a pod of a Deployment
  kubectl gmsa verify deploy/web -n shop

  # Verify every container of a pod
  kubectl gmsa verify pod/web-0 -n shop --all-containers

  # Verify that it gets a ticket for SQL Server
  kubectl gmsa verify pod/web-0 -n shop --service MSSQLSvc/db.contoso.com:1433";

#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Options {
    /// A pod, or a workload with pods, such as deploy/web
    ///
    /// In the namespace of --namespace or the context
    #[arg(value_name = "TYPE/NAME", value_parser = ObjectRef::parse)]
    target: ObjectRef,
    /// The name in `deploy web`, which is written with a slash
    #[arg(hide = true, conflicts_with = "target")]
    _name: Option<String>,
    /// The container [default: the first with GMSA]
    ///
    /// Init and ephemeral ones come last
    #[arg(long, short, value_name = "NAME")]
    container: Option<String>,
    /// Verify every container that uses GMSA
    #[arg(long, conflicts_with = "container")]
    all_containers: bool,
    /// An SPN that it must get a ticket for
    ///
    /// A service principal name [default: the account itself]
    #[arg(long, value_name = "CLASS/HOST", value_parser = word)]
    service: Option<String>,
    /// How long each command may take
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = timeout)]
    timeout: Duration,
    /// Print table or json
    #[arg(long, short, value_enum, default_value = "table", hide_possible_values = true)]
    output: Shape,
    #[command(flatten)]
    filter: Filter,
}

/// Runs the commands, and reports which failure caused the others.
pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    let checks = block_on(verify(options, connection))?;
    print_checks(checks, options.output, &options.filter)
}

async fn verify(options: &Options, connection: &Connection) -> anyhow::Result<Vec<Check>> {
    let world = World::of(connection.cluster().await?);
    let pod = find(&world, &options.target).await?;
    let client = connection.http1_client().await?;
    // A user who may run commands often may not read the configurations.
    let unreviewed = unreviewed(&world, &pod).await.ok().flatten();
    let found = if unreviewed.is_some() { unreviewed } else { not_injected(&world, &pod).await };
    let mut checks = Vec::from_iter(found.map(|found| Check::found("pod", found)));
    if !checks.is_empty() {
        return Ok(checks);
    }
    for container in containers(&pod, options)? {
        let executor = Executor::new(client.clone(), &pod, container.owner, options.timeout);
        checks.extend(of_container(&pod, &container, &executor, options.service.as_deref()).await);
    }
    Ok(checks)
}

/// The containers to verify: the named one, all that use GMSA, or one: the first main container that uses GMSA, otherwise the first of any
/// kind that does, otherwise the first main one.
fn containers<'p>(pod: &'p ClusterPod, options: &Options) -> anyhow::Result<Vec<Slot<'p>>> {
    let mut slots = pod.admission.slots();
    let of_pod = slots.next().is_some_and(|slot| slot.uses_gmsa());
    let mut all: Vec<Slot<'_>> = slots.collect();
    if let Some(asked) = &options.container {
        all.retain(|slot| slot.owner == asked);
        anyhow::ensure!(!all.is_empty(), "the pod has no container {asked:?}");
        return Ok(all);
    }
    let uses = |slot: &Slot<'_>| slot.uses_gmsa() || of_pod || slot.tickets.has(SidecarFields::TICKETS);
    if options.all_containers {
        all.retain(uses);
        anyhow::ensure!(!all.is_empty(), "no container of the pod uses GMSA");
        return Ok(all);
    }
    let is_main = |slot: &&Slot<'_>| slot.kind == SlotKind::Container;
    let main = || all.iter().filter(is_main);
    let first = main().find(|slot| uses(slot)).or_else(|| all.iter().find(|slot| uses(slot)));
    Ok(vec![first.or_else(|| main().next()).copied().context("the pod has no container")?])
}

/// Finds the pod: the named one, or one of a workload, a running one where there is one.
async fn find(world: &World, target: &ObjectRef) -> anyhow::Result<ClusterPod> {
    let ObjectRef { kind, name } = target;
    match kind {
        RefKind::Pod => ClusterPod::find(world, name).await,
        RefKind::Workload(kind) if kind.starts_runs() => {
            bail!("{target} starts Jobs: name one of them, such as job/NAME")
        }
        RefKind::Workload(kind) => of_workload(world, *kind, name).await,
        RefKind::Other(_) => {
            bail!("{target} is not a pod or a workload of Kubernetes: name one of its pods, such as pod/NAME")
        }
    }
}

async fn of_workload(world: &World, kind: Kind, name: &str) -> anyhow::Result<ClusterPod> {
    let workload = WorkloadTree::expect(world, kind, name).await?;
    let title = workload.title();
    // Running pods first, because only their containers can run commands.
    let pod = workload
        .into_verified_pods()
        .min_by_key(|pod| (pod.object.metadata.deletion_timestamp.is_some(), pod.phase() != "Running"));
    pod.with_context(|| format!("{title} has no pod"))
}
