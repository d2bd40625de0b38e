//! The state of a pod on its kubelet: sandbox, init containers, containers.
//!
//! Invariant: a state that GMSA does not explain is shown as the kubelet reports it, with the command that shows the rest.

use k8s_openapi::{
    api::core::v1::{ContainerState, ContainerStateWaiting, ContainerStatus},
    jiff::SignedDuration,
};

use super::events::{Event, Events};
use crate::shared::{
    output::first_five,
    pods::ClusterPod,
    rules::{self, FixTarget, Names, Phase},
};
use gmsa_core::{
    admission::pod::tickets::SIDECAR,
    credspec::is_dns_label,
    diagnostic::{Check, Diagnostic, Rule, Severity},
};

pub const SANDBOX: &str = "sandbox";
pub const INIT: &str = "init containers";
pub const CONTAINERS: &str = "containers";

/// The kubelet's reasons for a container that waits for the sandbox or the init containers.
const NOT_TRIED: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// The age up to which a pod without progress is normal.
const AT_FIRST: SignedDuration = SignedDuration::from_secs(15);

/// The normal time to pull a Windows image.
const PULL_TIME: SignedDuration = SignedDuration::from_mins(30);

/// The number of restarts that counts as often, and how long the last restart matters.
const OFTEN: i32 = 3;
const RECENT: SignedDuration = SignedDuration::from_hours(24);

/// A pod and its events.
pub struct Seen<'p> {
    pub pod: &'p ClusterPod,
    pub target: FixTarget<'p>,
    pub events: &'p Events,
}

