//! The tickets of a Linux pod: the last answer of the broker, from the log of the sidecar, and whether the broker is there.
//!
//! Invariants: of the log only the last lines are read; a log that could not be read is neither a pass nor a cause.

use futures::future::join_all;
use gmsa_core::{
    admission::{
        advice::advise_tickets,
        pod::{Pod, tickets::SIDECAR},
    },
    credspec::{Verb, is_dns_label, is_dns_subdomain},
    diagnostic::{Check, Diagnostic, Severity},
    quote::remark,
};
use k8s_openapi::api::{
    admissionregistration::v1::ServiceReference,
    core::v1::{ContainerState, ContainerStatus, Namespace},
};
use serde_json::Value;

use super::{
    IN_THE_POD,
    containers::{INIT, is_running},
    events::Events,
    workload::WorkloadTree,
    worst,
};
use crate::shared::{
    kinds::Kind,
    pods::ClusterPod,
    rules::{self, AgentFailure, FixTarget, Names, Phase},
    unread::{Read, Remedy, because, is_cause},
    webhook::{argument, broker, endpoints, is_ready, lacks_tickets, no_namespace, replica},
    world::World,
};

/// The lines of the log that are read: the agent writes at most two for a request, each of at most 4 KiB.
const LOG: &str = "tailLines=8&limitBytes=32768";

/// The most pods whose logs a bundle keeps.
const LOGS: usize = 100;

/// The path of a sidecar's log.
fn log(namespace: &str, name: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods/{name}/log?container={SIDECAR}&{LOG}")
}

/// Reads the logs of the sidecars, for a bundle: first of pods that wait.
pub async fn read_logs(world: &World) {
    let pods = world.pods(None, true).await.unwrap_or_default();
    let mut pods: Vec<ClusterPod> = pods.iter().filter_map(|json| ClusterPod::read(json).ok()).collect();
    pods.retain(|pod| pod.admission.audiences().next().is_some());
    pods.sort_by_key(|pod| pod.phase() == "Running");
    let places = pods.iter().map(ClusterPod::place);
    let places = places.filter(|(namespace, name)| is_dns_label(namespace) && is_dns_subdomain(name)).take(LOGS);
    join_all(places.map(async |(namespace, name)| world.text(&log(namespace, name)).await)).await;
}

/// What a pod asks for by its annotation and has no sidecar for: no webhook has injected it.
pub fn lacked(pod: &Pod) -> Option<Verb> {
    pod.asks().map(|(verb, _)| verb).find(|verb| pod.tokens().all(|(of, _)| of != *verb))
}

/// The finding that a pod lacks this, where the webhook is installed without tickets or is not.
pub fn of_lacked(verb: Verb, is_off: bool) -> Diagnostic {
    let what = verb.product().of_a_pod;
    if is_off {
        let text = format!("the pod asks for {what}, and the webhook is installed without tickets");
        return Diagnostic::new(&rules::TICKETS_NOT_ENABLED, text);
    }
    let why = "it is older than its annotation, or than the webhook's tickets";
    Diagnostic::new(&rules::TICKETS_NOT_INJECTED, format!("the pod asks for {what} and has no sidecar for that: {why}"))
}

/// The finding that a pod in the cluster lacks what it asks for.
pub async fn not_injected(world: &World, pod: &ClusterPod) -> Option<Diagnostic> {
    let verb = lacked(&pod.admission)?;
    // `why` has a line for a failed read (`unreviewed`).
    let is_off = replica(world).await.ok().flatten().is_some_and(|pod| lacks_tickets(&pod));
    let found = of_lacked(verb, is_off);
    let fix = pod.created_again().filter(|_| !is_off);
    Some(found.fixed(fix).with_severity(Severity::Error))
}

/// The last answer, as the agent logs it: the services of the tickets or the keytab, or why there are none.
type LoggedAnswer = Result<String, String>;

