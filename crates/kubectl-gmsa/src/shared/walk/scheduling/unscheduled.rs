//! Why a pod has no node: the conditions that exclude the Windows nodes, or the scheduler's message.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Node, PodSpec, Taint};
use serde_json::{Value, json};

use super::{
    super::{
        events::Events,
        placement::{NodeRequirements, labels, selected, untolerated},
    },
    Nodes, OS, build_of, error, linux_node, not_ready,
};
use crate::shared::{
    output::first_five,
    pods::ClusterPod,
    rules::{self, Fix, FixTarget, Names, Phase},
    windows_build::{Build, LABEL},
};
use gmsa_core::{
    credspec::is_dns_subdomain,
    diagnostic::{Diagnostic, Severity},
};

/// Whether no scheduler has tried to find a node for the pod.
pub fn is_untried(pod: &ClusterPod, events: &Events) -> bool {
    scheduler_says(pod, events).is_none()
}

/// The finding for a pod without a node, from the Windows nodes or from the scheduler's message.
pub fn why(pod: &ClusterPod, target: FixTarget<'_>, nodes: &Nodes, events: &Events) -> Diagnostic {
    let said = scheduler_says(pod, events).unwrap_or("the scheduler has not tried it");
    let text = format!("the pod is not on a node: {said}");
    if let Some(found) = held(pod, target, events) {
        return found;
    }
    if let Some(node) = nominated(pod) {
        let text = format!("{text}; the scheduler ends other pods on {node} for it");
        return Diagnostic::new(&rules::POD_STARTING, text)
            .with_fix("Wait until they have ended, after their grace period.");
    }
    let windows = nodes.windows.as_ref().filter(|_| pod.admission.uses_gmsa());
    let Some((spec, windows)) = pod.object.spec.as_ref().zip(windows) else {
        return of_words(pod, target, text, said, None);
    };
    if windows.is_empty() {
        return error(&rules::WINDOWS_NODES, format!("{text}; the cluster has no Windows node"));
    }
    let selected = selected(spec, windows);
    if selected.is_empty() {
        return unselected(spec, windows, &text, target);
    }
    let taints = selected.iter().map(|node| (*node, untolerated(spec, node)));
    let keep_away: Vec<(&Node, Vec<&Taint>)> = taints.filter(|(_, taints)| !taints.is_empty()).collect();
    if let Some((node, taints)) = keep_away.first().filter(|_| keep_away.len() == selected.len()) {
        return tainted(pod, node, taints, &text, target);
    }
    let cordoned = selected.iter().find(|node| is_cordoned(node)).and_then(|node| node.metadata.name.as_deref());
    let meant = of_these(said, &selected, &keep_away);
    if let Some((_, rest)) = meant.split_once("Insufficient ") {
        let resource = rest.split([',', ' ']).next().unwrap_or_default().trim_end_matches('.');
        return short_of(resource, spec, text);
    }
    let cordoned = cordoned.filter(|_| !meant.contains("untolerated taint {node.kubernetes.io/"));
    of_words(pod, target, text, &meant, cordoned)
}

fn is_cordoned(node: &Node) -> bool {
    node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true))
}

/// The scheduler's reasons for the selected nodes. Reasons for other nodes, which every cluster has, are irrelevant. The whole message
/// if no reason remains.
fn of_these(said: &str, selected: &[&Node], keep_away: &[(&Node, Vec<&Taint>)]) -> String {
    let Some((_, rest)) = said.split_once("nodes are available: ") else { return said.to_owned() };
    let reasons = rest.split_once(". ").map_or(rest, |(reasons, _)| reasons).trim_end_matches('.');
    let has_taint = |reason: &str| {
        let key = reason.split_once("taint {").map(|(_, rest)| rest.split([':', '}']).next().unwrap_or_default());
        let mut taints = keep_away.iter().flat_map(|(_, taints)| taints);
        taints.any(|taint| key.is_none_or(|key| taint.key == key))
    };
    let is_meant = |reason: &&str| {
        let is_of_others = ["node affinity/selector", "didn't match node selector", "[NodeAffinity]"]
            .iter()
            .any(|words| reason.contains(words));
        let is_cordoned = || selected.iter().any(|node| is_cordoned(node));
        !is_of_others
            && (!reason.contains("untolerated taint") || has_taint(reason))
            && (!reason.contains("were unschedulable") || is_cordoned())
    };
    let meant: Vec<&str> = reasons.split(", ").filter(is_meant).collect();
    if meant.is_empty() { said.to_owned() } else { meant.join(", ") }
}

