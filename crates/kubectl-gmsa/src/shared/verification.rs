//! Whether a container has its identity in the domain, and the first cause if not. `verify` asks an existing container, `probe` one
//! that it creates.
//!
//! Invariants: the output of a command is never shown, because it can hold tickets and names of the directory; `linux` alone shows what
//! the sidecar says. Only what every language of Windows writes alike is read: status codes, SIDs, the domain, ports, and the clients,
//! servers and encryption of tickets. Every command has a time limit. A check that could not run is neither a pass nor a failure.

use k8s_openapi::api::core::v1;
use serde_json::Value;

use super::pods::ClusterPod;
use crate::shared::rules::{self, Names};
use gmsa_core::{
    admission::pod::{Slot, SlotKind},
    credspec::domain_join::DomainJoinConfig,
    diagnostic::{Check, Diagnostic, Rule, Severity},
    quote,
};

mod answer;
mod exec;
mod linux;
mod steps;

use answer::CommandOutput;
pub use exec::Executor;
use exec::{NotRun, OTHER_IMAGE};
use steps::{Asked, User};

const POD: &str = "pod";
const CONTAINER: &str = "container";

/// The checks of one container.
pub async fn of_container(
    pod: &ClusterPod,
    container: &Slot<'_>,
    executor: &Executor,
    service: Option<&str>,
) -> Vec<Check> {
    if pod.admission.asks_tickets_of().next().is_some() {
        return linux::of_container(pod, container, executor, service).await;
    }
    let name = container.owner;
    let identity = match identity(pod, container) {
        Ok(identity) => identity,
        Err(found) => return vec![Check::found(POD, *found)],
    };
    let text = format!("{} {name} carries the credential spec of {}", container.kind, identity.account);
    let mut checks = vec![Check::pass(POD, text)];
    match not_running(pod, container) {
        Some(found) => checks.push(found),
        None => checks.extend(name_the_cause(ask(executor, &identity, service).await)),
    }
    checks
}

/// Runs all commands in order: the first failure may not be the cause.
async fn ask(executor: &Executor, identity: &Identity, service: Option<&str>) -> Vec<(Asked, Check)> {
    let mut checks = Vec::new();
    let mut user = User::default();
    for (step, about) in Asked::ALL {
        let Some(command) = step.command(identity, &user, service) else {
            let missed = if step == Asked::DomainTicket { user.sees_no_ticket(about) } else { None };
            checks.extend(missed.map(|check| (step, check)));
            continue;
        };
        let check = match executor.run(&command).await {
            Ok(answer) => {
                if step == Asked::User {
                    user = User::of(&answer);
                }
                step.check(about, &answer, identity, &command)
            }
            Err(not_run) => not_run.check(about),
        };
        let is_of_all = check.about == CONTAINER;
        checks.push((step, check));
        if is_of_all {
            break;
        }
    }
    checks
}

impl NotRun {
    /// The line of the check that needs the answer, or of the container, in which no other command is tried.
    fn check(self, about: &'static str) -> Check {
        match self {
            Self::Absent(found) | Self::TimedOut(found) => Check::found(about, *found),
            Self::Failed(found) => Check::found(CONTAINER, *found),
        }
    }
}

/// The first failure is the cause of those after it, and keeps its remedy. But a container that gets a ticket of its account finds
/// the domain, even if `nslookup` fails: then Netlogon alone fails, by its ports or by the account (Microsoft: Troubleshoot gMSAs
/// for Windows containers, *Check the container*).
fn name_the_cause(mut checks: Vec<(Asked, Check)>) -> impl Iterator<Item = Check> {
    let is_granted =
        |check: &Check| check.result.as_ref().map_or_else(|found| *found.rule == rules::ACCOUNT_ENCRYPTION, |_| true);
    let gets_ticket = checks.iter().any(|(step, check)| *step == Asked::DomainTicket && is_granted(check));
    let mut cause: Option<&'static str> = None;
    for (step, check) in &mut checks {
        let Err(found) = &mut check.result else { continue };
        if gets_ticket && matches!(step, Asked::Dns | Asked::DnsOverTcp) {
            found.severity = Severity::Warning;
        }
        if found.severity != Severity::Error {
            continue;
        }
        if let Some(cause) = cause {
            found.fix = Some(format!("Fix \"{cause}\" first, then run verify again."));
            continue;
        }
        cause = Some(check.about);
        let of_network = [&rules::NO_DOMAIN_CONTROLLER, &rules::NO_SECURE_CHANNEL, &rules::NO_ANSWER];
        if gets_ticket && matches!(step, Asked::SecureChannel | Asked::Trust) && of_network.contains(&found.rule) {
            found.fix = Some(NETLOGON_ALONE.to_owned());
        }
    }
    checks.into_iter().map(|(_, check)| check)
}

/// The remedy if Kerberos works and Netlogon does not.
const NETLOGON_ALONE: &str = "Kerberos works, so DNS and the network do. Let TCP 135, 445 and the dynamic ports through, and see whether the account has the flag \
    WORKSTATION_TRUST_ACCOUNT: `kubectl gmsa account lint`.";