/// Reads a line of the agent about what this verb gives, in either form of its log.
fn answer(verb: Verb, line: &str) -> Option<LoggedAnswer> {
    let json: Value = serde_json::from_str(line).unwrap_or_default();
    let field = |name: &str| json.get(name).and_then(Value::as_str);
    let line = field("message").unwrap_or(line);
    if let Some((_, reason)) = line.split_once(&*format!("no {}: ", verb.product().name)) {
        return Some(Err(remark(reason.rsplit_once(" is_removed=").map_or(reason, |(reason, _)| reason))));
    }
    let (_, fields) = line.split_once(&*format!("{} written", verb.product().name))?;
    let services = fields.split_once("services=\"").and_then(|(_, rest)| rest.split('"').next());
    Some(Ok(remark(field("services").or(services).unwrap_or("some services"))))
}

/// Replaces the step of a waiting pod by the reason in the log of its sidecar. In a running pod, adds the line about its tickets.
pub async fn add(world: &World, pod: &ClusterPod, target: FixTarget<'_>, steps: &mut Vec<Check>) {
    let status = pod.object.status.as_ref().and_then(|status| status.init_container_statuses.as_ref());
    let sidecar = status.into_iter().flatten().find(|container| container.name == SIDECAR);
    let (namespace, name) = pod.place();
    if !is_dns_label(namespace) || !is_dns_subdomain(name) {
        return;
    }
    if let Some(ended) = sidecar.filter(|sidecar| !is_running(sidecar)) {
        return add_end(world, pod, target, ended, steps).await;
    }
    let is_unstarted = sidecar.is_some_and(|sidecar| sidecar.started == Some(false));
    let waits = is_unstarted && steps.last().is_some_and(|last| last.about == INIT && last.result.is_err());
    let runs = pod.phase() == "Running" && !steps.iter().any(is_cause);
    if pod.admission.audiences().next().is_none() || !(runs || waits) {
        return;
    }
    let log = if sidecar.is_some() { world.text(&log(namespace, name)).await } else { Ok(String::new()) };
    // What is missing counts, before what is there.
    let last_of = |verb, log: &String| Some((verb, log.lines().rev().find_map(|line| answer(verb, line))?));
    let mut answers: Vec<(Verb, LoggedAnswer)> = Vec::new();
    for verb in Verb::ALL.into_iter().filter(|verb| pod.admission.tokens().any(|(of, _)| of == *verb)) {
        answers.extend(log.as_ref().ok().and_then(|log| last_of(verb, log)));
    }
    let last = answers.iter().find(|(_, answer)| answer.is_err()).or(answers.first());
    let verb = last.map_or(Verb::Use, |(verb, _)| *verb);
    if let Err(unread) = &log {
        steps.insert(steps.len() - usize::from(waits), unread.check("log"));
    }
    let found = match last.map(|(_, answer)| answer) {
        Some(Ok(services)) if runs => {
            Check::pass(IN_THE_POD, format!("the sidecar has {} for {services}", verb.product().of_a_pod))
        }
        Some(Err(reason)) => failed(world, pod, target, (verb, waits), reason).await,
        _ if waits => match away(world, pod).await {
            Some(why) => finding((verb, waits), why),
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
    let advice = advise_tickets(&pod.admission, false).into_iter().filter(|_| runs);
    steps.extend(advice.map(|advice| Check::breach(IN_THE_POD, advice.rule, advice.text)));
}

/// Adds the last line of its log to the finding about a sidecar that has ended, with the rule for that line.
async fn add_end(
    world: &World,
    pod: &ClusterPod,
    target: FixTarget<'_>,
    sidecar: &ContainerStatus,
    steps: &mut [Check],
) {
    let has_ended = |state: &Option<ContainerState>| state.as_ref().is_some_and(|state| state.terminated.is_some());
    let Some(Check { about: INIT, result: Err(found) }) = steps.last_mut() else { return };
    let previous = match (has_ended(&sidecar.state), has_ended(&sidecar.last_state)) {
        (true, _) => "",
        (false, true) => "&previous=true",
        (false, false) => return,
    };
    let (namespace, name) = pod.place();
    // Without the log, the exit code is what is known.
    let Ok(log) = world.text(&format!("{}{previous}", log(namespace, name))).await else { return };
    let Some(line) = log.lines().map(str::trim).rfind(|line| !line.is_empty()) else { return };
    let message = format!("{}; its log ends with: {}", found.message, remark(line));
    *found = match rules::recognize(line, Phase::Running) {
        Some(rule) => rules::found(rule, message, &Names { said: line, ..names(pod, target, Verb::Use) }),
        None => Diagnostic { message, ..found.clone() },
    };
}

/// A pod that waits has no tickets; one that runs keeps those that it has.
fn finding((verb, waits): (Verb, bool), found: Diagnostic) -> Check {
    let what = verb.product().of_a_pod;
    let (about, state, severity) = match (waits, verb) {
        (true, _) => (INIT, format!("the sidecar waits for {what}"), Severity::Error),
        (false, Verb::Use) => {
            let state = "the sidecar gets no new tickets, and keeps the last ones until they end";
            (IN_THE_POD, state.to_owned(), Severity::Warning)
        }
        (false, Verb::Export) => {
            let state = "the sidecar gets no new keytab, and keeps the last one";
            (IN_THE_POD, state.to_owned(), Severity::Warning)
        }
    };
    let message = format!("{state}: {}", found.message);
    Check::found(about, Diagnostic { message, severity, ..found })
}

/// The names in a remedy. The credential spec is the one that the agent asks for: a token written by hand may be for another.
fn names<'p>(pod: &'p ClusterPod, target: FixTarget<'p>, verb: Verb) -> Names<'p> {
    let known = pod.ticket_names();
    let flag = if verb == Verb::Use { "credential-spec" } else { "keytab" };
    let spec = argument(&pod.object, flag).filter(|name| is_dns_subdomain(name)).or(known.spec);
    Names { spec, verb: Some(verb), target: Some(target), ..known }
}

/// The finding for a request that failed.
async fn failed(
    world: &World,
    pod: &ClusterPod,
    target: FixTarget<'_>,
    (verb, waits): (Verb, bool),
    reason: &str,
) -> Check {
    let failure = AgentFailure::of(reason);
    if failure.status.is_none()
        && let Some(why) = away(world, pod).await
    {
        return finding((verb, waits), why);
    }
    let found = rules::found(failure.rule, reason, &names(pod, target, verb));
    if !waits && failure.removes_tickets() {
        let message = format!("the sidecar has removed {}: {reason}", verb.product().of_this_pod);
        return Check::found(IN_THE_POD, Diagnostic { message, severity: Severity::Error, ..found });
    }
    finding((verb, waits), found)
}

/// Why the broker does not answer, if its namespace is gone or no pod of it is ready: the first cause of its Deployment.
async fn away(world: &World, pod: &ClusterPod) -> Option<Diagnostic> {
    let service = broker(&pod.object, "broker")?;
    let ServiceReference { name, namespace, .. } = &service;
    let read: Read<Option<Namespace>> = world.find(&format!("/api/v1/namespaces/{namespace}")).await;
    if let Ok(found) = read
        && let Some(state) = no_namespace(found.as_ref())
    {
        let wait = if found.is_some() { "Wait until it is gone. " } else { "" };
        let fix = format!("{wait}Install it again: `helm install {name} CHART -n {namespace} --create-namespace`.");
        let text = format!("namespace {namespace}, in which the broker was, {state}");
        return Some(Diagnostic::new(&rules::BROKER_UNREACHABLE, text).with_fix(fix));
    }
    // After a failed read, what the agent logged is the cause.
    if endpoints(world, &service).await.ok()?.iter().any(is_ready) {
        return None;
    }
    let text = format!("the Service {namespace}/{name} of the broker has no ready endpoint");
    // The chart gives the Deployment the name of the Service.
    let workload = Box::pin(WorkloadTree::find(world, namespace, Kind::Deployment, name));
    let (workload, events) = tokio::join!(workload, Events::read(world, Some(namespace)));
    if let Ok(Some(workload)) = workload {
        let nodes = super::nodes(world, &workload.pods().collect::<Vec<_>>(), false).await;
        if let Some(found) = worst::absence(&workload, &nodes, &events) {
            let message = format!("{text}: {}: {}", workload.title(), found.message);
            return Some(Diagnostic { message, ..found });
        }
    }
    let fix = format!("See why its Pods are not ready: `kubectl get pods -n {namespace}`.");
    Some(Diagnostic::new(&rules::BROKER_UNREACHABLE, text).with_fix(fix))
}