/// The finding that the selected nodes are short of a resource.
fn short_of(resource: &str, spec: &PodSpec, text: String) -> Diagnostic {
    let found = rules::found(&rules::NODE_RESOURCES, text, &Names::default()).with_severity(Severity::Error);
    let pinned = pinned(spec).into_iter().find(|name| is_dns_subdomain(name));
    let fix = match pinned {
        Some(node) => Some(format!(
            "The Pod asks for {node} alone: free {resource} there (`kubectl describe node {node}` shows what is allocated), or lower its requests."
        )),
        // `windows.example.com/device`: a resource of a device plugin.
        None if resource.contains('/') => Some(format!(
            "Start the device plugin that offers {resource} on a Windows node, or remove it from the requests and limits of the Pod."
        )),
        None => None,
    };
    found.fixed(fix)
}

/// The nodes that the pod names.
fn pinned(spec: &PodSpec) -> Vec<String> {
    let by_label = spec.node_selector.as_ref().and_then(|labels| labels.get(HOSTNAME));
    let required = NodeRequirements::of_spec(spec);
    by_label.map(String::as_str).into_iter().chain(required.affinity.names()).map(str::to_owned).collect()
}

/// The label of a node with its host name.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// The node on which the scheduler preempts other pods for this one.
fn nominated(pod: &ClusterPod) -> Option<&str> {
    pod.object.status.as_ref()?.nominated_node_name.as_deref().filter(|name| !name.is_empty())
}

/// The finding for a pod with scheduling gates, or with a scheduler that does not exist.
fn held(pod: &ClusterPod, target: FixTarget<'_>, events: &Events) -> Option<Diagnostic> {
    let spec = pod.object.spec.as_ref()?;
    let gates: Vec<&str> = spec.scheduling_gates.iter().flatten().map(|gate| gate.name.as_str()).collect();
    if !gates.is_empty() {
        let text = format!(
            "the pod is not on a node: no scheduler tries it before its gates are removed: {}",
            first_five(&gates)
        );
        let change = target.change(&json!({"schedulingGates": null}));
        let fix = format!("Its controller removes them when it is time. To do without: {change}");
        return Some(error(&rules::NOT_SCHEDULED, text).with_fix(fix));
    }
    let name = spec.scheduler_name.as_deref().filter(|name| !["", "default-scheduler"].contains(name))?;
    if !is_untried(pod, events) {
        return None;
    }
    let text = format!("the pod is not on a node: its scheduler, {name:?}, has not tried it");
    let change = target.change(&json!({"schedulerName": "default-scheduler"}));
    let fix = format!("Start that scheduler, or use the one of Kubernetes: {change}");
    Some(error(&rules::NOT_SCHEDULED, text).with_fix(fix))
}

/// The finding for the scheduler's message `said` about the selected nodes. `node` is one of them.
fn of_words(pod: &ClusterPod, target: FixTarget<'_>, mut text: String, said: &str, node: Option<&str>) -> Diagnostic {
    let rule = rules::recognize(said, Phase::Start).unwrap_or(&rules::NOT_SCHEDULED);
    let (namespace, name) = pod.place();
    let volumes = pod.object.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let mut claims = volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref());
    if let Some(claim) = claims.next().filter(|_| text.contains("unbound immediate PersistentVolumeClaims")) {
        // The scheduler does not name the claim.
        text = format!("{text}; it uses persistentvolumeclaim {:?}", claim.claim_name);
    }
    let names = Names {
        target: Some(target),
        namespace: Some(namespace),
        pod_name: Some(name),
        node,
        said,
        ..Names::default()
    };
    rules::found(rule, text, &names).with_severity(Severity::Error)
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
    let selector = spec.node_selector.clone().unwrap_or_default();
    if selector.get(OS).is_some_and(|os| os != "windows") {
        return linux_node(format!("{text}; it selects nodes that are not for Windows"), target, None);
    }
    let is_there = |name: &String| windows.iter().any(|node| names_of(node).any(|known| known == name));
    let pinned = pinned(spec);
    if let Some(name) = pinned.first().filter(|_| !pinned.iter().any(is_there)) {
        let by_label = selector.contains_key(HOSTNAME);
        let change = by_label.then(|| target.change(&json!({"nodeSelector": {HOSTNAME: null}})));
        let fix = change.map_or_else(
            || {
                "Correct the name in its node affinity, or add the node. The Pods of a DaemonSet go with their node."
                    .to_owned()
            },
            |change| format!("Add the node, or let the scheduler choose: {change}"),
        );
        let text = format!("{text}; it asks for node {name}, and there is no Windows node of that name");
        return Diagnostic::new(&rules::NODE_SELECTOR, text).with_fix(fix);
    }
    let builds: BTreeSet<Build> = windows.iter().filter_map(build_of).collect();
    let builds: Vec<String> = builds.iter().map(Build::to_string).collect();
    if let Some(selected) = selector.get(LABEL).filter(|selected| !builds.contains(selected)) {
        let text =
            format!("{text}; it selects nodes of {selected}, and the Windows nodes are of {}", first_five(&builds));
        let fix =
            format!("Add a node of {selected}, or use an image that runs on {} and select that.", first_five(&builds));
        return error(&rules::WINDOWS_BUILD, text).with_fix(fix);
    }
    let missing = |(key, value): (&String, &String)| {
        let has = |node: &Node| labels(node).get(key) == Some(value);
        (!windows.iter().any(has)).then(|| format!("{key}={value}"))
    };
    let missing: Vec<String> = selector.iter().filter_map(missing).collect();
    // A label that begins with `-` would be an option.
    let is_plain = |label: &&String| {
        !label.starts_with('-') && label.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./=".contains(&b))
    };
    let fix = match missing.first().filter(is_plain) {
        Some(label) => format!(
            "No Windows node has the label {label}: correct the node selector, or label the intended node: `kubectl label node NODE {label}`."
        ),
        None => "Correct its node affinity and its node selector, or label the intended node: \
             `kubectl get nodes -l kubernetes.io/os=windows --show-labels` shows the labels."
            .to_owned(),
    };
    Diagnostic::new(&rules::NOT_SCHEDULED, format!("{text}; it selects none of the Windows nodes")).with_fix(fix)
}

