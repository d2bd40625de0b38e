//! Whether a Linux pod has its tickets, by its sidecar, and whether a container reads them, by MIT's or Heimdal's programs in its image.
//!
//! Invariant: of what the sidecar reports, names, a time and its last failure are shown; the output of other programs is not.

use gmsa_core::{
    admission::pod::{
        Slot, SlotKind,
        tickets::{FOLDER, SIDECAR, SidecarFields},
    },
    credspec::Verb,
    diagnostic::{Check, Diagnostic, Severity},
    quote::remark,
};
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;

use super::{CONTAINER, CommandOutput, Executor, NotRun, POD, not_checked, not_running, refusal};
use crate::shared::{
    pods::ClusterPod,
    rules::{self, AgentFailure, Names, Phase},
};

const TICKETS: &str = "tickets";
const KEYTAB: &str = "keytab";
const CLIENT: &str = "client";

/// The command that lists the tickets of a cache.
const LIST: [&str; 2] = ["klist", "-e"];

/// The remedy for a container that reads another cache.
const OTHER_CACHE: &str = "Set `KRB5CCNAME=FILE:/var/run/gmsa/krb5cc` in this container.";

/// The agent's output: `gmsa-tickets agent ready --json`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AgentState {
    tickets: Option<KeptTickets>,
    last_failure: Option<String>,
    keytab: Option<KeptKeytab>,
    last_keytab_failure: Option<String>,
}

/// The entries of the keytab: of these names and the account's own, and the number of the key in force.
#[derive(Deserialize)]
struct KeptKeytab {
    principal: String,
    names: Vec<String>,
    kvno: u32,
}

/// The tickets in the files.
#[derive(Deserialize)]
struct KeptTickets {
    principal: String,
    services: Vec<String>,
    expires: Timestamp,
}

pub(super) async fn of_container(
    pod: &ClusterPod,
    container: &Slot<'_>,
    executor: &Executor,
    service: Option<&str>,
) -> Vec<Check> {
    let name = container.owner;
    let is_sidecar = |slot: &Slot<'_>| slot.kind == SlotKind::InitContainer && slot.owner == SIDECAR;
    let Some(sidecar) = pod.admission.slots().find(is_sidecar) else {
        let what = pod.admission.asks().next().map_or(Verb::Use, |(verb, _)| verb).product().of_a_pod;
        let text = format!("the pod asks for {what}, and has no init container {SIDECAR}");
        return vec![Check::found(POD, *refusal(&rules::TICKETS_NOT_INJECTED, &text))];
    };
    let mut checks = vec![if is_sidecar(container) || container.tickets.has(SidecarFields::TICKETS) {
        let of_spec = |(verb, spec): (Verb, &str)| format!("{} of {spec}", verb.product().of_this_pod);
        let mounted: Vec<String> = pod.admission.tokens().map(of_spec).collect();
        Check::pass(POD, format!("{} {name} mounts {}", container.kind, mounted.join(" and ")))
    } else {
        let text = format!("{} {name} does not mount volume {SIDECAR:?} at {FOLDER}", container.kind);
        Check::found(POD, *refusal(&rules::TICKET_SIDECAR, &text))
    }];
    if let Some(found) = not_running(pod, &sidecar) {
        checks.push(found);
        return checks;
    }
    let of_sidecar = Executor { container: SIDECAR.to_owned(), ..executor.clone() };
    let state = match of_sidecar.run(&["/gmsa-tickets", "agent", "ready", "--json"]).await {
        Ok(answer) => answer.printed.lines().find_map(|line| serde_json::from_str::<AgentState>(line).ok()),
        Err(failed @ NotRun::Failed(_)) => {
            checks.push(failed.check(CONTAINER));
            return checks;
        }
        Err(_) => None,
    };
    let Some(state) = state else {
        let text = format!("container {SIDECAR} does not say which tickets there are");
        let fix = "Use an image of the sidecar that is as new as this program, and create the Pod again.";
        checks.push(Check::found(TICKETS, not_checked(&text, fix)));
        return checks;
    };
    checks.extend(state.checks(pod, Timestamp::now()));
    let Some(kept) = state.tickets.filter(|_| !is_sidecar(container)) else { return checks };
    match not_running(pod, container) {
        Some(found) => checks.push(found),
        None => checks.extend(client(executor, name, &kept, service).await),
    }
    checks
}

