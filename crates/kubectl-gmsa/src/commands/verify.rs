//! `verify`: runs commands in a container to verify that it has its identity in the domain, and finds the first cause why not.
//!
//! Invariants: the output of a command is never shown, because it can hold tickets and names of the directory; only status
//! codes are read, which are the same in every language of Windows; every command has a time limit; the first cause ends the
//! checks.

use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use k8s_openapi::api::core::v1;
use serde_json::Value;

use crate::shared::{
    Outcome,
    connection::{Connection, block_on},
    output::{Style, json, table},
    pods::ClusterPod,
    print, progress,
};
use gmsa_core::{
    admission::pod::{Slot, SlotKind},
    diagnostic::{
        Check, Diagnostic, Severity,
        rules::{self, Rule},
    },
    quote,
};

mod answer;
mod cause;
mod exec;
mod steps;

use answer::CommandOutput;
use exec::{Execution, Executor};
use steps::Step;

#[derive(Debug, Args)]
pub struct Options {
    /// The pod
    #[arg(value_name = "NAMESPACE/POD")]
    pod: String,
    /// The container [default: the first that uses GMSA]
    #[arg(long, short, value_name = "NAME")]
    container: Option<String>,
    /// A service principal name that the container must get a ticket for [default: the account itself]
    #[arg(long, value_name = "CLASS/HOST", value_parser = word)]
    service: Option<String>,
    /// How long each command may take
    #[arg(long, value_name = "SECONDS", default_value = "15", value_parser = clap::value_parser!(u64).range(1..=300))]
    timeout: u64,
    /// The form of the output
    #[arg(long, short, value_enum, default_value = "table")]
    output: Shape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shape {
    /// For people
    Table,
    /// For programs
    Json,
}

const POD: &str = "pod";
const CONTAINER: &str = "container";

/// Runs the commands, until one names a cause.
pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    let checks = block_on(verify(options, connection))?;
    let outcome = if checks.iter().all(|check| check.result.is_ok()) { Outcome::Clean } else { Outcome::Findings };
    let text = match options.output {
        Shape::Table => table::checks(&checks, Style::of_terminal()),
        Shape::Json => json::checks(&checks)?,
    };
    print(text)?;
    Ok(outcome)
}

async fn verify(options: &Options, connection: &Connection) -> anyhow::Result<Vec<Check>> {
    let cluster = connection.cluster().await?;
    let (namespace, name, pod) = ClusterPod::find(&cluster, &options.pod).await?;
    let container = container(&pod, options.container.as_deref())?;
    let mut checks = Vec::new();
    let identity = match identity(&pod, &container) {
        Ok(identity) => identity,
        Err(found) => return Ok(vec![Check::found(POD, *found)]),
    };
    checks.push(Check::pass(POD, format!("container {container} carries the credential spec of {}", identity.account)));
    if let Some(found) = not_running(&pod, &container) {
        checks.push(Check::found(CONTAINER, found));
        return Ok(checks);
    }
    let executor = Executor {
        client: connection.http1_client().await?,
        namespace,
        pod: name,
        container,
        limit: Duration::from_secs(options.timeout),
    };
    ask(&executor, &identity, options.service.as_deref(), &mut checks).await?;
    Ok(checks)
}

/// Runs one command after the other, up to the first cause.
async fn ask(
    executor: &Executor,
    identity: &Identity,
    service: Option<&str>,
    checks: &mut Vec<Check>,
) -> anyhow::Result<()> {
    let mut user: Option<String> = None;
    for step in Step::ALL {
        let Some(command) = step.command(identity, user.as_deref(), service) else { continue };
        progress::doing(&format!("running {} in the container", command.join(" ")));
        let answer = match executor.run(&command).await? {
            Execution::Ended(answer) => answer,
            Execution::Refused(found) => {
                checks.push(Check::found(CONTAINER, *found));
                return Ok(());
            }
            Execution::NotStarted(why) => {
                let text = format!("{} could not be run: {why}", command.join(" "));
                let fix = "use an image that has this command, such as one on Server Core";
                checks.push(Check::found(step.about(), Diagnostic::new(&rules::NOT_CHECKED, text).with_fix(fix)));
                continue;
            }
            Execution::TimedOut => {
                let limit = executor.limit.as_secs();
                let text = format!("{} did not end within {limit} s", command.join(" "));
                checks.push(Check::found(step.about(), Diagnostic::new(&rules::NO_ANSWER, text)));
                return Ok(());
            }
        };
        if step == Step::User {
            user = answer.sid().map(str::to_owned);
        }
        let check = step.check(&answer, identity, &command);
        let is_cause = check.severity() == Some(Severity::Error);
        checks.push(check);
        if is_cause {
            return Ok(());
        }
    }
    Ok(())
}