/// The line of a check that could not run: neither a pass nor a failure.
fn not_checked(text: &str, fix: &str) -> Diagnostic {
    Diagnostic::new(&rules::NOT_CHECKED, text).with_fix(fix)
}

/// The account and its domain, from the contents in the pod.
struct Identity {
    domain: String,
    net_bios: String,
    account: String,
}

impl Identity {
    fn names(&self) -> Names<'_> {
        Names { account: Some(&self.account), domain: Some(&self.domain), ..Names::default() }
    }
}

/// Reads the contents for a container: its own, or the pod's.
fn identity(pod: &ClusterPod, container: &Slot<'_>) -> Result<Identity, Box<Diagnostic>> {
    let of_pod = pod.admission.slots().next();
    let slot = Some(container).filter(|slot| slot.uses_gmsa()).or(of_pod.as_ref().filter(|slot| slot.uses_gmsa()));
    if pod.admission.is_linux() {
        return Err(refusal(&rules::NO_CREDENTIAL_SPEC, "the pod is for Linux (spec.os.name), so it has no GMSA"));
    }
    let Some(slot) = slot else {
        let text = format!("container {} does not use GMSA", container.owner);
        return Err(refusal(&rules::NO_CREDENTIAL_SPEC, &text));
    };
    // Containers without their own setting inherit the pod's.
    if container.host_process.or(of_pod.as_ref().and_then(|slot| slot.host_process)) == Some(true) {
        let text = format!("container {} is a hostProcess: it acts as the account of its node", container.owner);
        return Err(refusal(&rules::HOST_PROCESS, &text));
    }
    let Some(contents) = slot.contents else {
        let text =
            "the pod names a credential spec and carries no contents: it was created without a call of the webhook";
        let found = Diagnostic::new(&rules::NAME_WITHOUT_CONTENTS, text);
        return Err(Box::new(found.fixed(pod.created_again())));
    };
    let Ok(contents) = serde_json::from_str::<Value>(contents) else {
        return Err(refusal(&rules::CMS_PLUGINS, "the contents that the pod carries are not JSON"));
    };
    let join = DomainJoinConfig::of(&contents);
    let name = |key: &str, value: Option<&str>, rule| {
        let value = value.unwrap_or("");
        word(value).map_err(|_| {
            let value = quote::quoted(value, quote::NAME);
            refusal(rule, &format!("{key} in the contents that the pod carries is not a name: {value}"))
        })
    };
    Ok(Identity {
        domain: name("DnsName", join.dns_name, &rules::DNS_NAME)?,
        net_bios: join.net_bios_name.unwrap_or("").to_owned(),
        account: name("MachineAccountName", join.machine_account_name, &rules::ACCOUNT)?,
    })
}

/// An error that ends the verification before any command.
fn refusal(rule: &'static Rule, text: &str) -> Box<Diagnostic> {
    Box::new(Diagnostic::new(rule, text).with_severity(Severity::Error))
}

/// One word of a command line, without special characters.
pub fn word(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.$/:".contains(c);
    if !text.is_empty() && !text.starts_with(['-', '/']) && text.chars().all(is_plain) {
        Ok(text.to_owned())
    } else {
        Err("expected letters, digits and - _ . $ / : beginning with neither - nor /".to_owned())
    }
}

/// Why no command can run in the container now.
fn not_running(pod: &ClusterPod, container: &Slot<'_>) -> Option<Check> {
    if pod.phase() == "Succeeded" {
        let text = "the pod has ended, and succeeded: no command can run in it";
        return Some(Check::found(CONTAINER, not_checked(text, "Verify a Pod that runs.")));
    }
    let name = container.owner;
    let statuses = pod.object.status.iter().flat_map(|status| {
        [&status.init_container_statuses, &status.ephemeral_container_statuses, &status.container_statuses]
    });
    let state =
        statuses.flatten().flatten().find(|status| status.name == name).and_then(|status| status.state.as_ref());
    let text = match state {
        Some(v1::ContainerState { running: Some(_), .. }) => return None,
        Some(v1::ContainerState { waiting: Some(waiting), .. }) => {
            let [reason, message] = [&waiting.reason, &waiting.message].map(|text| text.as_deref().unwrap_or(""));
            format!("container {name} waits: {reason}: {message}")
        }
        // A container that has ended cannot be asked any more.
        Some(v1::ContainerState { terminated: Some(ended), .. })
            if ended.exit_code == 0 && container.kind != SlotKind::Container =>
        {
            let text = format!("container {name} has ended, with exit code 0");
            return Some(Check::found(CONTAINER, not_checked(&text, "Verify another container of the Pod.")));
        }
        Some(v1::ContainerState { terminated: Some(ended), .. }) => {
            format!("container {name} ended with exit code {}", ended.exit_code)
        }
        _ => format!("container {name} does not run: the pod is {}", pod.phase()),
    };
    Some(Check::found(CONTAINER, rules::found(&rules::NOT_STARTED, text, &pod.names())))
}
