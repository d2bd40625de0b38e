//! The tickets of a Linux pod: the last answer of the broker, from the log of the sidecar, and whether the broker is there.
//!
//! Invariants: of the log only the last lines are read; a log that could not be read is neither a pass nor a cause.

use gmsa_core::{
    admission::pod::{Pod, tickets::SIDECAR},
    credspec::{is_dns_label, is_dns_subdomain},
    diagnostic::{Check, Diagnostic, Severity},
    quote::remark,
};
use k8s_openapi::api::{admissionregistration::v1::ServiceReference, core::v1::Namespace};
use serde_json::Value;

use super::{
    IN_THE_POD,
    containers::{INIT, is_running},
    pod::is_cause,
};
use crate::shared::{
    pods::ClusterPod,
    rules::{self, FixTarget, Names},
    snapshot::Snapshot,
    unread::{Read, Remedy, because},
    webhook::{broker, endpoints, is_ready},
};

/// The lines of the log that are read: the agent writes at most two for a request, each of at most 4 KiB.
const LOG: &str = "tailLines=8&limitBytes=32768";

/// Whether a pod asks for a sidecar that no webhook has injected.
pub fn lacks_sidecar(pod: &Pod) -> bool {
    pod.tickets().is_some() && pod.audiences().next().is_none()
}

/// The last answer, as the agent logs it: the services of the tickets, or why there are none.
type LoggedAnswer = Result<String, String>;

/// Reads a line of the agent, in either form of its log.
fn answer(line: &str) -> Option<LoggedAnswer> {
    let json: Value = serde_json::from_str(line).unwrap_or_default();
    let field = |name: &str| json.get(name).and_then(Value::as_str);
    let line = field("message").unwrap_or(line);
    if let Some((_, reason)) = line.split_once("no tickets: ") {
        return Some(Err(remark(reason.rsplit_once(" is_removed=").map_or(reason, |(reason, _)| reason))));
    }
    let (_, fields) = line.split_once("tickets written")?;
    let services = fields.split_once("services=\"").and_then(|(_, rest)| rest.split('"').next());
    Some(Ok(remark(field("services").or(services).unwrap_or("some services"))))
}

/// Says by the log what a sidecar waits for while the other containers wait for it. In a pod that runs, adds the line about its tickets.
pub async fn add(snapshot: &Snapshot, pod: &ClusterPod, target: FixTarget<'_>, steps: &mut Vec<Check>) {
    let status = pod.object.status.as_ref().and_then(|status| status.init_container_statuses.as_ref());
    let sidecar = status.into_iter().flatten().find(|container| container.name == SIDECAR && is_running(container));
    let is_unstarted = sidecar.is_some_and(|sidecar| sidecar.started == Some(false));
    let waits = is_unstarted && steps.last().is_some_and(|last| last.about == INIT && last.result.is_err());
    let runs = pod.phase() == "Running" && !steps.iter().any(is_cause);
    let (namespace, name) = pod.place();
    let are_names = is_dns_label(namespace) && is_dns_subdomain(name);
    if pod.admission.audiences().next().is_none() || !are_names || !(runs || waits) {
        return;
    }
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/log?container={SIDECAR}&{LOG}");
    let log = if sidecar.is_some() { snapshot.text(&path).await } else { Ok(String::new()) };
    let last = log.as_ref().ok().and_then(|log| log.lines().rev().find_map(answer));
    if let Err(unread) = &log {
        steps.insert(steps.len() - usize::from(waits), unread.check("log"));
    }
    let found = match &last {
        Some(Ok(services)) if runs => Check::pass(IN_THE_POD, format!("the sidecar has tickets for {services}")),
        Some(Err(reason)) => failed(snapshot, pod, target, waits, reason).await,
        _ if waits => match away(snapshot, pod).await {
            Some((why, fix)) => finding(waits, Diagnostic::new(&rules::BROKER_UNREACHABLE, why).with_fix(fix)),
            None => return,
        },
        _ if log.is_err() => return,
        _ => {
            let cause = format!("no log of a container {SIDECAR} says whether the pod has tickets");
            because(IN_THE_POD, &cause, Remedy::new("Ask the pod itself: `kubectl gmsa verify`."))
        }
    };
    if waits {
        steps.pop();
    }
    steps.push(found);
}

/// A pod that waits has no tickets; one that runs keeps those that it has.
fn finding(waits: bool, found: Diagnostic) -> Check {
    let (about, state, severity) = if waits {
        (INIT, "the sidecar waits for tickets", Severity::Error)
    } else {
        (IN_THE_POD, "the sidecar gets no new tickets, and keeps the last ones until they end", Severity::Warning)
    };
    let message = format!("{state}: {}", found.message);
    Check::found(about, Diagnostic { message, severity, ..found })
}

/// The finding for a request that failed.
async fn failed(snapshot: &Snapshot, pod: &ClusterPod, target: FixTarget<'_>, waits: bool, reason: &str) -> Check {
    let refused = reason.strip_prefix("the broker refused: ");
    if refused.is_none()
        && let Some((why, fix)) = away(snapshot, pod).await
    {
        return finding(waits, Diagnostic::new(&rules::BROKER_UNREACHABLE, why).with_fix(fix));
    }
    let (rule, (namespace, name)) = (rules::of_agent(reason), pod.place());
    let names = Names {
        spec: pod.admission.audiences().next(),
        namespace: Some(namespace),
        pod_name: Some(name),
        service_account: Some(pod.admission.service_account()),
        target: Some(target),
        ..Names::default()
    };
    let found = rules::found(rule, reason, &names);
    // The agent removes the tickets then.
    let is_final =
        |refused: &str| refused.starts_with("403") || (refused.starts_with("404") && *rule == rules::SPEC_MISSING);
    if !waits && refused.is_some_and(is_final) {
        let message = format!("the sidecar has removed the tickets: {reason}");
        return Check::found(IN_THE_POD, Diagnostic { message, severity: Severity::Error, ..found });
    }
    finding(waits, found)
}

/// Why the broker does not answer, and the remedy, if its namespace is gone or no pod of it is ready.
async fn away(snapshot: &Snapshot, pod: &ClusterPod) -> Option<(String, String)> {
    let service = broker(&pod.object, "broker")?;
    let ServiceReference { name, namespace, .. } = &service;
    let of: Read<Option<Namespace>> = snapshot.find(&format!("/api/v1/namespaces/{namespace}")).await;
    if matches!(of, Ok(None)) {
        let fix = format!("Install it again: `helm install {name} CHART -n {namespace} --create-namespace`.");
        return Some((format!("namespace {namespace}, in which the broker was, does not exist"), fix));
    }
    let is_ready = endpoints(snapshot, &service).await.ok()?.iter().any(is_ready);
    let fix = format!("See why its Pods are not ready: `kubectl get pods -n {namespace}`.");
    (!is_ready).then(|| (format!("the Service {namespace}/{name} of the broker has no ready endpoint"), fix))
}