impl AgentState {
    fn checks(&self, pod: &ClusterPod, now: Timestamp) -> Vec<Check> {
        let has_token = |verb| pod.admission.tokens().any(|(of, _)| of == verb);
        let mut checks = if has_token(Verb::Use) { self.of_tickets(pod, now) } else { Vec::new() };
        if has_token(Verb::Export) {
            checks.extend(self.of_keytab(pod));
        }
        checks
    }

    /// As `klist -k` shows it, and why the last request failed.
    fn of_keytab(&self, pod: &ClusterPod) -> Vec<Check> {
        let found = |why: &str, text: String| {
            rules::found(AgentFailure::of(why).rule, text, &Names { verb: Some(Verb::Export), ..pod.names() })
        };
        let failure = self.last_keytab_failure.as_deref().map(remark);
        let Some(KeptKeytab { principal, names, kvno }) = &self.keytab else {
            let why = failure.as_deref().unwrap_or("the broker has not answered yet");
            return vec![Check::found(KEYTAB, found(why, format!("there is none: {why}")))];
        };
        let names = names.iter().chain([principal]).map(|name| remark(name)).collect::<Vec<_>>().join(", ");
        let kept = Check::pass(KEYTAB, format!("version {kvno}: {names}"));
        let failed = failure.map(|why| {
            let text = format!("the last request failed, and the keytab stays: {why}");
            Check::found(KEYTAB, found(&why, text).with_severity(Severity::Warning))
        });
        std::iter::once(kept).chain(failed).collect()
    }

    fn of_tickets(&self, pod: &ClusterPod, now: Timestamp) -> Vec<Check> {
        let names = pod.names();
        let failure = self.last_failure.as_deref().map(remark);
        let Some(kept) = &self.tickets else {
            let why = failure.as_deref().unwrap_or("the broker has not answered yet");
            let found = rules::found(AgentFailure::of(why).rule, format!("there are none: {why}"), &names);
            return vec![Check::found(TICKETS, found)];
        };
        let KeptTickets { principal, services, expires } = kept;
        let what = format!("{} for {}", remark(principal), remark(&services.join(", ")));
        let mut checks = vec![if *expires <= now {
            let text = format!("those of {what} ended at {expires}");
            Check::found(TICKETS, rules::found(&rules::TICKET_EXPIRED, text, &Names { said: FOLDER, ..names }))
        } else {
            Check::pass(TICKETS, format!("{what}, until {expires}"))
        }];
        checks.extend(failure.map(|why| {
            let text = format!("the last request failed, and the tickets stay until they end: {why}");
            let found = rules::found(AgentFailure::of(&why).rule, text, &names);
            Check::found(TICKETS, found.with_severity(Severity::Warning))
        }));
        checks
    }
}

/// Runs the programs in the image of a container: they read the tickets, and find one for a service. Without these programs nothing is said.
async fn client(executor: &Executor, name: &str, kept: &KeptTickets, service: Option<&str>) -> Vec<Check> {
    let mut checks = Vec::new();
    let listed = kept.services.first().map(String::as_str).filter(|service| *service != "*");
    let of_service = service.or(listed).map(|service| ["kvno", service]);
    for command in [LIST].into_iter().chain(of_service) {
        let shown = command.join(" ");
        let check = match executor.run(&command).await {
            // Some container runtimes answer as a shell does.
            Err(NotRun::Absent(_)) | Ok(CommandOutput { exit: 126 | 127, .. }) => break,
            Ok(answer) if answer.exit != 0 => {
                let rule = rules::recognize(&answer.printed, Phase::Running).unwrap_or(&rules::NO_TICKET);
                let text = format!("container {name}: {shown} ended with exit code {}", answer.exit);
                let found = rules::found(rule, text, &Names { said: &answer.printed, ..Names::default() });
                let is_other = *rule == rules::NO_TICKET && !answer.printed.contains(FOLDER);
                Check::found(CLIENT, if is_other { found.with_fix(OTHER_CACHE) } else { found })
            }
            Ok(answer) if command == LIST && !answer.printed.contains(&kept.principal) => {
                let text = format!("container {name}: {shown} lists other tickets");
                Check::found(CLIENT, Diagnostic::new(&rules::OTHER_ACCOUNT, text).with_fix(OTHER_CACHE))
            }
            Ok(_) => Check::pass(CLIENT, format!("container {name}: {shown} finds them")),
            Err(not_run) => not_run.check(CLIENT),
        };
        let is_over = check.result.is_err();
        checks.push(check);
        if is_over {
            break;
        }
    }
    checks
}
