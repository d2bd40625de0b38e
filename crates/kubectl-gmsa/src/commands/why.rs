//! `why`: walks through one workload, or one pod, from its template to its containers, as far as the first cause why it does not run.
//!
//! Invariants: nothing is changed in the cluster; what could not be read is skipped, and is neither a pass nor a fault.

use std::time::Duration;

use clap::Args;
use tokio::time::Instant;

use gmsa_core::diagnostic::{Check, Severity};

use crate::shared::{
    Outcome,
    args::timeout,
    connection::{Connection, block_on},
    output::{Filter, Shape},
    rounds, rules,
    snapshot::{From, Snapshot},
    walk::ObjectRef,
};

const EXAMPLES: &str = "Examples:
  # Find out why a Deployment does not run
  kubectl gmsa why deploy/web -n shop

  # Wait for a pod, at most 10 minutes
  kubectl gmsa why pod/web-0 -n shop --watch --timeout 10m

  # Read a bundle of another cluster instead
  kubectl gmsa why deploy/web -n shop --from gmsa.json";

#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Options {
    /// A pod, deploy, sts, ds, rs, job or cronjob
    ///
    /// In the namespace of --namespace or the context. Of another kind, such as a Rollout, its newest ReplicaSet, Job or pod
    #[arg(value_name = "TYPE/NAME", value_parser = ObjectRef::parse)]
    target: ObjectRef,
    /// Walk again until it runs, or --timeout is over
    ///
    /// Warnings then do not count
    #[arg(long, conflicts_with = "from")]
    watch: bool,
    /// How long --watch waits, such as 30s
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = timeout, requires = "watch")]
    timeout: Duration,
    /// Print table or json
    #[arg(long, short, value_enum, default_value = "table", hide_possible_values = true)]
    output: Shape,
    #[command(flatten)]
    from: From,
    #[command(flatten)]
    filter: Filter,
}

pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    block_on(async {
        let snapshot = options.from.open(connection).await?;
        let until = options.watch.then(|| Instant::now() + options.timeout);
        let walk = async |snapshot: &Snapshot| {
            let mut checks = Box::pin(options.target.lines(snapshot)).await?;
            if options.watch {
                checks.iter_mut().for_each(waited_for);
            }
            Ok(checks)
        };
        let (_, outcome) = Box::pin(rounds::run(snapshot, until, &options.filter, options.output, walk)).await?;
        Ok(outcome)
    })
}

/// With `--watch`, a pod that is just starting is waited for, like one that fails.
fn waited_for(check: &mut Check) {
    if let Err(found) = &mut check.result
        && *found.rule == rules::POD_STARTING
    {
        found.severity = Severity::Error;
    }
}
