//! The state of a pod on its kubelet: sandbox, init containers, containers.
//!
//! Invariant: a state that GMSA does not explain is shown as the kubelet reports it, with the command that shows the rest.

use k8s_openapi::{
    api::core::v1::{ContainerState, ContainerStateWaiting, ContainerStatus},
    jiff::SignedDuration,
};

use super::{
    events::{Event, Events},
    nodes::Nodes,
};
use crate::shared::{
    pods::ClusterPod,
    rules::{self, FixTarget, Names, Phase},
    unread::is_cause,
};
use gmsa_core::{
    admission::pod::tickets::SIDECAR,
    diagnostic::{Check, Diagnostic, Rule},
};

pub const SANDBOX: &str = "sandbox";
pub const INIT: &str = "init containers";
pub const CONTAINERS: &str = "containers";

/// The kubelet's reasons for a container that waits for the sandbox or the init containers.
const NOT_TRIED: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// The age up to which a pod without progress is normal.
const AT_FIRST: SignedDuration = SignedDuration::from_secs(15);

/// A pod, the nodes and its events: what its steps see. Scheduling is in `scheduling.rs`.
pub struct Seen<'p> {
    pub pod: &'p ClusterPod,
    pub target: FixTarget<'p>,
    pub nodes: &'p Nodes,
    pub events: &'p Events,
}

impl<'p> Seen<'p> {
    /// The steps, up to the first cause.
    pub fn steps(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        for step in [Self::scheduled, Self::sandbox, Self::init_containers, Self::containers_run] {
            let check = step(self);
            // A pod that has not started has no later steps.
            let is_last =
                is_cause(&check) || check.result.as_ref().is_err_and(|found| *found.rule == rules::POD_STARTING);
            checks.push(check);
            if is_last {
                break;
            }
        }
        checks
    }