/// The name of a node, and its host name.
fn names_of(node: &Node) -> impl Iterator<Item = &String> {
    node.metadata.name.iter().chain(node.metadata.labels.as_ref().and_then(|labels| labels.get(HOSTNAME)))
}

/// The finding that all selected Windows nodes have an untolerated taint, with the remedy for the first node's taint.
fn tainted(pod: &ClusterPod, node: &Node, taints: &[&Taint], text: &str, target: FixTarget<'_>) -> Diagnostic {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    // Kubernetes sets these by itself, for as long as the node is like this (Taint based Evictions, Taint Nodes by Condition).
    if let Some(condition) = taints.iter().find_map(|taint| taint.key.strip_prefix("node.kubernetes.io/")) {
        let why = not_ready(node).map(|why| format!(": {why}")).unwrap_or_default();
        // The scheduler's wording.
        let said = format!("untolerated taint {{node.kubernetes.io/{condition}: }}");
        let names = Names { node: Some(name), said: &said, ..Names::default() };
        let text = format!("{text}; {name} has the condition {condition}{why}");
        return rules::found(&rules::NODE_NOT_READY, text, &names);
    }
    let names = first_five(taints.iter().map(|taint| shown(taint)));
    let text = format!("{text}; {name} has the taint {names}, which it does not tolerate");
    // Taints that a controller sets and removes have their own remedy.
    let said =
        taints.iter().map(|taint| format!("untolerated taint {{{}: }}", taint.key)).collect::<Vec<_>>().join(", ");
    let own = rules::fix(&rules::NODE_TAINT, &Names { node: Some(name), said: &said, ..Names::default() });
    if let Some(fix) = own.and_then(Fix::in_cluster).filter(|_| taints.iter().any(|taint| passes(&taint.key))) {
        return Diagnostic::new(&rules::NODE_TAINT, text).with_fix(fix);
    }
    let tolerated = target.change(&json!({"tolerations": tolerations(pod, taints)}));
    Diagnostic::new(&rules::NODE_TAINT, text).with_fix(tolerated)
}

/// Whether a controller sets the taint, and removes it or the node by itself.
fn passes(key: &str) -> bool {
    const PASSING: [&str; 6] = [
        "node.cloudprovider.kubernetes.io/",
        "ToBeDeletedByClusterAutoscaler",
        "DeletionCandidateOfClusterAutoscaler",
        "karpenter.sh/",
        "node.cilium.io/",
        "startup-taint.cluster-autoscaler.kubernetes.io/",
    ];
    PASSING.iter().any(|known| key.starts_with(known))
}

/// The taint in the notation of `kubectl taint`.
fn shown(Taint { key, value, effect, .. }: &Taint) -> String {
    let value = value.as_deref().filter(|value| !value.is_empty()).map(|value| format!("={value}")).unwrap_or_default();
    format!("{key}{value}:{effect}")
}

/// The tolerations of the pod, and new ones for these taints, without the tolerations that Kubernetes adds by itself.
fn tolerations(pod: &ClusterPod, taints: &[&Taint]) -> Vec<Value> {
    let own = pod.object.spec.iter().flat_map(|spec| spec.tolerations.iter().flatten());
    let is_own = |key: Option<&String>| key.is_none_or(|key| !key.starts_with("node.kubernetes.io/"));
    let own = own.filter(|toleration| is_own(toleration.key.as_ref())).filter_map(|own| serde_json::to_value(own).ok());
    let new = taints.iter().map(|taint| {
        let value = taint.value.as_deref().unwrap_or_default();
        json!({"key": taint.key, "operator": "Equal", "value": value, "effect": taint.effect})
    });
    own.chain(new).collect()
}
