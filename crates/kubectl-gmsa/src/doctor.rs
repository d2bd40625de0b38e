//! `doctor`: a check-up of an installed webhook and of what uses it, each line pass, warn or fail with its remedy.
//!
//! What always holds: nothing is changed in the cluster: the one request that is not a read is a pod that the API server is
//! asked to create as a dry run, which shows whether it can call the webhook at all. What may not be read is a warning, not
//! a failure.

use std::{
    io::{self, Write as _},
    time::Duration,
};

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use gmsa_core::diagnostic::{
    Severity,
    printable::{self, one_line},
};

use super::{
    Outcome,
    connect::{Cluster, Connection, block_on},
    output::Style,
    print, with_causes,
};

mod certificate;
mod install;
mod nodes;
mod one_pod;
mod selector;
mod service;
mod usage;

/// How long `--wait` rests between two check-ups.
const REST: Duration = Duration::from_secs(2);

/// What to look at.
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

/// The result of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Pass,
    Warn,
    Fail,
}

/// One line of the check-up.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Line {
    status: Status,
    /// What was looked at.
    about: &'static str,
    /// The result.
    text: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    /// What to run to see more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    commands: Vec<String>,
}

impl Line {
    pub(super) fn pass(about: &'static str, text: impl Into<String>) -> Self {
        Self { status: Status::Pass, about, text: text.into(), remedy: None, commands: Vec::new() }
    }

    pub(super) fn warn(about: &'static str, text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { status: Status::Warn, about, text: text.into(), remedy: Some(remedy.into()), commands: Vec::new() }
    }

    pub(super) fn fail(about: &'static str, text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { status: Status::Fail, about, text: text.into(), remedy: Some(remedy.into()), commands: Vec::new() }
    }

    /// What could not be looked at.
    pub(super) fn unknown(about: &'static str, error: &anyhow::Error) -> Self {
        let text = format!("could not be looked at: {}", with_causes(error));
        Self::warn(about, text, "run this as somebody who may read it (--as, --context)")
    }
}

/// Looks at everything, or at one pod.
///
/// # Errors
/// Where there is no cluster to ask.
pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    block_on(async {
        let cluster = connection.cluster().await?;
        let until = options.wait.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let mut told = Vec::new();
        loop {
            let lines = match &options.pod {
                Some(pod) => one_pod::explain(&cluster, pod).await?,
                None => look(&cluster).await?,
            };
            let worst = lines.iter().map(|line| line.status).max().unwrap_or(Status::Pass);
            if worst < Status::Fail || until.is_none_or(|until| Instant::now() >= until) {
                show(&lines, options.json)?;
                let enough = if until.is_some() { Status::Warn } else { Status::Pass };
                return Ok(if worst <= enough { Outcome::Clean } else { Outcome::Findings });
            }
            told = tell(&lines, &told)?;
            sleep(REST).await;
        }
    })
}

/// Says on standard error what is waited for, whenever that has changed; gives back what was said.
fn tell(lines: &[Line], told: &[String]) -> io::Result<Vec<String>> {
    let failing = lines.iter().filter(|line| line.status == Status::Fail);
    let awaited: Vec<String> =
        failing.map(|line| format!("waiting: {}: {}\n", line.about, one_line(&line.text))).collect();
    if awaited != told {
        io::stderr().write_all(awaited.concat().as_bytes())?;
    }
    Ok(awaited)
}

async fn look(cluster: &Cluster) -> anyhow::Result<Vec<Line>> {
    let version = cluster.get("/version").await?;
    let git = version.get("gitVersion").and_then(Value::as_str).unwrap_or("of unknown version");
    let mut lines = vec![Line::pass("API server", format!("answers, {git}"))];
    let namespaces = install::look(cluster, &mut lines).await;
    usage::look(cluster, namespaces.as_deref(), &mut lines).await;
    nodes::look(cluster, &mut lines).await;
    Ok(lines)
}

fn show(lines: &[Line], json: bool) -> anyhow::Result<()> {
    let text = if json {
        printable::json(&(serde_json::to_string_pretty(lines)? + "\n"))
    } else {
        table(lines, Style::of_terminal())
    };
    print(text.as_bytes())?;
    Ok(())
}

fn table(lines: &[Line], style: Style) -> String {
    let width = lines.iter().map(|line| line.about.chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for line in lines {
        let mark = match line.status {
            Status::Pass => style.good("pass"),
            Status::Warn => style.level(Severity::Warning, "warn"),
            Status::Fail => style.level(Severity::Error, "fail"),
        };
        text.push_str(&format_line(&mark, line, width));
    }
    text
}

fn format_line(mark: &str, line: &Line, width: usize) -> String {
    let about = line.about;
    let remedy = line.remedy.as_ref().map(|text| format!("      {:width$}  -> {}\n", "", one_line(text)));
    let commands: Vec<_> = line.commands.iter().flat_map(|command| [one_line(command), "\n".into()]).collect();
    let commands = commands.concat();
    format!("{mark}  {about:width$}  {}\n{commands}{}", one_line(&line.text), remedy.unwrap_or_default())
}

/// A text in a JSON object, empty where there is none.
fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The items of a list in a JSON object.
fn items<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// Up to five of many names.
fn some<S: AsRef<str>>(names: &[S]) -> String {
    let shown: Vec<&str> = names.iter().take(5).map(AsRef::as_ref).collect();
    let more = names.len().saturating_sub(shown.len());
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}