    pub fn newest(&self, is_meant: impl Fn(&Event) -> bool) -> Option<&'p Event> {
        self.events.newest(self.pod.object.metadata.uid.as_deref()?, is_meant)
    }

    fn init(&self) -> &'p [ContainerStatus] {
        self.pod.object.status.as_ref().and_then(|status| status.init_container_statuses.as_deref()).unwrap_or_default()
    }

    fn containers(&self) -> &'p [ContainerStatus] {
        self.pod.object.status.as_ref().and_then(|status| status.container_statuses.as_deref()).unwrap_or_default()
    }

    /// The phase, and the node if there is one.
    fn place(&self) -> String {
        let node = self.pod.node_name().map(|node| format!(" on {node}")).unwrap_or_default();
        format!("{}{node}", self.pod.phase())
    }

    fn has_sandbox(&self) -> bool {
        let was_tried = |container: &ContainerStatus| {
            trouble(container).is_some() || container.state.is_some() && waiting(container).is_none()
        };
        self.pod.condition("PodReadyToStartContainers").is_some_and(|condition| condition.status == "True")
            || self.init().iter().chain(self.containers()).any(was_tried)
            || matches!(self.pod.phase(), "Running" | "Succeeded" | "Failed")
    }

    /// The step: the sandbox, which has the network of the pod. A pod that is being deleted has no later step; its line is of its containers.
    fn sandbox(&self) -> Check {
        let place = self.place();
        if let Some(ending) = self.ending() {
            let text = format!("{place}: the pod {ending}");
            return Check::found(CONTAINERS, rules::found(&rules::POD_ENDING, text, &self.names()));
        }
        if self.has_sandbox() {
            return Check::pass(SANDBOX, "was created");
        }
        let Some(event) = self.newest(Event::is_of_sandbox) else {
            // Without container statuses the kubelet has not seen the pod yet.
            return Check::found(SANDBOX, self.not_started(format!("{place}: its kubelet has created no sandbox yet")));
        };
        let said = format!("{}: {}", event.reason, event.message);
        Check::found(SANDBOX, self.explained(&rules::NOT_STARTED, format!("{place}: {said}"), &said))
    }

    /// Reduces a finding without a failure to a note while the pod is new.
    pub fn if_late(&self, found: Diagnostic) -> Diagnostic {
        let created = self.pod.object.metadata.creation_timestamp.as_ref();
        if created.and_then(|created| self.events.since(created.0)).is_none_or(|age| age >= AT_FIRST) {
            return found;
        }
        rules::found(&rules::POD_STARTING, found.message, &self.names())
    }

    /// That the pod is being deleted, and what a condition or an event says of it; `None` for others.
    pub fn ending(&self) -> Option<String> {
        self.pod.object.metadata.deletion_timestamp.as_ref()?;
        let by = self.pod.condition("DisruptionTarget").and_then(|condition| condition.message.as_deref());
        let killed = || Some(self.newest(|event| event.reason == "FailedKillPod")?.message.as_str());
        let why = by.or_else(killed).map(|why| format!(": {why}")).unwrap_or_default();
        Some(format!("is being deleted{why}"))
    }

    /// Whether the kubelet is still working without a failure: it creates the sandbox, or pulls an image.
    pub fn waits(&self) -> bool {
        let is_broken = self.init().iter().chain(self.containers()).any(|container| trouble(container).is_some());
        let is_refused = !self.has_sandbox() && self.newest(Event::is_of_sandbox).is_some();
        self.pod.phase() == "Pending" && !is_broken && !is_refused
    }

    /// Whether it is a sidecar: an init container that keeps running.
    fn is_sidecar(&self, container: &ContainerStatus) -> bool {
        let of_spec = self.pod.object.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
        let mut of_name = of_spec.filter(|init| init.name == container.name);
        of_name.any(|init| init.restart_policy.as_deref() == Some("Always"))
    }

    /// The step: the first init container that has not succeeded.
    fn init_containers(&self) -> Check {
        let init = self.init();
        if let Some((container, trouble)) = first_trouble(init) {
            return Check::found(INIT, self.broken("init container", container, &trouble));
        }
        let has_started = |container: &ContainerStatus| self.is_sidecar(container) && container.started != Some(false);
        let state = |container: &ContainerStatus| match waiting(container) {
            Some(_) => Some("waits"),
            None if !is_running(container) || has_started(container) => None,
            None if self.is_sidecar(container) => Some("runs, and has not passed its startup probe yet"),
            None => Some("has not ended yet"),
        };
        if let Some((container, state)) = init.iter().find_map(|container| Some((container, state(container)?))) {
            return Check::found(INIT, self.not_started(format!("init container {:?} {state}", container.name)));
        }
        let are_none = self.pod.object.spec.iter().all(|spec| spec.init_containers.iter().flatten().next().is_none());
        let text = match init {
            [] if are_none => "there are none",
            [] => "the kubelet has reported nothing of them",
            _ if init.iter().any(is_running) => "have ended well, or run as sidecars",
            _ => "have ended well",
        };
        Check::pass(INIT, text)
    }

    /// The step: the containers run, or have succeeded.
    fn containers_run(&self) -> Check {
        let place = self.place();
        let own = self.pod.object.status.as_ref().map(|status| words([&status.reason, &status.message]));
        let own = own.unwrap_or_default();
        let found = match (self.pod.phase(), first_trouble(self.containers())) {
            // An evicted pod has its own reason, otherwise the containers name the cause.
            ("Failed", trouble) if trouble.is_none() || !own.is_empty() => {
                Some(self.explained(&rules::POD_FAILED, format!("{place}: {own}"), &own))
            }
            (_, Some((container, trouble))) => Some(self.broken("container", container, &trouble)),
            ("Pending", None) => Some(self.not_started(format!("{place}: its kubelet has started no container yet"))),
            ("Running", None) => self.not_ready(&place),
            _ => None,
        };
        found.map_or_else(|| Check::pass(CONTAINERS, place), |found| Check::found(CONTAINERS, found))
    }

    /// The finding for a pod in which nothing has failed: to pull an image takes minutes.
    fn not_started(&self, text: String) -> Diagnostic {
        let pulled = self.newest(|event| event.reason == "Pulling").filter(|_| self.has_sandbox());
        let Some((event, age)) = pulled.and_then(|event| Some((event, self.events.since(event.at?)?))) else {
            return self.if_late(rules::found(&rules::NOT_STARTED, text, &self.names()));
        };
        let text = format!("{}: {}, since {} s", self.place(), event.message, age.as_secs());
        let is_of_windows = self.pod.admission.uses_gmsa();
        let fix = if is_of_windows { "Wait: an image of Windows Server Core has some gigabytes." } else { "Wait." };
        Diagnostic::new(&rules::POD_STARTING, text).with_fix(fix)
    }

    /// The finding for a running pod that is not ready, so it gets no traffic of its Services.
    fn not_ready(&self, place: &str) -> Option<Diagnostic> {
        // An init container that still runs is a sidecar.
        let mut all = self.init().iter().chain(self.containers());
        let (what, why) = if let Some(container) = all.find(|container| is_running(container) && !container.ready) {
            let is_probe = |event: &Event| event.reason == "Unhealthy" && event.may_be_of_container(&container.name);
            let why = self.newest(is_probe).map_or(self.events.none(), |event| event.message.as_str());
            (format!("container {:?}", container.name), why.to_owned())
        } else {
            // An ended container is not ready either.
            let all_run = self.containers().iter().all(|container| container.ready);
            let ready = self.pod.condition("Ready").filter(|condition| condition.status != "True" && all_run)?;
            ("the pod".to_owned(), words([&ready.reason, &ready.message]))
        };
        Some(self.explained(&rules::POD_NOT_READY, format!("{place}, and {what} is not ready: {why}"), &why))
    }

    /// The finding for a container that does not start or has ended.
    fn broken(&self, kind: &str, container: &ContainerStatus, trouble: &str) -> Diagnostic {
        // Only these events contain the output of a hook, why an image is not pulled, and that a probe has ended the container.
        let is_meant = |event: &Event| {
            let is_liveness = event.reason == "Unhealthy" && event.message.starts_with("Liveness");
            is_liveness || ["FailedPostStartHook", "Failed"].contains(&&*event.reason)
        };
        let event = self.newest(|event| is_meant(event) && event.may_be_of_container(&container.name));
        let more = event.filter(|event| !trouble.contains(&event.message));
        let more = more.map(|event| format!("; {}", event.message)).unwrap_or_default();
        let said = format!("{trouble}{more}");
        let text = format!("{}, {kind} {:?} {said}", self.place(), container.name);
        let found = self.explained(&rules::NOT_STARTED, text, &said);
        // The manifest of the workload does not have the container that the webhook injects.
        let is_injected = container.name == SIDECAR && self.pod.admission.tickets().is_some();
        let values = [("OOMKilled", "tickets.resources.limits.memory"), ("Image", "tickets.image")];
        match values.into_iter().find(|(word, _)| is_injected && trouble.contains(word)) {
            Some((_, value)) => found.with_fix(format!(
                "The webhook injects this container: set `{value}` in the values of its chart, then delete the Pod."
            )),
            None => found,
        }
    }

    /// A finding of the rule for the message `said`, otherwise of `general`.
    fn explained(&self, general: &'static Rule, text: String, said: &str) -> Diagnostic {
        let rule = rules::recognize(said, Phase::Start).filter(|rule| **rule != rules::NOT_STARTED);
        let contents = self.pod.admission.slots().find_map(|slot| serde_json::from_str(slot.contents?).ok());
        let contents = contents.unwrap_or_default();
        rules::found(rule.unwrap_or(general), text, &Names { said, ..self.names().of_contents(&contents) })
    }

    pub fn names(&self) -> Names<'_> {
        Names { node: self.pod.node_name(), target: Some(self.target), ..self.pod.names() }
    }
}

