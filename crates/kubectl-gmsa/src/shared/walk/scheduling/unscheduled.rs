//! Why a pod is on no node: what the Windows nodes show, otherwise what the scheduler says.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Node, PodSpec};

use super::{
    super::{
        events::Events,
        placement::{selected, untolerated},
    },
    Nodes, OS, build_of, error, linux_node, on_build, runs_images,
};
use crate::shared::{
    output::first_five,
    pods::{ClusterPod, SIDECAR_RESOURCES},
    rules::{self, FixTarget, Names},
    windows_build::{Build, LABEL},
};
use gmsa_core::diagnostic::Diagnostic;

/// Whether no scheduler has tried to find a node for the pod.
pub fn is_untried(pod: &ClusterPod, events: &Events) -> bool {
    scheduler_says(pod, events).is_none()
}

/// The finding for a pod without a node.
pub fn why(pod: &ClusterPod, target: FixTarget<'_>, nodes: &Nodes, events: &Events) -> Diagnostic {
    let said = scheduler_says(pod, events).unwrap_or("the scheduler has not tried it");
    let text = format!("the pod is not on a node: {said}");
    misfit(pod, target, nodes, &text).unwrap_or_else(|| {
        let (namespace, name) = pod.place();
        let names = Names { namespace: Some(namespace), pod_name: Some(name), ..Names::default() };
        let found = rules::found(&rules::NOT_SCHEDULED, &text, &names);
        let has_sidecar = pod.admission.tickets().is_some() && said.contains("Insufficient");
        if has_sidecar { found.clone().with_fix(format!("{} {SIDECAR_RESOURCES}", found.remedy())) } else { found }
    })
}

/// Why none of the Windows nodes is for the pod, as far as they are known. `text` is what else is known.
pub fn misfit(pod: &ClusterPod, target: FixTarget<'_>, nodes: &Nodes, text: &str) -> Option<Diagnostic> {
    let windows = nodes.windows.as_ref().filter(|_| pod.admission.uses_gmsa())?;
    let spec = pod.object.spec.as_ref()?;
    if windows.is_empty() {
        return Some(error(&rules::WINDOWS_NODES, format!("{text}; the cluster has no Windows node")));
    }
    let selected = selected(spec, windows);
    if selected.is_empty() {
        return Some(unselected(spec, windows, text, target));
    }
    // The scheduler does not always name the taint.
    let tainted: Vec<_> = selected.iter().map(|node| (*node, untolerated(spec, node))).collect();
    if tainted.iter().any(|(_, taints)| taints.is_empty()) {
        return None;
    }
    let runs = |node: &Node| build_of(node).is_none_or(|build| runs_images(pod, build));
    let Some((node, taints)) = tainted.iter().find(|(node, _)| runs(node)) else {
        let text = format!("{text}; the nodes that it selects do not run its images");
        return Some(error(&rules::WINDOWS_BUILD, text).fixed(on_build(pod, target, nodes)));
    };
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let shown = first_five(taints.iter().map(|taint| format!("{}:{}", taint.key, taint.effect)));
    let text = format!("{text}; {name} has the taint {shown}, which the pod does not tolerate");
    let is_condition = taints.iter().any(|taint| taint.key.starts_with("node.kubernetes.io/"));
    let rule = if is_condition { &rules::NODE_NOT_READY } else { &rules::NODE_TAINT };
    Some(rules::found(rule, text, &Names { node: Some(name), ..Names::default() }))
}

fn scheduler_says<'e>(pod: &'e ClusterPod, events: &'e Events) -> Option<&'e str> {
    let said = pod
        .condition("PodScheduled")
        .and_then(|condition| condition.message.as_deref())
        .filter(|said| !said.is_empty());
    let uid = pod.object.metadata.uid.as_deref().unwrap_or_default();
    let event = || events.newest(uid, |event| event.reason == "FailedScheduling").map(|event| event.message.as_str());
    said.or_else(event)
}

/// The finding that the pod selects no Windows node.
fn unselected(spec: &PodSpec, windows: &[Node], text: &str, target: FixTarget<'_>) -> Diagnostic {
    let label = |key: &str| spec.node_selector.as_ref().and_then(|labels| labels.get(key));
    if label(OS).is_some_and(|os| os != "windows") {
        return linux_node(format!("{text}; it selects nodes that are not for Windows"), target, None);
    }
    let builds: BTreeSet<Build> = windows.iter().filter_map(build_of).collect();
    let builds: Vec<String> = builds.iter().map(Build::to_string).collect();
    if let Some(selected) = label(LABEL).filter(|selected| !builds.contains(selected)) {
        let builds = first_five(&builds);
        let text = format!("{text}; it selects nodes of {selected}, and the Windows nodes are of {builds}");
        let fix = format!("Add a node of {selected}, or use an image that runs on {builds} and select that.");
        return error(&rules::WINDOWS_BUILD, text).with_fix(fix);
    }
    Diagnostic::new(&rules::NODE_SELECTOR, format!("{text}; it selects none of the Windows nodes"))
}
