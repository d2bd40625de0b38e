//! Waits until the container of a pod runs or the cause of its failure is known.

use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::{Instant, sleep};

use super::{CONTAINER, POD, PodName, Probe};
use crate::shared::{
    pods::ClusterPod,
    progress,
    rules::{self, FixTarget},
    unread::is_cause,
    walk::{
        containers::{Seen, is_running},
        events::Events,
        scheduling::{Nodes, is_untried},
        worst::steps,
    },
    world::{WINDOWS_NODES, World},
};
use gmsa_core::diagnostic::{Check, Rule};

const INTERVAL: Duration = Duration::from_secs(1);
/// The number of consecutive observations before a cause counts, because kubelet, scheduler and registry retry.
const SEEN: u32 = 3;
/// Causes that a kubelet retries, and that often pass on a new node.
const RETRIED: [&Rule; 3] = [&rules::POD_NETWORK, &rules::COMPUTE_SERVICE, &rules::TIMED_OUT];

/// The pod once its container runs, or the first cause. `pod` is the pod as created.
pub(super) async fn until_running(
    probe: &Probe<'_>,
    name: &PodName,
    mut pod: ClusterPod,
) -> anyhow::Result<Result<ClusterPod, Check>> {
    let (PodName { namespace, name: pod_name }, limit) = (name, probe.options.timeout);
    let uid = pod.object.metadata.uid.clone();
    let end = Instant::now() + limit;
    let (mut last, mut seen): (Option<&'static Rule>, u32) = (None, 0);
    loop {
        if runs(&pod) {
            return Ok(Ok(pod));
        }
        let (cause, waits) = Box::pin(cause(probe, namespace, &pod)).await.unzip();
        let rule = cause.as_ref().and_then(|check| Some(check.result.as_ref().err()?.rule));
        seen = if rule.is_some() && rule == last { seen + 1 } else { 1 };
        last = rule;
        let is_over = Instant::now() >= end;
        if let Some(cause) = cause.filter(|_| pod.has_ended() || is_over || (seen >= SEEN && waits == Some(false))) {
            return Ok(Err(cause));
        }
        if is_over {
            let text = format!("its container does not run after {} s", limit.as_secs());
            return Ok(Err(Check::breach(POD, &rules::NOT_STARTED, text)));
        }
        progress::doing(&format!("waiting until pod {namespace}/{pod_name} runs: {}", pod.phase()));
        sleep(INTERVAL).await;
        let Some(json) = probe.cluster.find::<Box<RawValue>>(&name.path()).await? else {
            anyhow::bail!("pod {namespace}/{pod_name} was deleted by another client");
        };
        pod = ClusterPod::read(&json)?;
        anyhow::ensure!(pod.object.metadata.uid == uid, "pod {namespace}/{pod_name} was replaced by another client");
    }
}

fn runs(pod: &ClusterPod) -> bool {
    let statuses = pod.object.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    statuses.into_iter().any(|status| status.name == CONTAINER && is_running(status))
}

/// The current cause, and whether it may pass by itself.
async fn cause(probe: &Probe<'_>, namespace: &str, pod: &ClusterPod) -> Option<(Check, bool)> {
    // Without the right to read these, only the status of the pod is used.
    let now = World::of(probe.cluster.clone());
    let (events, windows) = tokio::join!(Events::read(&now, Some(namespace)), now.list(WINDOWS_NODES));
    let unread = [("events", events.unread.clone()), ("Windows nodes", windows.as_ref().err().cloned())];
    probe.unread.borrow_mut().extend(unread.into_iter().filter_map(|(about, unread)| Some((about, unread?))));
    let mut nodes = Nodes::of(windows.ok());
    nodes.add(&now, std::iter::once(pod)).await;
    let target = FixTarget::Pod { namespace };
    let check = steps(pod, target, &nodes, &events).into_iter().find(is_cause)?;
    let seen = Seen { pod, target, events: &events };
    let waits = check.result.as_ref().is_err_and(|found| match found.rule {
        // For a runtime class, the scheduler may wait for a new node.
        rule if *rule == rules::NOT_SCHEDULED => probe.options.runtime_class.is_some() || is_untried(pod, &events),
        rule if RETRIED.contains(&rule) => true,
        _ => pod.node_name().is_some() && seen.waits(),
    });
    Some((check, waits))
}
