//! `doctor`: checks an installation and the workloads that use it. Each check passes, warns or fails.
//!
//! Invariants: nothing is changed in the cluster. The one request that is not a read is a Pod that the API server
//! creates as a dry run, which shows whether it can call the webhook. What the user is not allowed to read is a warning, not a failure.

use std::{
    io::{self, Write as _},
    time::Duration,
};

use clap::Args;
use k8s_openapi::apimachinery::pkg::version::Info;
use serde::Serialize;
use tokio::time::{Instant, sleep};

use gmsa_core::diagnostic::{
    Check, Diagnostic, Severity,
    printable::{self, one_line},
    rules::{self, Rule},
};

use super::{
    Outcome,
    connect::{Cluster, Connection, block_on},
    output::{Style, sentence},
    print, with_causes,
};

mod certificate;
pub(super) mod install;
mod nodes;
mod one_pod;
pub(super) mod service;
pub(super) mod usage;

/// How long `--wait` pauses between two rounds of checks.
const PAUSE: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub struct Options {
    /// Explain one pod, from admission to node
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pod: Option<String>,
    /// Wait until nothing fails, at most this many seconds; warnings then do not count
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "120")]
    wait: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    block_on(async {
        let cluster = connection.cluster().await?;
        let until = options.wait.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let mut awaited = Vec::new();
        loop {
            let checks = match &options.pod {
                Some(pod) => one_pod::explain(&cluster, pod).await?,
                None => all_checks(&cluster).await?,
            };
            let worst = checks.iter().filter_map(Check::severity).max();
            let fails = worst == Some(Severity::Error);
            if !fails || until.is_none_or(|until| Instant::now() >= until) {
                let text = if options.json { json(&checks)? } else { table(&checks, Style::of_terminal()) };
                print(text.as_bytes())?;
                let is_clean = worst.is_none() || (until.is_some() && !fails);
                return Ok(if is_clean { Outcome::Clean } else { Outcome::Findings });
            }
            awaited = report_waiting(&checks, &awaited)?;
            sleep(PAUSE).await;
        }
    })
}

/// Writes to standard error which checks fail, whenever that has changed; returns them.
fn report_waiting(checks: &[Check], reported: &[String]) -> io::Result<Vec<String>> {
    let failing = checks.iter().filter(|check| check.severity() == Some(Severity::Error));
    let awaited: Vec<String> =
        failing.map(|check| format!("waiting: {}: {}\n", check.about, one_line(&text(check)))).collect();
    if awaited != reported {
        io::stderr().write_all(awaited.concat().as_bytes())?;
    }
    Ok(awaited)
}

async fn all_checks(cluster: &Cluster) -> anyhow::Result<Vec<Check>> {
    let Info { git_version, .. } = cluster.get("/version").await?;
    let version = if git_version.is_empty() { "of unknown version" } else { &git_version };
    let mut checks = vec![Check::pass("API server", format!("answers, {version}"))];
    let excluded = install::add_checks(cluster, &mut checks).await;
    usage::add_checks(cluster, &excluded, &mut checks).await;
    nodes::add_checks(cluster, &mut checks).await;
    Ok(checks)
}

fn found(about: &'static str, rule: &'static Rule, message: impl Into<String>) -> Check {
    Check::found(about, Diagnostic::new(rule, message))
}

fn not_checked(about: &'static str, error: &anyhow::Error) -> Check {
    found(about, &rules::NOT_CHECKED, format!("could not be checked: {}", with_causes(error)))
}

#[derive(Serialize)]
struct Shown<'c> {
    status: &'static str,
    about: &'static str,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<&'c str>,
}

impl<'c> From<&'c Check> for Shown<'c> {
    fn from(check: &'c Check) -> Self {
        let found = check.result.as_ref().err();
        Self {
            status: status(check),
            about: check.about,
            text: text(check),
            rule: found.map(|found| found.rule.id),
            remedy: found.map(Diagnostic::remedy),
        }
    }
}

pub(super) fn json(checks: &[Check]) -> anyhow::Result<String> {
    let checks: Vec<Shown<'_>> = checks.iter().map(Shown::from).collect();
    Ok(printable::json(&(serde_json::to_string_pretty(&checks)? + "\n")))
}

pub(super) fn table(checks: &[Check], style: Style) -> String {
    let width = checks.iter().map(|check| check.about.chars().count()).max().unwrap_or_default();
    let row = |check: &Check| {
        let status = status(check);
        let mark = check.severity().map_or_else(|| style.good(status), |severity| style.level(severity, status));
        let line = format!("{mark}  {:width$}  {}", check.about, one_line(&text(check)));
        match &check.result {
            Ok(_) => line + "\n",
            Err(found) => {
                format!("{line} [{}]\n      {:width$}  -> {}\n", found.rule.id, "", one_line(found.remedy()))
            }
        }
    };
    checks.iter().map(row).collect()
}

fn status(check: &Check) -> &'static str {
    match check.severity() {
        None => "pass",
        Some(_) if check.result.as_ref().is_err_and(|found| *found.rule == rules::NOT_CHECKED) => "skip",
        Some(Severity::Note | Severity::Warning) => "warn",
        Some(Severity::Error) => "fail",
    }
}

fn text(check: &Check) -> String {
    check.result.as_ref().map_or_else(sentence, String::clone)
}

/// Up to five names, and the number of the others.
pub(super) fn first_five<S: AsRef<str>>(names: &[S]) -> String {
    let shown: Vec<&str> = names.iter().take(5).map(AsRef::as_ref).collect();
    let more = names.len().saturating_sub(shown.len());
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}