fn waiting(container: &ContainerStatus) -> Option<&ContainerStateWaiting> {
    container.state.as_ref()?.waiting.as_ref()
}

pub fn is_running(container: &ContainerStatus) -> bool {
    container.state.as_ref().is_some_and(|state| state.running.is_some())
}

/// The first container that does not run, with the cause.
fn first_trouble(all: &[ContainerStatus]) -> Option<(&ContainerStatus, String)> {
    all.iter().find_map(|container| Some((container, trouble(container)?)))
}

/// Why a container does not run. `None` if it runs, has succeeded, or waits for others.
fn trouble(container: &ContainerStatus) -> Option<String> {
    let Some(waiting) = waiting(container) else { return ended(container.state.as_ref(), false) };
    let reason = waiting.reason.as_deref().unwrap_or_default();
    // Its workload expects a container with this reason to keep running.
    let last = ended(container.last_state.as_ref(), reason == "CrashLoopBackOff");
    if last.is_none() && (reason.is_empty() || NOT_TRIED.contains(&reason)) {
        return None;
    }
    let last = last.map(|last| format!(", and {last} before")).unwrap_or_default();
    Some(format!("waits: {}{last}", words([&waiting.reason, &waiting.message])))
}

/// How a container ended, if that was an error.
fn ended(state: Option<&ContainerState>, is_always_error: bool) -> Option<String> {
    let ended = state?.terminated.as_ref().filter(|ended| is_always_error || ended.exit_code != 0)?;
    let why = Some(words([&ended.reason, &ended.message])).filter(|why| !why.is_empty() && ended.exit_code != 0);
    Some(format!("ended with exit code {}{}", ended.exit_code, why.map(|why| format!(", {why}")).unwrap_or_default()))
}

/// A reason and a message, as far as they are set.
fn words(parts: [&Option<String>; 2]) -> String {
    let parts: Vec<&str> =
        parts.into_iter().flatten().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
    parts.join(": ")
}
