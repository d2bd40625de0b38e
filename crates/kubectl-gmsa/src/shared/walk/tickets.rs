//! The tickets of a Linux pod: the last answer of the broker, from the log of the sidecar, and whether the broker is there.
//!
//! Invariants: of the log only the last lines are read; a log that could not be read is neither a pass nor a cause.

use futures::future::join_all;
use gmsa_cluster::resolver::live::collection;
use gmsa_core::{
    admission::{
        Denial,
        advice::advise_tickets,
        pod::{Pod, tickets::SIDECAR},
    },
    credspec::{SpecName, Verb, is_dns_label, is_dns_subdomain},
    diagnostic::{Check, Diagnostic, Severity},
    quote::remark,
};
use k8s_openapi::api::{
    admissionregistration::v1::ServiceReference,
    core::v1::{ContainerState, ContainerStatus},
};
use serde_json::Value;

use super::{
    IN_THE_POD,
    containers::{INIT, is_running},
    events::Events,
    nodes::Nodes,
    workload::WorkloadTree,
    worst,
};
use crate::shared::{
    credspecs::without_tickets,
    kinds::Kind,
    pods::ClusterPod,
    rules::{self, AgentFailure, FixTarget, Names, Phase},
    unread::{Read, Remedy, because, is_cause},
    webhook::{argument, broker, broker_unready, is_without_tickets, replica, without_namespace},
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
    let pods = world.pods(None).await.unwrap_or_default();
    let mut pods: Vec<ClusterPod> = pods.iter().filter_map(|json| ClusterPod::read(json).ok()).collect();
    pods.retain(|pod| pod.admission.audiences().next().is_some());
    pods.sort_by_key(|pod| pod.phase() == "Running");
    let places = pods.iter().map(ClusterPod::place);
    let places = places.filter(|(namespace, name)| is_dns_label(namespace) && is_dns_subdomain(name)).take(LOGS);
    join_all(places.map(async |(namespace, name)| world.text(&log(namespace, name)).await)).await;
}

/// Why a credential spec gives a pod no tickets, or no keytab.
pub enum SpecFault {
    /// What a webhook would say of a slot that names it.
    Denial(Denial),
    /// Its owner has listed no services, or no names.
    NotListed(Diagnostic),
}

/// The fault of a credential spec that a pod wants tickets or a keytab of. Only the broker reads it, so no webhook decides by it.
pub async fn spec_fault(world: &World, verb: Verb, spec: SpecName) -> Read<Option<SpecFault>> {
    let object: Option<Value> = world.find(&format!("{}/{spec}", collection())).await?;
    Ok(match object {
        None => Some(SpecFault::Denial(Denial::SpecMissing(spec))),
        Some(object) if !object.get("credspec").is_some_and(Value::is_object) => {
            Some(SpecFault::Denial(Denial::SpecUnusable(spec)))
        }
        Some(object) => without_tickets(&spec, verb, &object).map(SpecFault::NotListed),
    })
}

/// The product that a pod asks for by its annotation without having the sidecar: no webhook has injected it.
pub fn missing_product(pod: &Pod) -> Option<Verb> {
    pod.asks().map(|(verb, _)| verb).find(|verb| pod.tokens().all(|(of, _)| of != *verb))
}

/// The finding that a pod lacks this, where the webhook is installed without tickets or is not.
pub fn of_missing(verb: Verb, is_off: bool) -> Diagnostic {
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
    let verb = missing_product(&pod.admission)?;
    // `why` has a line for a failed read (`unreviewed`).
    let is_off = replica(world).await.ok().flatten().is_some_and(|pod| is_without_tickets(&pod));
    let found = of_missing(verb, is_off);
    let fix = pod.created_again().filter(|_| !is_off);
    Some(found.fixed(fix).with_severity(Severity::Error))
}

/// The answer in a line of the agent's log, of either form, about what this verb gives: the services of the tickets or the keytab, or why there
/// are none.
fn answer(verb: Verb, line: &str) -> Option<Result<String, String>> {
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

/// A pod that may have tickets, and whether it waits for them.
struct TicketPod<'p> {
    world: &'p World,
    pod: &'p ClusterPod,
    target: FixTarget<'p>,
    waits: bool,
}