impl<'p> Seen<'p> {
    fn newest(&self, is_meant: impl Fn(&Event) -> bool) -> Option<&'p Event> {
        self.events.newest(self.pod.object.metadata.uid.as_deref()?, is_meant)
    }

    fn init(&self) -> &'p [ContainerStatus] {
        self.pod.object.status.as_ref().and_then(|status| status.init_container_statuses.as_deref()).unwrap_or_default()
    }

    fn containers(&self) -> &'p [ContainerStatus] {
        self.pod.object.status.as_ref().and_then(|status| status.container_statuses.as_deref()).unwrap_or_default()
    }

    fn age(&self) -> Option<SignedDuration> {
        self.events.since(self.pod.object.metadata.creation_timestamp.as_ref()?.0)
    }

    /// Whether the kubelet reports a sandbox.
    fn may_start_containers(&self) -> bool {
        self.pod.condition("PodReadyToStartContainers").is_some_and(|condition| condition.status == "True")
    }

    /// The phase, and the node if there is one.
    fn place(&self) -> String {
        let node = self.pod.node_name().map(|node| format!(" on {node}")).unwrap_or_default();
        format!("{}{node}", self.pod.phase())
    }

    /// Whether a container was tried, so there is a sandbox.
    fn has_sandbox(&self) -> bool {
        self.may_start_containers()
            || self.init().iter().chain(self.containers()).any(was_tried)
            || matches!(self.pod.phase(), "Running" | "Succeeded" | "Failed")
    }

    /// The step: the sandbox, which has the network of the pod.
    pub fn sandbox(&self) -> Check {
        if self.has_sandbox() {
            return Check::pass(SANDBOX, "was created");
        }
        let place = self.place();
        let Some(event) = self.of_sandbox() else {
            // Without container statuses the kubelet has not seen the pod yet.
            let text = format!("{place}: its kubelet has created no sandbox yet");
            let found = self.explained(&rules::NOT_STARTED, text, "", None);
            return Check::found(SANDBOX, self.if_late(found));
        };
        let said = format!("{}: {}", event.reason, event.message);
        Check::found(SANDBOX, self.explained(&rules::NOT_STARTED, format!("{place}: {said}"), &said, None))
    }

    /// Reduces a finding without a failure to a note while the pod is new.
    pub fn if_late(&self, found: Diagnostic) -> Diagnostic {
        if self.age().is_none_or(|age| age >= AT_FIRST) {
            return found;
        }
        rules::found(&rules::POD_STARTING, found.message, &self.names())
    }

    /// The line for a pod that is being deleted; `None` for others.
    pub fn ending(&self) -> Option<Check> {
        self.pod.object.metadata.deletion_timestamp.as_ref()?;
        let (text, fix) = self.why_ending();
        let found = Diagnostic::new(&rules::POD_ENDING, format!("{}: the pod {text}", self.place())).fixed(fix);
        Some(Check::found(CONTAINERS, if self.has_time() { found.with_severity(Severity::Warning) } else { found }))
    }

    /// Whether its containers have time to end: the time of the deletion includes their grace period.
    fn has_time(&self) -> bool {
        let deleted = self.pod.object.metadata.deletion_timestamp.as_ref();
        deleted.and_then(|deleted| self.events.since(deleted.0)).is_some_and(|late| late.is_negative())
    }

    /// Why a pod that is being deleted still exists, and the remedy.
    pub fn why_ending(&self) -> (String, Option<String>) {
        let Self { pod, target, .. } = self;
        let metadata = &pod.object.metadata;
        let finalizers: Vec<&str> = metadata.finalizers.iter().flatten().map(String::as_str).collect();
        let disrupted = pod.condition("DisruptionTarget").and_then(|condition| condition.message.as_deref());
        let by = disrupted.map(|message| format!(" ({message})")).unwrap_or_default();
        if !finalizers.is_empty() {
            let patch = " --type=merge --patch '{\"metadata\":{\"finalizers\":null}}'";
            let freed = target.command("patch pod", self.pod.place().1, patch);
            let text = format!("is being deleted{by}, but it has finalizers: {}", first_five(&finalizers));
            return (text, freed.map(|freed| format!("If nothing removes them any more: {freed}.")));
        }
        if self.has_time() {
            let fix = "Wait: its containers have the grace period of the Pod to end. Then its controller creates another one.";
            return (format!("is being deleted{by}"), Some(fix.to_owned()));
        }
        let forced = target.command("delete pod", self.pod.place().1, " --force");
        let said = self.newest(|event| event.reason == "FailedKillPod");
        let said = said.map(|event| format!(": {}", event.message)).unwrap_or_default();
        let text = format!("is being deleted{by}, but its kubelet has not ended it{said}");
        (text, forced.map(|forced| format!("If its node is gone for good: {forced}.")))
    }

    /// The event that explains why the sandbox is not created.
    fn of_sandbox(&self) -> Option<&'p Event> {
        // A summary event does not name the cause.
        let is_sum = |event: &Event| event.message.starts_with("Unable to attach or mount volumes");
        self.newest(|event| event.is_of_sandbox() && !is_sum(event)).or_else(|| self.newest(Event::is_of_sandbox))
    }

    /// Whether the kubelet is still working without a failure: it creates the sandbox, or pulls an image.
    pub fn waits(&self) -> bool {
        let is_broken = troubles(self.init()).chain(troubles(self.containers())).next().is_some();
        self.pod.phase() == "Pending" && !is_broken && (self.has_sandbox() || self.of_sandbox().is_none())
    }

    /// Whether it is a sidecar: an init container that keeps running.
    fn is_sidecar(&self, container: &ContainerStatus) -> bool {
        let of_spec = self.pod.object.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
        let mut of_name = of_spec.filter(|init| init.name == container.name);
        of_name.any(|init| init.restart_policy.as_deref() == Some("Always"))
    }

    /// The step: the first init container that has not succeeded.
    pub fn init_containers(&self) -> Check {
        let init = self.init();
        if let Some((container, trouble)) = troubles(init).next() {
            return Check::found(INIT, self.broken("init container", container, &trouble));
        }
        if init.is_empty() {
            let spec = self.pod.object.spec.as_ref();
            let are_none = spec.is_none_or(|spec| spec.init_containers.iter().flatten().next().is_none());
            return Check::pass(
                INIT,
                if are_none { "there are none" } else { "the kubelet has reported nothing of them" },
            );
        }
        let holds = |container: &&ContainerStatus| {
            let runs = is_running(container) && (!self.is_sidecar(container) || container.started == Some(false));
            runs || waiting(container).is_some()
        };
        let Some(container) = init.iter().find(holds) else {
            let run = if init.iter().any(is_running) { ", or run as sidecars" } else { "" };
            return Check::pass(INIT, format!("have ended well{run}"));
        };
        if waiting(container).is_some() {
            return Check::found(INIT, self.not_started(&format!("init container {:?} waits", container.name)));
        }
        let is_sidecar = self.is_sidecar(container);
        let state = if is_sidecar { "runs, and has not passed its startup probe" } else { "has not ended" };
        let text = format!("init container {:?} {state} yet", container.name);
        let found = self.explained(&rules::NOT_STARTED, text, "", self.logs(container));
        Check::found(INIT, if is_sidecar { self.if_late(found) } else { found })
    }

    /// The step: the containers run, or have succeeded.
    pub fn containers_run(&self) -> Check {
        let place = self.place();
        let troubles: Vec<_> = troubles(self.containers()).collect();
        let found = match troubles.first() {
            _ if self.pod.phase() == "Failed" => Some(self.failed(&place, &troubles)),
            Some((container, trouble)) => Some(self.broken("container", container, trouble)),
            None if self.pod.phase() == "Pending" => Some(self.not_started(&place)),
            None if self.pod.phase() == "Running" => self.not_ready(&place).or_else(|| self.restarted(&place)),
            None => None,
        };
        found.map_or_else(|| Check::pass(CONTAINERS, place), |found| Check::found(CONTAINERS, found))
    }

    /// The finding for a pod whose containers have neither started nor failed: to pull an image takes minutes.
    fn not_started(&self, place: &str) -> Diagnostic {
        let pulled = self.newest(|event| event.reason == "Pulling");
        if let Some((event, age)) = pulled.and_then(|event| Some((event, self.events.since(event.at?)?))) {
            let text = format!("{place}: {}, since {} s", event.message, age.as_secs());
            let is_of_windows = self.pod.admission.uses_gmsa();
            let fix = if is_of_windows { "Wait: an image of Windows Server Core has some gigabytes." } else { "Wait." };
            return Diagnostic::new(&rules::POD_STARTING, text).with_fix(fix);
        }
        if self.may_start_containers() && self.age().is_some_and(|age| age < PULL_TIME) {
            let text = format!("{place}: its kubelet pulls an image, or creates the container");
            return rules::found(&rules::POD_STARTING, text, &self.names());
        }
        let text = format!("{place}: its kubelet has started no container yet");
        self.if_late(self.explained(&rules::NOT_STARTED, text, "", None))
    }

    /// The finding for a running container that restarts repeatedly.
    fn restarted(&self, place: &str) -> Option<Diagnostic> {
        let (container, ended) = self.containers().iter().find_map(|container| {
            let ended = container.last_state.as_ref()?.terminated.as_ref()?;
            let age = ended.finished_at.as_ref().and_then(|at| self.events.since(at.0));
            let is_recent = age.is_none_or(|age| age < RECENT);
            (container.restart_count >= OFTEN && is_recent).then_some((container, ended))
        })?;
        let is_liveness = |event: &Event| event.reason == "Unhealthy" && event.message.starts_with("Liveness");
        let probe = self.newest(|event| event.is_of_container(&container.name) && is_liveness(event));
        let why = words([&ended.reason, &ended.message]);
        let said = [why.as_str(), probe.map_or("", |event| event.message.as_str())];
        let said = said.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
        let text = format!(
            "{place}, and container {:?} was restarted {} times, last after exit code {}: {said}",
            container.name, container.restart_count, ended.exit_code
        );
        let found = self.explained(&rules::NOT_STARTED, text, &said, self.logs(container));
        Some(found.with_severity(Severity::Warning))
    }

    /// The finding for a running pod that is not ready, so it gets no traffic of its Services.
    fn not_ready(&self, place: &str) -> Option<Diagnostic> {
        let sidecars = self.init().iter().filter(|init| self.is_sidecar(init));
        let unready = sidecars.chain(self.containers()).find(|container| is_running(container) && !container.ready);
        let (text, said) = if let Some(container) = unready {
            let is_probe = |event: &Event| event.reason == "Unhealthy" && event.may_be_of_container(&container.name);
            let why = self.newest(is_probe).map_or("no event says why yet", |event| event.message.as_str());
            (format!("container {:?} is not ready: {why}", container.name), why.to_owned())
        } else {
            // An ended container is not ready either.
            let all_run = !self.containers().is_empty() && self.containers().iter().all(|container| container.ready);
            let ready = self.pod.condition("Ready").filter(|condition| condition.status != "True" && all_run)?;
            let why = words([&ready.reason, &ready.message]);
            (format!("the pod is not ready: {why}"), why)
        };
        Some(self.explained(&rules::POD_NOT_READY, format!("{place}, and {text}"), &said, None))
    }

    /// The finding for a failed pod: an evicted pod has its own reason, otherwise the containers name the cause.
    fn failed(&self, place: &str, troubles: &[(&ContainerStatus, String)]) -> Diagnostic {
        let own = self
            .pod
            .object
            .status
            .as_ref()
            .map(|status| words([&status.reason, &status.message]))
            .filter(|own| !own.is_empty());
        let of_containers =
            troubles.iter().map(|(container, trouble)| format!("container {:?} {trouble}", container.name));
        let why = own.into_iter().chain(of_containers).collect::<Vec<_>>().join("; ");
        let colon = if why.is_empty() { "" } else { ": " };
        let logs = troubles.first().and_then(|(container, _)| self.logs(container));
        self.explained(&rules::POD_FAILED, format!("{place}{colon}{why}"), &why, logs)
    }

    /// The finding for a container that does not start or has ended.
    fn broken(&self, kind: &str, container: &ContainerStatus, trouble: &str) -> Diagnostic {
        let crashes = waiting(container).is_some_and(|waiting| waiting.reason.as_deref() == Some("CrashLoopBackOff"));
        let event = self.newest(|event| match event.reason.as_str() {
            // Only this event contains the output of the hook.
            "FailedPostStartHook" => event.may_be_of_container(&container.name),
            "Failed" | "FailedToRetrieveImagePullSecret" => event.is_of_container(&container.name),
            // An exit before the probe of the startup has succeeded is no failure of the probe.
            "Unhealthy" => crashes && event.message.starts_with("Liveness") && event.is_of_container(&container.name),
            _ => false,
        });
        let more = event.filter(|event| !trouble.contains(event.message.trim_start_matches("Error: ")));
        let more = more.map(|event| format!("; {}", event.message)).unwrap_or_default();
        let said = format!("{trouble}{more}");
        let text = format!("{}, {kind} {:?} {said}", self.place(), container.name);
        let found = self.explained(&rules::NOT_STARTED, text, &said, self.logs(container));
        // The manifest of the workload does not have it.
        let is_injected = container.name == SIDECAR && self.pod.admission.tickets().is_some();
        let of_memory = said.contains("OOMKilled").then_some("tickets.resources.limits.memory");
        let of_image =
            || waiting(container)?.reason.as_deref().filter(|why| why.contains("Image")).map(|_| "tickets.image");
        match of_memory.or_else(of_image).filter(|_| is_injected) {
            Some(value) => found.with_fix(format!(
                "The webhook injects this container: set `{value}` in the values of its chart, then delete the Pod."
            )),
            None => found,
        }
    }

    /// The command that prints the log of a container which has started; `None` if it has no log.
    fn logs(&self, container: &ContainerStatus) -> Option<String> {
        let has_log = |state: &ContainerState| {
            let ended = state.terminated.as_ref();
            state.running.is_some() || ended.is_some_and(|ended| ended.reason.as_deref() != Some("StartError"))
        };
        let [now, before] = [&container.state, &container.last_state].map(|state| state.as_ref().is_some_and(has_log));
        if !(now || before) || !is_dns_label(&container.name) {
            return None;
        }
        let previous = if now { "" } else { " --previous" };
        self.target.command("logs", self.pod.place().1, &format!(" --container {}{previous}", container.name))
    }

    /// A finding of the rule for the message `said`, otherwise of `general`, with the command that shows the log if there is one.
    fn explained(&self, general: &'static Rule, text: String, said: &str, logs: Option<String>) -> Diagnostic {
        let rule = rules::recognize(said, Phase::Start).filter(|rule| ![general, &rules::NOT_STARTED].contains(rule));
        if let Some(logs) = logs.filter(|_| rule.is_none()) {
            return Diagnostic::new(general, text).with_fix(format!("Not known to be about GMSA: {logs} shows more."));
        }
        let contents = self.pod.admission.slots().find_map(|slot| serde_json::from_str(slot.contents?).ok());
        let contents = contents.unwrap_or_default();
        rules::found(rule.unwrap_or(general), text, &Names { said, ..self.names().of_contents(&contents) })
    }

    fn names(&self) -> Names<'_> {
        let (namespace, name) = self.pod.place();
        Names {
            node: self.pod.node_name(),
            target: Some(self.target),
            namespace: Some(namespace),
            pod_name: Some(name),
            ..Names::default()
        }
    }
}

