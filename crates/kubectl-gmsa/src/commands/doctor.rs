//! `doctor`: checks an installation and the workloads that use it. Each check passes, notes, warns, fails or is skipped.
//!
//! Invariants: nothing is changed in the cluster. Besides reads there are access reviews and dry runs of Pods, to see whether the API server
//! can call the webhook. A check that could not run is neither a pass nor a failure.

use std::{cell::RefCell, path::PathBuf, time::Duration};

use clap::Args;
use k8s_openapi::apimachinery::pkg::version::Info;
use tokio::time::Instant;

use crate::shared::{
    Outcome,
    args::timeout,
    connection::{Connection, block_on},
    directory::DirectoryOptions,
    output::{Filter, Shape},
    print_clean, rounds,
    world::{ClusterSource, World},
};

mod bundle;
mod call;
mod certificate;
mod configuration;
mod install;
mod lints;
mod prerequisites;
mod service;
mod specs_and_pods;
mod tickets;
mod workloads;

use install::DoctorInput;

const EXAMPLES: &str = "Examples:
  # Check the installation and the workloads that use it
  kubectl gmsa doctor

  # Check before the installation
  kubectl gmsa doctor --pre

  # Read a bundle of another cluster
  kubectl gmsa doctor --from gmsa.json

  # List the checks
  kubectl gmsa doctor --list";

#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Options {
    /// List the checks and the rights that each needs
    #[arg(long)]
    list: bool,
    /// Check before the installation if all is ready
    ///
    /// The version, the namespace (--namespace, otherwise gmsa-webhook), and existing GMSA objects
    #[arg(long, conflicts_with_all = ["directory", "from"])]
    pre: bool,
    /// Wait until nothing fails
    ///
    /// At most this long [default: 2m]. Warnings and missing rights are not waited for
    #[arg(long, value_name = "DURATION", num_args = 0..=1, default_missing_value = "2m", value_parser = timeout, conflicts_with_all = ["directory", "from"])]
    wait: Option<Duration>,
    /// Write a new file for a support case
    ///
    /// What the checks read, with metrics and logs of the webhook and of tickets. No contents of credential specs, no Secrets and no tokens
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    bundle: Option<PathBuf>,
    /// Print table or json
    #[arg(long, short, value_enum, default_value = "table", hide_possible_values = true)]
    output: Shape,
    #[command(flatten)]
    from: ClusterSource,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    directory: DirectoryOptions,
}

pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    if options.list {
        return print_clean(lints::list());
    }
    options.bundle.as_deref().map_or(Ok(()), bundle::check_path)?;
    // Prompts for the password once, before anything else.
    let directories = RefCell::new(options.directory.sources()?);
    let asked = DoctorInput { namespace: connection.asked_namespace().map(str::to_owned), directories };
    block_on(async {
        let until = options.wait.map(|limit| Instant::now() + limit);
        let world = options.from.open(connection).await?;
        let round = async |world: &World| {
            let lines = if options.pre {
                let namespace = connection.asked_namespace().unwrap_or(prerequisites::NAMESPACE);
                Box::pin(prerequisites::before_installation(world, namespace)).await?
            } else {
                Box::pin(lints::lines(world, &asked)).await
            };
            // If this fails, everything will.
            match world.get::<Info>("/version").await {
                Err(unread) if !unread.is_forbidden() && !options.from.is_named() => Err(unread.into()),
                _ => Ok(lines),
            }
        };
        let (world, outcome) = rounds::run(world, until, &options.filter, options.output, round).await?;
        if let Some(file) = &options.bundle {
            Box::pin(bundle::write(&world, file)).await?;
        }
        Ok(outcome)
    })
}