/// Replaces the step of a waiting pod by the reason in the log of its sidecar. In a running pod, adds the line about its tickets.
pub async fn add(world: &World, pod: &ClusterPod, target: FixTarget<'_>, steps: &mut Vec<Check>) {
    let status = pod.object.status.as_ref().and_then(|status| status.init_container_statuses.as_ref());
    let sidecar = status.into_iter().flatten().find(|container| container.name == SIDECAR);
    let (namespace, name) = pod.place();
    if !is_dns_label(namespace) || !is_dns_subdomain(name) {
        return;
    }
    let is_unstarted = sidecar.is_some_and(|sidecar| sidecar.started == Some(false));
    let waits = is_unstarted && steps.last().is_some_and(|last| last.about == INIT && last.result.is_err());
    let tickets = TicketPod { world, pod, target, waits };
    if let Some(ended) = sidecar.filter(|sidecar| !is_running(sidecar)) {
        return tickets.add_end(ended, steps).await;
    }
    let runs = pod.phase() == "Running" && !steps.iter().any(is_cause);
    if pod.admission.audiences().next().is_none() || !(runs || waits) {
        return;
    }
    let log = if sidecar.is_some() { world.text(&log(namespace, name)).await } else { Ok(String::new()) };
    // Missing parts count before present ones.
    let lines = || log.iter().flat_map(|log| log.lines().rev());
    let verbs = Verb::ALL.into_iter().filter(|verb| pod.admission.tokens().any(|(of, _)| of == *verb));
    let last_of = |verb| Some((verb, lines().find_map(|line| answer(verb, line))?));
    let answers: Vec<_> = verbs.filter_map(last_of).collect();
    let last = answers.iter().find(|(_, answer)| answer.is_err()).or(answers.first());
    if let Err(unread) = &log {
        steps.insert(steps.len() - usize::from(waits), unread.check("log"));
    }
    let found = match last {
        Some((verb, Ok(services))) if runs => {
            Check::pass(IN_THE_POD, format!("the sidecar has {} for {services}", verb.product().of_a_pod))
        }
        Some((verb, Err(reason))) => tickets.failed(*verb, reason).await,
        _ if waits => match tickets.away().await {
            Some(why) => tickets.finding(last.map_or(Verb::Use, |(verb, _)| *verb), why),
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
    steps.extend(advice.map(|found| Check::breach(IN_THE_POD, found.rule, found.message)));
}

impl<'p> TicketPod<'p> {
    /// Adds the last line of its log to the finding about a sidecar that has ended, with the rule for that line.
    async fn add_end(&self, sidecar: &ContainerStatus, steps: &mut [Check]) {
        let has_ended = |state: &Option<ContainerState>| state.as_ref().is_some_and(|state| state.terminated.is_some());
        let Some(Check { about: INIT, result: Err(found) }) = steps.last_mut() else { return };
        let previous = match (has_ended(&sidecar.state), has_ended(&sidecar.last_state)) {
            (true, _) => "",
            (false, true) => "&previous=true",
            (false, false) => return,
        };
        let (namespace, name) = self.pod.place();
        // Without the log, the exit code is what is known.
        let Ok(log) = self.world.text(&format!("{}{previous}", log(namespace, name))).await else { return };
        let Some(line) = log.lines().map(str::trim).rfind(|line| !line.is_empty()) else { return };
        let message = format!("{}; its log ends with: {}", found.message, remark(line));
        *found = match rules::recognize(line, Phase::Running) {
            Some(rule) => rules::found(rule, message, &Names { said: line, ..self.names(Verb::Use) }),
            None => Diagnostic { message, ..found.clone() },
        };
    }

    /// A pod that waits has no tickets; one that runs keeps those that it has.
    fn finding(&self, verb: Verb, found: Diagnostic) -> Check {
        let kept = match verb {
            Verb::Use => "tickets, and keeps the last ones until they end",
            Verb::Export => "keytab, and keeps the last one",
        };
        let (about, state, severity) = if self.waits {
            (INIT, format!("the sidecar waits for {}", verb.product().of_a_pod), Severity::Error)
        } else {
            (IN_THE_POD, format!("the sidecar gets no new {kept}"), Severity::Warning)
        };
        let message = format!("{state}: {}", found.message);
        Check::found(about, Diagnostic { message, severity, ..found })
    }

    /// The names in a remedy. The credential spec is the one that the agent asks for: a token written by hand may be for another.
    fn names(&self, verb: Verb) -> Names<'p> {
        let known = self.pod.names();
        let flag = if verb == Verb::Use { "credential-spec" } else { "keytab" };
        let spec = argument(&self.pod.object, flag).filter(|name| is_dns_subdomain(name)).or(known.spec);
        Names { spec, verb: Some(verb), target: Some(self.target), ..known }
    }

    /// The finding for a request that failed.
    async fn failed(&self, verb: Verb, reason: &str) -> Check {
        let failure = AgentFailure::of(reason);
        if failure.status.is_none()
            && let Some(why) = self.away().await
        {
            return self.finding(verb, why);
        }
        let found = rules::found(failure.rule, reason, &self.names(verb));
        if !self.waits && failure.removes_tickets() {
            let message = format!("the sidecar has removed {}: {reason}", verb.product().of_this_pod);
            return Check::found(IN_THE_POD, Diagnostic { message, severity: Severity::Error, ..found });
        }
        self.finding(verb, found)
    }

    /// Why the broker does not answer, if its namespace is gone or no pod of it is ready: the first cause of its Deployment.
    async fn away(&self) -> Option<Diagnostic> {
        let world = self.world;
        let service = broker(&self.pod.object, "broker")?;
        let ServiceReference { name, namespace, .. } = &service;
        if let Ok(found) = world.namespace(namespace).await
            && let Some((text, wait)) = without_namespace("broker", &service, found.as_ref())
        {
            let fix = format!("{wait}Install it again: `helm install {name} CHART -n {namespace} --create-namespace`.");
            return Some(Diagnostic::new(&rules::BROKER_UNREACHABLE, text).with_fix(fix));
        }
        // After a failed read, what the agent logged is the cause.
        let text = broker_unready(world, &service).await.ok()??;
        // The chart gives the Deployment the name of the Service.
        let workload = Box::pin(WorkloadTree::find(world, namespace, Kind::Deployment, name));
        let (workload, events) = tokio::join!(workload, Events::read(world, Some(namespace)));
        if let Ok(Some(workload)) = workload {
            let nodes = Nodes::read(world, &workload.pods().collect::<Vec<_>>(), false).await;
            if let Some(found) = worst::absence(&workload, &nodes, &events) {
                let message = format!("{text}: {}: {}", workload.title(), found.message);
                return Some(Diagnostic { message, ..found });
            }
        }
        let fix = format!("See why its Pods are not ready: `kubectl get pods -n {namespace}`.");
        Some(Diagnostic::new(&rules::BROKER_UNREACHABLE, text).with_fix(fix))
    }
}