/// Whether the kubelet has tried to start it.
fn was_tried(container: &ContainerStatus) -> bool {
    let is_first = waiting(container)
        .is_none_or(|waiting| waiting.reason.as_deref().is_some_and(|reason| NOT_TRIED.contains(&reason)));
    let has_state = container.state.as_ref().is_some_and(|state| state.running.is_some() || state.terminated.is_some());
    has_state || !is_first || container.last_state.as_ref().is_some_and(|last| last.terminated.is_some())
}

fn waiting(container: &ContainerStatus) -> Option<&ContainerStateWaiting> {
    container.state.as_ref()?.waiting.as_ref()
}

pub fn is_running(container: &ContainerStatus) -> bool {
    container.state.as_ref().is_some_and(|state| state.running.is_some())
}

/// The containers that do not run, with the causes.
fn troubles(all: &[ContainerStatus]) -> impl Iterator<Item = (&ContainerStatus, String)> {
    all.iter().filter_map(|container| Some((container, trouble(container)?)))
}

/// Why a container does not run. `None` if it runs, has succeeded, or waits for others.
fn trouble(container: &ContainerStatus) -> Option<String> {
    let Some(waiting) = waiting(container) else { return ended(container.state.as_ref()) };
    let reason = waiting.reason.as_deref().unwrap_or_default();
    let last = ended(container.last_state.as_ref()).or_else(|| {
        // Its workload expects it to keep running.
        let is_over =
            reason == "CrashLoopBackOff" && container.last_state.as_ref().is_some_and(|last| last.terminated.is_some());
        is_over.then(|| "ended with exit code 0".to_owned())
    });
    if last.is_none() && (reason.is_empty() || NOT_TRIED.contains(&reason)) {
        return None;
    }
    let last = last.map(|last| format!(", and {last} before")).unwrap_or_default();
    Some(format!("waits: {}{last}", words([&waiting.reason, &waiting.message])))
}

fn ended(state: Option<&ContainerState>) -> Option<String> {
    let ended = state?.terminated.as_ref().filter(|ended| ended.exit_code != 0)?;
    let why = words([&ended.reason, &ended.message]);
    Some(format!("ended with exit code {}{}{why}", ended.exit_code, if why.is_empty() { "" } else { ", " }))
}

/// A reason and a message, as far as they are set.
fn words(parts: [&Option<String>; 2]) -> String {
    let parts: Vec<&str> =
        parts.into_iter().flatten().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
    parts.join(": ")
}
