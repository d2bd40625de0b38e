//! `version`: the version of the plugin, and of the webhook in the cluster.
//!
//! Invariants: without a cluster it prints why and still exits with 0. It waits at most 5 seconds for the cluster; a credential program of
//! the kubeconfig can take longer.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use k8s_openapi::api::{admissionregistration::v1::ServiceReference, core::v1::Pod};
use serde::Serialize;

use crate::shared::{
    Outcome,
    connection::{Connection, block_on},
    output::{Shape, print_as},
    webhook::{endpoints, image, is_ready, metrics, pod_name, release},
    world::World,
};
use gmsa_core::{causes, quote::one_line};

/// The time limit for the cluster.
const CLUSTER_TIMEOUT: Duration = Duration::from_secs(5);

const EXAMPLES: &str = "Examples:
  # Show the versions
  kubectl gmsa version

  # For a program
  kubectl gmsa version -o json";

#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Options {
    /// Print table or json
    #[arg(long, short, value_enum, default_value = "table", hide_possible_values = true)]
    output: Shape,
}

#[derive(Serialize)]
struct Versions {
    plugin: &'static str,
    /// Has two entries during a rollout.
    webhook: Vec<String>,
    /// Why there is no version.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<String>,
}

pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    let (plugin, found) = (env!("CARGO_PKG_VERSION"), block_on(webhook(connection)));
    let unknown = found.as_ref().err().map(|error| causes::chain(error.as_ref()));
    let webhook = found.unwrap_or_default();
    let shown = unknown.as_ref().map_or_else(|| webhook.join(", "), |why| format!("unknown: {why}"));
    let table = || format!("plugin   {plugin}\nwebhook  {}\n", one_line(&shown));
    print_as(options.output, Outcome::Clean, table, Versions { plugin, webhook, unknown })
}

async fn webhook(connection: &Connection) -> anyhow::Result<Vec<String>> {
    let asked = async {
        let world = World::of(connection.cluster().await?);
        let mut webhooks = world.webhooks().await?.iter();
        let of_pods = webhooks.find(|found| found.is_of_pods()).context("no GMSA webhook is installed")?;
        let client = &of_pods.webhook.client_config;
        let Some(service) = &client.service else {
            let url = client.url.as_deref().unwrap_or_default();
            bail!("called at {url}, outside of the cluster's Services: its path /info says its version");
        };
        let found = versions(&world, service).await?;
        ensure!(!found.is_empty(), "no replica of {}/{} is ready", service.namespace, service.name);
        Ok(found.into_iter().collect())
    };
    match tokio::time::timeout(CLUSTER_TIMEOUT, asked).await {
        Ok(answer) => answer,
        Err(_) => bail!("no answer from the cluster within {} seconds", CLUSTER_TIMEOUT.as_secs()),
    }
}

/// The distinct versions of the replicas, sorted: two during a rollout. If the metrics of a replica cannot be read, the tag of its
/// image counts.
async fn versions(world: &World, service: &ServiceReference) -> anyhow::Result<BTreeSet<String>> {
    let endpoints = endpoints(world, service).await?;
    let mut found = BTreeSet::new();
    for endpoint in endpoints.iter().filter(|endpoint| is_ready(endpoint)) {
        let Some(name) = pod_name(endpoint) else { continue };
        // The pod may be deleted by now.
        let path = format!("/api/v1/namespaces/{}/pods/{name}", service.namespace);
        let Some(pod) = world.find::<Pod>(&path).await? else { continue };
        let metrics = metrics(world, &pod).await;
        found.extend(
            metrics.and_then(Result::ok).as_deref().and_then(built).or_else(|| Some(release(image(&pod)?)?.to_owned())),
        );
    }
    Ok(found)
}

/// The version from the build metric.
fn built(metrics: &str) -> Option<String> {
    let labels = metrics.lines().find_map(|line| line.strip_prefix("gmsa_webhook_build_info{"))?;
    Some(labels.split_once("version=\"")?.1.split_once('"')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_an_image_is_its_tag() {
        assert_eq!(release("gmsa-webhook:0.1.0"), Some("0.1.0"));
        assert_eq!(release("registry.example.com:5000/gmsa-webhook:1.2.3@sha256:abc"), Some("1.2.3"));
        assert_eq!(release("registry.example.com:5000/gmsa-webhook"), None);
        assert_eq!(release("gmsa-webhook@sha256:abc"), None);
    }

    #[test]
    fn the_version_of_a_replica_is_in_its_metrics() {
        let metrics = "# EOF\ngmsa_webhook_build_info{version=\"1.2.3\"} 1\n";
        assert_eq!(built(metrics).as_deref(), Some("1.2.3"));
        assert_eq!(built("gmsa_webhook_connections 1\n"), None);
    }
}
