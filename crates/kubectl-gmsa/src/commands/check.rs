//! `check`: makes the webhook's decision about every pod in manifests, or in a cluster.
//!
//! Invariants: the decisions are made by the server's own code from the same facts. Only the source of the facts differs: the
//! manifests, another folder, or the cluster. Nothing is created in a cluster: besides reads there are only access reviews.
//!
//! A new finding on a pod is a module here, called in `check` of `pods.rs`; on an object that the pod refers to, in `refers`.
//! `misplaced.rs` finds misspelt and misplaced fields.

use std::path::PathBuf;

use anyhow::{bail, ensure};
use clap::Args;

use crate::shared::{
    Outcome,
    args::size,
    connection::{Connection, block_on},
    credspecs, input,
    output::{Filter, Format, Report},
    rules,
    world::ClusterSource,
};
use gmsa_cluster::manifests::Document;
mod advice;
mod builds;
mod context;
mod decided;
mod misplaced;
mod placeholders;
mod pods;
mod sidecar;
mod template;
mod tickets;
mod workloads;

use context::CheckContext;

const EXAMPLES: &str = "Examples:
  # Check the manifests of a folder
  kubectl gmsa check -f manifests/

  # Check what Helm renders against the cluster
  helm template shop | kubectl gmsa check -f - --live

  # Check the workloads of the whole cluster
  kubectl gmsa check -A";

#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Options {
    /// A file, folder or pattern, or - for stdin; repeatable
    #[arg(long = "filename", short, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A file without -f
    #[arg(value_name = "FILE", hide = true)]
    stray: Option<PathBuf>,
    /// Check the workloads of all namespaces of the cluster
    ///
    /// For one namespace, use --namespace without -f
    #[arg(long, short = 'A', conflicts_with_all = ["files", "state"])]
    all_namespaces: bool,
    /// Read credential specs and RBAC from here
    ///
    /// A file, a folder, or - for standard input, instead of the manifests
    #[arg(long, value_name = "DIR", conflicts_with_all = ["live", "from"])]
    state: Option<PathBuf>,
    /// Ask the cluster for credential specs and permissions
    ///
    /// Also for webhooks, service accounts, runtime classes and the builds of nodes. Workloads of the cluster are always checked this way
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    from: ClusterSource,
    /// Read at most this much of files
    ///
    /// In bytes, or with Ki, Mi or Gi
    #[arg(long, value_name = "SIZE", default_value = "64Mi", value_parser = size)]
    max_size: usize,
    /// Print table, json, sarif or github
    ///
    /// sarif is for code scanning, github for the log of a GitHub workflow
    #[arg(long, short, value_enum, default_value = "table", hide_possible_values = true)]
    output: Format,
    #[command(flatten)]
    filter: Filter,
}

pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    let namespace = connection.asked_namespace().filter(|_| !options.all_namespaces);
    if let Some(file) = &options.stray {
        let file = file.display();
        bail!("{file} is given without -f: is `kubectl gmsa check -f {file}` meant?");
    }
    let is_of_cluster = options.files.is_empty();
    ensure!(
        !is_of_cluster || options.all_namespaces || namespace.is_some(),
        "nothing to check: name manifests (-f FILE), or check the workloads of the live cluster, in all namespaces (-A) or in one (-n NAMESPACE)"
    );
    ensure!(!is_of_cluster || options.state.is_none(), "--state is for manifests: name them (-f)");
    let (mut report, mut documents) = (Report::default(), Vec::new());
    if !is_of_cluster {
        let mut found = input::manifests(&options.files, "check -f -", Some(options.max_size));
        input::expect(found.documents.len(), "Kubernetes object", &mut found.problems, &options.files);
        report.findings = found.problems;
        report.findings.extend(found.foreign);
        documents = found.documents;
    }
    block_on(async {
        let is_live = is_of_cluster || options.live || options.from.is_named();
        let world = if is_live { Some(options.from.open(connection).await?) } else { None };
        if let Some(world) = world.as_ref().filter(|_| is_of_cluster) {
            documents = workloads::read(world, namespace, &mut report).await?;
        }
        report.documents = documents.len();
        let context = CheckContext::of(options, connection, world, &documents, &mut report);
        for document in &documents {
            check(document, &context, &mut report).await?;
        }
        report.findings.extend(context.unchecked());
        anyhow::Ok(())
    })?;
    report.print(options.output, &options.filter)
}

/// Adds the findings on a document.
async fn check(document: &Document, context: &CheckContext, report: &mut Report) -> anyhow::Result<()> {
    let value = document.value();
    if credspecs::is_credential_spec(document) {
        report.findings.extend(credspecs::findings(document, &value));
        return Ok(());
    }
    let namespace = context.world.namespace.as_str();
    let (pods, more) = template::pods(document, &value, namespace);
    report.findings.extend(misplaced::findings(document, &value, &pods, namespace));
    for pod in &pods {
        pods::check(pod, context, report).await?;
    }
    if let Some(pod) = pods.first().filter(|_| more > 0) {
        let text = format!("{more} more pod templates of this object are not checked");
        let fix = "write them as objects of their own";
        report.findings.push(pod.finding_at(&rules::NOT_CHECKED, "", text).with_fix(fix));
    }
    Ok(())
}
