//! `doctor`: checks an installation and the workloads that use it. Each check passes, warns or fails.
//!
//! Invariants: nothing is changed in the cluster. The requests that are not reads are access reviews and Pods that
//! the API server creates as dry runs, which show whether it can call the webhook. What could not be checked is neither a pass nor a fault.

use std::{
    io::{self, Write as _},
    path::PathBuf,
    time::Duration,
};

use clap::Args;
use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::version::Info};
use tokio::time::{Instant, sleep};

use crate::shared::{
    Outcome,
    connection::{Cluster, Connection, block_on, timeout},
    directory::{DirectoryOptions, Source},
    not_checked::{self, not_checked},
    output::{Filter, Shape, print_checks, table},
    start::{
        containers, events, refusal,
        scheduling::{self, Nodes},
        workload,
    },
};
use gmsa_core::diagnostic::{Check, Diagnostic, Rule, Severity};

mod bundle;
mod call;
mod cause;
mod certificate;
mod configuration;
mod crd;
mod decision;
mod directory;
mod dns;
mod hostnames;
mod install;
mod namespaces;
mod nodes;
mod pre;
mod protection;
mod replica;
mod service;
mod usage;
mod walk;
mod workloads;

/// How long `--wait` pauses between two rounds of checks.
const PAUSE: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub struct Options {
    /// Walk through one workload, from its template to its containers, as far as the first cause why it does not run:
    /// deploy, sts, ds, rs, job or cronjob
    #[arg(long, value_name = "NAMESPACE/KIND/NAME", value_parser = walk::Named::parse, group = "walked", conflicts_with = "directory")]
    workload: Option<walk::Named>,
    /// Walk through one pod, from its template to its containers, as far as the first cause why it does not run
    #[arg(long, value_name = "NAMESPACE/NAME", group = "walked", conflicts_with = "directory")]
    pod: Option<String>,
    /// Walk again until the workload or the pod runs, or the time of --timeout is over; warnings then do not count
    #[arg(long, conflicts_with = "wait", requires = "walked")]
    watch: bool,
    /// How long --watch waits, such as 30s, 5m or 1h
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = timeout, requires = "watch")]
    timeout: Duration,
    /// Check before the installation whether the cluster is ready for it: version, your rights, the namespace (--namespace, otherwise
    /// gmsa-webhook), and what is there already of GMSA
    #[arg(long, conflicts_with_all = ["walked", "directory"])]
    pre: bool,
    /// Wait until nothing fails, at most this many seconds; warnings then do not count, what could not be checked does
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "120", conflicts_with = "directory")]
    wait: Option<u64>,
    /// Write a new file for a support case: what was checked, and the state, events, metrics and logs of the webhook; no contents of
    /// credential specs, no Secrets and no tokens
    #[arg(long, value_name = "FILE", conflicts_with = "walked")]
    bundle: Option<PathBuf>,
    /// The form of the output
    #[arg(long, short, value_enum, default_value = "table")]
    output: Shape,
    /// The same as -o json
    #[arg(long, hide = true)]
    json: bool,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    directory: DirectoryOptions,
}

pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    options.bundle.as_deref().map_or(Ok(()), bundle::check_path)?;
    // The password is asked for once, before anything else.
    let mut source = options.directory.source()?;
    block_on(async {
        let cluster = connection.cluster().await?;
        let patience = options.wait.map(Duration::from_secs).or(options.watch.then_some(options.timeout));
        let until = patience.map(|patience| Instant::now() + patience);
        let mut awaited = Vec::new();
        loop {
            let checks = match (&options.workload, &options.pod) {
                _ if options.pre => {
                    let namespace = connection.asked_namespace().unwrap_or(pre::NAMESPACE);
                    Box::pin(pre::checks(&cluster, namespace)).await?
                }
                (Some(workload), _) => Box::pin(walk::workload(&cluster, workload)).await?,
                (None, Some(pod)) => Box::pin(walk::pod(&cluster, pod)).await?,
                (None, None) => Box::pin(all_checks(&cluster, source.take())).await?,
            };
            // Nothing is waited for that is ignored.
            let awaits = |found: &Diagnostic| found.severity == Severity::Error && options.filter.keeps(found);
            let fails = checks.iter().any(|check| check.result.as_ref().is_err_and(awaits));
            if !fails || until.is_none_or(|until| Instant::now() >= until) {
                let shape = if options.json { Shape::Json } else { options.output };
                // Who waits until nothing fails is not kept waiting by warnings.
                let filter = if until.is_some() { options.filter.of_errors() } else { options.filter.clone() };
                if let Some(file) = &options.bundle {
                    Box::pin(bundle::write(&cluster, &checks, &filter, file)).await?;
                }
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

async fn all_checks(cluster: &Cluster, source: Option<Source>) -> anyhow::Result<Vec<Check>> {
    let mut installed = Vec::new();
    let (version, excluded, used, read, dns, nodes) = tokio::join!(
        cluster.get::<Info>("/version"),
        install::add_checks(cluster, &mut installed),
        usage::read(cluster),
        workloads::read(cluster),
        dns::read(cluster),
        cluster.list::<Node>(Nodes::WINDOWS),
    );
    let Info { git_version, .. } = version?;
    let version = if git_version.is_empty() { "of unknown version" } else { &git_version };
    let mut checks = vec![Check::pass("API server", format!("answers, {version}"))];
    checks.append(&mut installed);
    let domains = used.domains();
    usage::add_checks(&used, &excluded, &mut checks);
    if let Some(source) = source {
        directory::add_checks(source, used.specs(), &mut checks).await;
    }
    let mut windows = Vec::new();
    nodes::add_checks(&nodes, &mut windows);
    workloads::add_checks(cluster, read, used.pods.as_deref().ok(), nodes.ok(), &mut checks).await;
    dns::add_checks(dns, &domains, &mut checks);
    checks.append(&mut windows);
    Ok(checks)
}

fn found(about: &'static str, rule: &'static Rule, message: impl Into<String>) -> Check {
    Check::found(about, Diagnostic::new(rule, message))
}