/// The container that was asked for, or the first that uses GMSA.
fn container(pod: &ClusterPod, asked: Option<&str>) -> anyhow::Result<String> {
    let mut slots = pod.admission.slots();
    let of_pod = slots.next();
    let mut containers = slots.filter(|slot| slot.kind == SlotKind::Container);
    let found = if let Some(asked) = asked {
        containers.find(|slot| slot.owner == asked)
    } else {
        let all: Vec<Slot<'_>> = containers.collect();
        let uses = |slot: &&Slot<'_>| slot.uses_gmsa() || of_pod.as_ref().is_some_and(Slot::uses_gmsa);
        all.iter().find(uses).or(all.first()).copied()
    };
    let found = found.with_context(|| match asked {
        Some(asked) => format!("the pod has no container {asked:?}"),
        None => "the pod has no container".to_owned(),
    })?;
    Ok(found.owner.to_owned())
}

/// What the contents in the pod say of the account and its domain.
struct Identity {
    domain: String,
    account: String,
}

/// Reads the contents that a container gets: its own, or the pod's.
fn identity(pod: &ClusterPod, container: &str) -> Result<Identity, Box<Diagnostic>> {
    let mut slots = pod.admission.slots();
    let of_pod = slots.next().filter(Slot::uses_gmsa);
    let own = slots.find(|slot| slot.kind == SlotKind::Container && slot.owner == container).filter(Slot::uses_gmsa);
    if pod.admission.is_linux() {
        return Err(refusal(&rules::NO_CREDENTIAL_SPEC, "the pod is for Linux (spec.os.name), so it has no GMSA"));
    }
    let Some(slot) = own.or(of_pod) else {
        let text = format!("container {container} does not use GMSA");
        return Err(refusal(&rules::NO_CREDENTIAL_SPEC, &text));
    };
    let Some(contents) = slot.contents else {
        let text =
            "the pod names a credential spec and carries no contents: it was created without a call of the webhook";
        let fix = "delete it: its controller creates a new one; kubectl gmsa doctor checks the webhook";
        let found = Diagnostic::new(&rules::NAME_WITHOUT_CONTENTS, text).with_fix(fix);
        return Err(Box::new(found));
    };
    let contents: Value = serde_json::from_str(contents)
        .map_err(|_| refusal(&rules::DNS_NAME, "the contents that the pod carries are not JSON"))?;
    let of_join = |key: &str, rule| {
        let value = contents.pointer(&format!("/DomainJoinConfig/{key}")).and_then(Value::as_str).unwrap_or("");
        word(value).map_err(|_| {
            let value = quote::quoted(value, quote::NAME);
            refusal(rule, &format!("{key} in the contents that the pod carries is not a name: {value}"))
        })
    };
    Ok(Identity {
        domain: of_join("DnsName", &rules::DNS_NAME)?,
        account: of_join("MachineAccountName", &rules::ACCOUNT)?,
    })
}

/// An error after which no command is run.
fn refusal(rule: &'static Rule, text: &str) -> Box<Diagnostic> {
    Box::new(Diagnostic::new(rule, text).with_severity(Severity::Error))
}

/// One word of a command line, without special characters.
fn word(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.$/:".contains(c);
    if !text.is_empty() && !text.starts_with(['-', '/']) && text.chars().all(is_plain) {
        Ok(text.to_owned())
    } else {
        Err("expected letters, digits, dots, hyphens and slashes".to_owned())
    }
}

/// Why no command can run in the container now.
fn not_running(pod: &ClusterPod, container: &str) -> Option<Diagnostic> {
    let status = pod.object.status.as_ref();
    let mut statuses = status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let state = statuses.find(|status| status.name == container).and_then(|status| status.state.as_ref());
    let text = match state {
        Some(v1::ContainerState { running: Some(_), .. }) => return None,
        Some(v1::ContainerState { waiting: Some(waiting), .. }) => {
            let [reason, message] = [&waiting.reason, &waiting.message].map(|text| text.as_deref().unwrap_or(""));
            format!("container {container} waits: {reason}: {message}")
        }
        Some(v1::ContainerState { terminated: Some(ended), .. }) => {
            format!("container {container} ended with exit code {}", ended.exit_code)
        }
        _ => format!("container {container} does not run: the pod is {}", pod.phase()),
    };
    Some(Diagnostic::new(&rules::NOT_STARTED, text))
}
