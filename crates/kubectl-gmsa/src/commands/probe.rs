//! `probe`: tests whether Windows nodes give a container its identity, without an application: a short-lived pod on each node runs
//! the steps of `verify`.
//!
//! Invariants: every pod is deleted at the end, also after an error, Ctrl-C and SIGTERM. If that fails, the command that deletes it is printed,
//! and a pod on a node ends by itself (`activeDeadlineSeconds`). Users of the service account's namespace gain nothing by its pod: they
//! may already create pods with this service account, run commands in them (`pods/exec`) and delete them.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    io::{self, Write as _},
    time::Duration,
};

use clap::Args;
use futures::{StreamExt as _, stream};

use crate::shared::{
    Outcome,
    args::{service_account, spec_name, timeout},
    connection::{Connection, block_on},
    live::LiveCluster,
    output::{Filter, Shape, print_checks},
    rules,
    unread::{is_cause, not_checked},
    walk::events::Events,
    world::{World, pods_of},
};
use gmsa_core::{
    admission::ServiceAccount,
    causes,
    credspec::{SpecName, dns_name},
    diagnostic::{Check, Diagnostic},
    quote::one_line,
};

mod node;
mod pod;

use node::ProbeNode;

const POD: &str = "pod";

/// The container in the pod.
const CONTAINER: &str = "probe";

/// How many nodes are probed at the same time.
const AT_ONCE: usize = 4;

const EXAMPLES: &str = "Examples:
  # Try the first Windows node that is ready
  kubectl gmsa probe --credspec webapp1 --serviceaccount shop:web

  # Try every Windows node
  kubectl gmsa probe --credspec webapp1 --serviceaccount shop:web --all-nodes";

#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Options {
    /// The credential spec
    #[arg(long, value_name = "NAME", value_parser = spec_name)]
    credspec: SpecName,
    /// The service account of the pods
    #[arg(long, value_name = "NAMESPACE:NAME", value_parser = service_account)]
    serviceaccount: ServiceAccount,
    /// The image [default: Server Core]
    ///
    /// It needs cmd, whoami, nltest, nslookup and klist. The default matches the build of the node
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// The node [default: the first ready one]
    #[arg(long, value_name = "NAME", value_parser = dns_name, group = "nodes")]
    node: Option<String>,
    /// Every Windows node
    #[arg(long, group = "nodes")]
    all_nodes: bool,
    /// A node for this runtime class
    ///
    /// The scheduler chooses it
    #[arg(long, value_name = "NAME", value_parser = dns_name, group = "nodes")]
    runtime_class: Option<String>,
    /// How long a pod may take
    ///
    /// Until its container runs, the download of the image included; at most 24h
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = pod_timeout)]
    timeout: Duration,
    /// Print table or json
    #[arg(long, short, value_enum, default_value = "table", hide_possible_values = true)]
    output: Shape,
    #[command(flatten)]
    filter: Filter,
}

/// A finite time-out, because the pods need one.
fn pod_timeout(text: &str) -> Result<Duration, String> {
    const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
    timeout(text)
        .ok()
        .filter(|time| *time <= LONGEST)
        .ok_or_else(|| "expected a duration such as 15m, at most 24h".to_owned())
}

/// Probes the nodes, and reports for each whether it gives the identity, or the first cause.
pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    let (checks, left) = block_on(async {
        let cluster = connection.cluster().await?;
        let probe = Probe {
            options,
            namespace: options.serviceaccount.namespace.to_string(),
            client: connection.http1_client().await?,
            cluster,
            pods: RefCell::default(),
        };
        let checks = tokio::select! {
            checks = probe.all() => checks,
            interrupted = interrupted() => match interrupted {
                Ok(()) => Err(anyhow::anyhow!("interrupted")),
                Err(error) => Err(error.into()),
            },
        };
        let left = tokio::select! {
            left = probe.delete_all() => left,
            _ = interrupted() => probe.pods.take().into_keys().collect(),
        };
        for name in &left {
            writeln!(io::stderr(), "left behind: kubectl delete pod {name} --namespace {}", probe.namespace)?;
        }
        Ok((checks?, left))
    })?;
    let outcome = print_checks(checks, options.output, &options.filter)?;
    Ok(if left.is_empty() { outcome } else { outcome.max(Outcome::Incomplete) })
}

/// Waits for Ctrl-C, or for SIGTERM: a job that is cancelled gets that.
async fn interrupted() -> io::Result<()> {
    #[cfg(unix)]
    {
        let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted,
            _ = terminated.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}

/// The state of one run of the command.
struct Probe<'o> {
    options: &'o Options,
    cluster: LiveCluster,
    /// For `exec`.
    client: kube::Client,
    /// The namespace of the service account.
    namespace: String,
    /// The names of the pods that may exist, and whether the API server has confirmed each.
    pods: RefCell<BTreeMap<String, bool>>,
}

impl Probe<'_> {
    fn path(&self, name: &str) -> String {
        format!("{}/{name}", pods_of(Some(&self.namespace)))
    }

    async fn all(&self) -> anyhow::Result<Vec<Check>> {
        let places = node::chosen(&self.cluster, self.options).await?;
        let each = stream::iter(&places).map(|place| self.at(place)).buffered(AT_ONCE);
        let mut checks = each.collect::<Vec<_>>().await;
        if checks.iter().any(is_cause) {
            // Reads that would have helped to explain it.
            let now = World::of(self.cluster.clone());
            let (events, nodes) = tokio::join!(Events::read(&now, Some(&self.namespace)), now.windows_nodes());
            checks.extend(nodes.err().map(|unread| unread.check("Windows nodes")));
            checks.extend(events.not_read());
        }
        Ok(checks)
    }

    /// Probes one node: the first cause, if it does not give the identity.
    async fn at(&self, place: &ProbeNode) -> Check {
        let mut check = match &place.fault {
            Some(fault) => Check::found(node::NODE, fault.clone()),
            None => self.identity(place).await.unwrap_or_else(|error| not_checked(POD, &error)),
        };
        match &mut check.result {
            Ok(text) => *text = format!("{}: {text}", place.name()),
            Err(found) => place.name().clone_into(&mut found.object),
        }
        check
    }

    /// Deletes a pod that may exist.
    async fn delete(&self, name: &str) -> anyhow::Result<()> {
        let was_there = self.cluster.delete(&self.path(name), false, None).await?;
        // A create request without an answer may still succeed later.
        if !was_there && self.pods.borrow().get(name) == Some(&false) {
            return Ok(());
        }
        self.pods.borrow_mut().remove(name);
        Ok(())
    }

    /// Deletes the remaining pods. Returns those that could not be deleted, or that may still be created.
    async fn delete_all(&self) -> Vec<String> {
        let names: Vec<String> = self.pods.borrow().keys().cloned().collect();
        for name in &names {
            if let Err(error) = self.delete(name).await {
                let line = format!("error: cannot delete pod {name}: {}", causes::chain(error.as_ref()));
                // If stderr cannot be written, the command cannot be shown either.
                let _ = writeln!(io::stderr(), "{}", one_line(&line));
            }
        }
        self.pods.take().into_keys().collect()
    }
}

/// The result for a node: the first failure, which causes the later ones, or else a check that could not run.
fn first_cause(checks: &[Check], otherwise: impl FnOnce() -> Check) -> Check {
    let is_unchecked = |found: &Diagnostic| *found.rule == rules::NOT_CHECKED;
    let unchecked = || checks.iter().find(|check| check.result.as_ref().is_err_and(is_unchecked));
    checks.iter().find(|check| is_cause(check)).or_else(unchecked).cloned().unwrap_or_else(otherwise)
}
