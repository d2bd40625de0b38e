//! `why`: finds the first cause why a workload or pod does not run, from its template to its containers.
//!
//! Invariants: nothing is changed in the cluster; a failed read that could hide the cause is a `skip` line: neither a pass nor a failure.

use std::time::Duration;

use clap::Args;
use tokio::time::Instant;

use gmsa_core::diagnostic::Severity;

use crate::shared::{
    Outcome,
    args::timeout,
    connection::{Connection, block_on},
    output::{Filter, Shape},
    rounds, rules,
    walk::ObjectRef,
    world::{ClusterSource, World},
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
    /// A pod, deploy, sts, ds, rs, rc, job or cronjob
    ///
    /// In the namespace of --namespace or the context. For other kinds, such as Rollout, its newest ReplicaSet, Job or pod
    #[arg(value_name = "TYPE/NAME", value_parser = ObjectRef::parse)]
    target: ObjectRef,
    /// The name in `deploy web`, which is written with a slash
    #[arg(hide = true, conflicts_with = "target")]
    _name: Option<String>,
    /// Repeat until it runs, or until --timeout
    ///
    /// Warnings are ignored
    #[arg(long, conflicts_with = "from")]
    watch: bool,
    /// How long --watch waits, such as 30s
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = timeout, requires = "watch")]
    timeout: Duration,
    /// Print table or json
    #[arg(long, short, value_enum, default_value = "table", hide_possible_values = true)]
    output: Shape,
    #[command(flatten)]
    from: ClusterSource,
    #[command(flatten)]
    filter: Filter,
}

pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    block_on(async {
        let world = options.from.open(connection).await?;
        let until = options.watch.then(|| Instant::now() + options.timeout);
        let walk = async |world: &World| {
            let mut checks = Box::pin(options.target.lines(world)).await?;
            if options.watch {
                // A starting pod is waited for as a failing one is.
                let found = checks.iter_mut().filter_map(|check| check.result.as_mut().err());
                found
                    .filter(|found| *found.rule == rules::POD_STARTING)
                    .for_each(|found| found.severity = Severity::Error);
            }
            Ok(checks)
        };
        let (_, outcome) = Box::pin(rounds::run(world, until, &options.filter, options.output, walk)).await?;
        Ok(outcome)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::kinds::Kind;

    #[test]
    fn the_help_names_every_kind_of_workload() {
        let help = Options::augment_args(clap::Command::new("why")).render_help().to_string();
        let words: Vec<&str> = help.split([' ', ',', '\n']).collect();
        for kind in Kind::ALL {
            assert!(kind.words().any(|word| words.contains(&&*word)), "{} in {help}", kind.as_str());
        }
    }
}
