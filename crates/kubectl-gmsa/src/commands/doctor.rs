//! `doctor`: checks an installation and the workloads that use it. Each check passes, warns or fails.
//!
//! Invariants: nothing is changed in the cluster. The requests that are not reads are access reviews and Pods that
//! the API server creates as dry runs, which show whether it can call the webhook. What could not be checked is neither a pass nor a fault.

use std::{
    io::{self, Write as _},
    time::Duration,
};

use clap::Args;
use k8s_openapi::apimachinery::pkg::version::Info;
use tokio::time::{Instant, sleep};

use crate::shared::{
    Outcome,
    connection::{Cluster, Connection, block_on},
    output::{Filter, Shape, print_checks, table},
};
use gmsa_core::diagnostic::{Check, Diagnostic, Severity, rules::Rule};

mod call;
mod certificate;
mod configuration;
mod crd;
mod hostnames;
mod install;
mod namespaces;
mod nodes;
mod not_checked;
mod one_pod;
mod place;
mod pre;
mod replica;
mod service;
mod usage;

use not_checked::not_checked;

/// How long `--wait` pauses between two rounds of checks.
const PAUSE: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub struct Options {
    /// Explain one pod, from admission to node
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pod: Option<String>,
    /// Check before the installation whether the cluster is ready for it: version, your rights, the namespace (--namespace, otherwise
    /// gmsa-webhook), and what is there already of GMSA
    #[arg(long, conflicts_with = "pod")]
    pre: bool,
    /// Wait until nothing fails, at most this many seconds; warnings then do not count, what could not be checked does
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "120")]
    wait: Option<u64>,
    /// The form of the output
    #[arg(long, short, value_enum, default_value = "table")]
    output: Shape,
    /// The same as -o json
    #[arg(long, hide = true)]
    json: bool,
    #[command(flatten)]
    filter: Filter,
}

pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    block_on(async {
        let cluster = connection.cluster().await?;
        let until = options.wait.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let mut awaited = Vec::new();
        loop {
            let checks = match &options.pod {
                _ if options.pre => {
                    pre::checks(&cluster, connection.asked_namespace().unwrap_or(pre::NAMESPACE)).await?
                }
                Some(pod) => one_pod::explain(&cluster, pod).await?,
                None => Box::pin(all_checks(&cluster)).await?,
            };
            // Nothing is waited for that is ignored.
            let awaits = |found: &Diagnostic| found.severity == Severity::Error && options.filter.keeps(found);
            let fails = checks.iter().any(|check| check.result.as_ref().is_err_and(awaits));
            if !fails || until.is_none_or(|until| Instant::now() >= until) {
                let shape = if options.json { Shape::Json } else { options.output };
                // Who waits until nothing fails is not kept waiting by warnings.
                let filter = if until.is_some() { options.filter.of_errors() } else { options.filter.clone() };
                return print_checks(checks, shape, &filter);
            }
            awaited = report_waiting(&checks, &awaited)?;
            sleep(PAUSE).await;
        }
    })
}

/// Writes to standard error which checks fail, whenever that has changed; returns them.
fn report_waiting(checks: &[Check], reported: &[String]) -> io::Result<Vec<String>> {
    let awaited: Vec<String> = table::failing(checks).into_iter().map(|line| format!("waiting: {line}")).collect();
    if awaited != reported {
        io::stderr().write_all(awaited.concat().as_bytes())?;
    }
    Ok(awaited)
}

async fn all_checks(cluster: &Cluster) -> anyhow::Result<Vec<Check>> {
    let (mut installed, mut windows) = (Vec::new(), Vec::new());
    let (version, excluded, used, ()) = tokio::join!(
        cluster.get::<Info>("/version"),
        install::add_checks(cluster, &mut installed),
        usage::read(cluster),
        nodes::add_checks(cluster, &mut windows),
    );
    let Info { git_version, .. } = version?;
    let version = if git_version.is_empty() { "of unknown version" } else { &git_version };
    let mut checks = vec![Check::pass("API server", format!("answers, {version}"))];
    checks.append(&mut installed);
    usage::add_checks(used, &excluded, &mut checks);
    checks.append(&mut windows);
    Ok(checks)
}

fn found(about: &'static str, rule: &'static Rule, message: impl Into<String>) -> Check {
    Check::found(about, Diagnostic::new(rule, message))
}
