//! `version`: the version of the plugin, and of the webhook in the cluster.
//!
//! Invariants: without a cluster it prints why and still exits with 0; it waits at most 5 seconds for the cluster.

use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::{
    Outcome,
    connect::{Connection, block_on},
    doctor::{install, service},
    print, with_causes,
};
use gmsa_core::diagnostic::printable::{self, one_line};

/// How long the cluster may take.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub struct Options {
    /// The form of the output
    #[arg(long, short, value_enum, default_value = "text")]
    output: Form,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    /// For people
    Text,
    /// For programs
    Json,
}

#[derive(Serialize)]
struct Versions {
    plugin: &'static str,
    /// Two during a rollout.
    webhook: Vec<String>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    let plugin = env!("CARGO_PKG_VERSION");
    let versions = match block_on(webhook(connection)) {
        Ok(webhook) => Versions { plugin, webhook, error: None },
        Err(error) => Versions { plugin, webhook: Vec::new(), error: Some(with_causes(&error)) },
    };
    print(
        match options.output {
            Form::Text => text(&versions),
            Form::Json => printable::json(&(serde_json::to_string_pretty(&versions)? + "\n")),
        }
        .as_bytes(),
    )
}

fn text(Versions { plugin, webhook, error }: &Versions) -> String {
    let webhook = error.as_ref().map_or_else(|| webhook.join(", "), |error| format!("unknown: {error}"));
    format!("plugin   {plugin}\nwebhook  {}\n", one_line(&webhook))
}

async fn webhook(connection: &Connection) -> anyhow::Result<Vec<String>> {
    let asked = async {
        let cluster = connection.cluster().await?;
        let service = install::service_of_webhook(&cluster).await?.context("no GMSA webhook is installed")?;
        let found = service::versions(&cluster, &service).await?;
        if found.is_empty() {
            bail!("no replica of {}/{} is ready", service.namespace, service.name)
        }
        Ok(found.into_iter().collect())
    };
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(answer) => answer,
        Err(_) => bail!("no answer from the cluster within {} seconds", PATIENCE.as_secs()),
    }
}
