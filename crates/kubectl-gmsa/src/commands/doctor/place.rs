//! Where a pod is, and how its containers do there.

use k8s_openapi::api::core::v1::{ContainerState, ContainerStateWaiting, ContainerStatus, Node, PodStatus};

use super::{found, not_checked::not_checked};
use crate::shared::{connection::Cluster, pods::ClusterPod};
use gmsa_core::diagnostic::{Check, Diagnostic, Severity, rules};

pub(super) const NODE: &str = "node";

/// The checks of the pod's node and of its containers.
pub(super) async fn checks(cluster: &Cluster, pod: &ClusterPod) -> Vec<Check> {
    let Some(name) = pod.object.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) else {
        return vec![unscheduled(pod)];
    };
    let mut checks = match cluster.find::<Node>(&format!("/api/v1/nodes/{name}")).await {
        Ok(Some(node)) => node_checks(name, &node),
        Ok(None) => vec![found(NODE, &rules::NODE_NOT_READY, format!("{name} does not exist any more"))],
        Err(error) => vec![not_checked(NODE, &error)],
    };
    checks.push(started(pod, name));
    checks
}

fn unscheduled(pod: &ClusterPod) -> Check {
    let status = pod.object.status.as_ref();
    if pod.phase() == "Failed" {
        return failed(status, "Failed, not on a node");
    }
    let mut conditions = status.iter().flat_map(|status| status.conditions.iter().flatten());
    let why = conditions.find(|condition| condition.type_ == "PodScheduled");
    let why = why.and_then(|condition| condition.message.as_deref()).filter(|why| !why.is_empty());
    let why = why.unwrap_or("the scheduler has not tried it");
    found(NODE, &rules::NOT_SCHEDULED, format!("the pod is not on a node: {why}"))
}

/// What is wrong with the node.
fn node_checks(name: &str, node: &Node) -> Vec<Check> {
    let status = node.status.as_ref();
    let label = node.metadata.labels.as_ref().and_then(|labels| labels.get("kubernetes.io/os"));
    let info = status.and_then(|status| status.node_info.as_ref()).map(|info| &info.operating_system);
    let mut checks = Vec::new();
    if let Some(os) = label.or(info).filter(|os| *os != "windows") {
        let text = format!("{name} is a node with the operating system {os}, on which no Windows container runs");
        checks.push(Check::found(NODE, Diagnostic::new(&rules::LINUX_NODE, text).with_severity(Severity::Error)));
    }
    let mut conditions = status.iter().flat_map(|status| status.conditions.iter().flatten());
    if let Some(ready) = conditions.find(|condition| condition.type_ == "Ready" && condition.status != "True") {
        let why = ready.message.as_deref().or(ready.reason.as_deref()).unwrap_or("its kubelet does not say why");
        checks.push(found(NODE, &rules::NODE_NOT_READY, format!("{name} is not ready: {why}")));
    }
    checks
}

/// Whether the containers run, or have ended well.
fn started(pod: &ClusterPod, node: &str) -> Check {
    let status = pod.object.status.as_ref();
    let place = format!("{} on {node}", pod.phase());
    if pod.phase() == "Failed" {
        return failed(status, &place);
    }
    let troubles = troubles(status);
    if troubles.is_empty() {
        Check::pass(NODE, place)
    } else {
        found(NODE, &rules::NOT_STARTED, format!("{place}, {}", troubles.join("; ")))
    }
}

fn failed(status: Option<&PodStatus>, place: &str) -> Check {
    // An evicted pod has a reason of its own; otherwise its containers say why.
    let own = status.map(|status| words([&status.reason, &status.message])).filter(|own| !own.is_empty());
    let why = own.into_iter().chain(troubles(status)).collect::<Vec<_>>().join("; ");
    let colon = if why.is_empty() { "" } else { ": " };
    found(NODE, &rules::POD_FAILED, format!("{place}{colon}{why}"))
}

/// The containers that do not start or that have ended with an error. Those that wait for the init containers count where there is no
/// other: they are not the cause.
fn troubles(status: Option<&PodStatus>) -> Vec<String> {
    let Some(status) = status else { return Vec::new() };
    let init = of_kind("init container", status.init_container_statuses.as_ref());
    let all: Vec<_> = init.chain(of_kind("container", status.container_statuses.as_ref())).collect();
    let (causes, waiting): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, container)| !waits_for_others(container));
    let troubles = |containers: Vec<(&str, &ContainerStatus)>| -> Vec<String> {
        let trouble = |(kind, container): (&str, &ContainerStatus)| {
            Some(format!("{kind} {:?} {}", container.name, trouble(container)?))
        };
        containers.into_iter().filter_map(trouble).collect()
    };
    let found = troubles(causes);
    if found.is_empty() { troubles(waiting) } else { found }
}

fn of_kind<'s>(
    kind: &'static str,
    containers: Option<&'s Vec<ContainerStatus>>,
) -> impl Iterator<Item = (&'static str, &'s ContainerStatus)> {
    containers.into_iter().flatten().map(move |container| (kind, container))
}

fn waiting(container: &ContainerStatus) -> Option<&ContainerStateWaiting> {
    container.state.as_ref()?.waiting.as_ref()
}

/// The kubelet's reason for containers that come after the init containers.
fn waits_for_others(container: &ContainerStatus) -> bool {
    waiting(container).and_then(|waiting| waiting.reason.as_deref()) == Some("PodInitializing")
}

fn trouble(container: &ContainerStatus) -> Option<String> {
    let Some(waiting) = waiting(container) else { return ended(container.state.as_ref()) };
    let last = ended(container.last_state.as_ref()).map(|last| format!(", and {last} before")).unwrap_or_default();
    Some(format!("waits: {}{last}", words([&waiting.reason, &waiting.message])))
}

fn ended(state: Option<&ContainerState>) -> Option<String> {
    let ended = state?.terminated.as_ref().filter(|ended| ended.exit_code != 0)?;
    let why = words([&ended.reason, &ended.message]);
    Some(format!("ended with exit code {}{}{why}", ended.exit_code, if why.is_empty() { "" } else { ", " }))
}

/// A reason and a message, as far as they are there.
fn words(parts: [&Option<String>; 2]) -> String {
    let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).filter(|part| !part.is_empty()).collect();
    parts.join(": ")
}
