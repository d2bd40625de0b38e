//! `verify`: runs commands in a container to verify that it has its identity in the domain, and finds the first cause why not.

use std::time::Duration;

use anyhow::Context as _;
use clap::Args;

use crate::shared::{
    Outcome,
    connection::{Connection, block_on},
    output::{Filter, Shape, print_checks},
    pods::ClusterPod,
    snapshot::Snapshot,
    verification::{Executor, MAX_OUTPUT, of_container, word},
};
use gmsa_core::{
    admission::pod::{Slot, SlotKind},
    diagnostic::Check,
};

mod target;

const EXAMPLES: &str = "Examples:
  # Verify a pod of a Deployment
  kubectl gmsa verify deploy/web -n shop

  # Verify every container of a pod
  kubectl gmsa verify shop/web-0 --all-containers

  # Verify that it gets a ticket for SQL Server
  kubectl gmsa verify shop/web-0 --service MSSQLSvc/db.contoso.com:1433";

#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Options {
    /// The pod, or a workload with pods
    ///
    /// NAMESPACE/POD; or pod/NAME, deploy/NAME and other workloads in the namespace of --namespace or the context
    #[arg(value_name = "NAMESPACE/POD|KIND/NAME")]
    target: String,
    /// The container [default: the first with GMSA]
    ///
    /// Init and ephemeral ones included
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
    #[arg(long, value_name = "SECONDS", default_value = "15", value_parser = clap::value_parser!(u64).range(1..=300))]
    timeout: u64,
    /// Print table or json
    #[arg(long, short, value_enum, default_value = "table", hide_possible_values = true)]
    output: Shape,
    #[command(flatten)]
    filter: Filter,
}

/// Runs the commands, and says which failure is the cause of the others.
pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    let checks = block_on(verify(options, connection))?;
    print_checks(checks, options.output, &options.filter)
}

async fn verify(options: &Options, connection: &Connection) -> anyhow::Result<Vec<Check>> {
    let snapshot = Snapshot::of(connection.cluster().await?);
    let pod = target::find(&snapshot, &options.target).await?;
    let (namespace, name) = pod.place();
    let client = connection.http1_client().await?;
    let limit = Duration::from_secs(options.timeout);
    let mut checks = Vec::new();
    for container in containers(&pod, options)? {
        let executor = Executor {
            client: client.clone(),
            namespace: namespace.to_owned(),
            pod: name.to_owned(),
            container: container.owner.to_owned(),
            limit,
            max_output: MAX_OUTPUT,
        };
        checks.extend(of_container(&pod, &container, &executor, options.service.as_deref()).await);
    }
    Ok(checks)
}

/// The containers to verify: the one that was asked for, all that use GMSA, or the first of those.
fn containers<'p>(pod: &'p ClusterPod, options: &Options) -> anyhow::Result<Vec<Slot<'p>>> {
    let mut slots = pod.admission.slots();
    let of_pod = slots.next().is_some_and(|slot| slot.uses_gmsa());
    let mut all: Vec<Slot<'_>> = slots.collect();
    if let Some(asked) = &options.container {
        all.retain(|slot| slot.owner == asked);
        anyhow::ensure!(!all.is_empty(), "the pod has no container {asked:?}");
        return Ok(all);
    }
    let uses = |slot: &Slot<'_>| slot.uses_gmsa() || of_pod;
    if options.all_containers {
        all.retain(uses);
        anyhow::ensure!(!all.is_empty(), "no container of the pod uses GMSA");
        return Ok(all);
    }
    let is_main = |slot: &&Slot<'_>| slot.kind == SlotKind::Container;
    let first = all.iter().filter(is_main).find(|slot| uses(slot)).or(all.iter().find(is_main)).copied();
    Ok(vec![first.context("the pod has no container")?])
}
