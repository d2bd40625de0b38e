//! Whether a pod is on a node that can run it, and if it is on none, what keeps it from the Windows nodes.

use std::collections::{BTreeSet, HashMap};

use k8s_openapi::api::core::v1::{Node, PodSpec, Taint};
use serde_json::{Value, json};

use super::{
    events::Events,
    placement::{labels, selects, untolerated},
    remedy::Subject,
};
use crate::shared::{connection::Cluster, not_checked::not_checked, output::first_five, pods::ClusterPod};
use gmsa_core::{
    admission::pod::SlotKind,
    credspec::is_dns_subdomain,
    diagnostic::{
        Check, Diagnostic, Severity,
        rules::{self, Rule},
    },
    windows_build::{Build, LABEL},
};

pub const SCHEDULING: &str = "scheduling";

/// The label of a node with its operating system.
const OS: &str = "kubernetes.io/os";

/// The nodes, as far as they were read.
#[derive(Default)]
pub struct Nodes {
    /// `None` where they were not asked for, or may not be read.
    pub windows: Option<Vec<Node>>,
    /// The nodes of pods that are none of these: `None` for one that does not exist.
    others: HashMap<String, anyhow::Result<Option<Node>>>,
}

impl Nodes {
    pub const WINDOWS: &str = "/api/v1/nodes?labelSelector=kubernetes.io%2Fos%3Dwindows";

    /// With the Windows nodes, where they were read.
    pub fn of(windows: Option<Vec<Node>>) -> Self {
        Self { windows, others: HashMap::new() }
    }

    /// Reads the nodes that these pods are on and that are not among the Windows nodes.
    pub async fn add(&mut self, cluster: &Cluster, pods: impl Iterator<Item = &ClusterPod>) {
        let names: BTreeSet<&str> = pods.filter_map(node_name).filter(|name| is_dns_subdomain(name)).collect();
        for name in names {
            if self.windows.iter().flatten().all(|node| node.metadata.name.as_deref() != Some(name)) {
                let read = cluster.find(&format!("/api/v1/nodes/{name}")).await;
                self.others.insert(name.to_owned(), read);
            }
        }
    }

    fn find(&self, name: &str) -> Result<Option<&Node>, Option<&anyhow::Error>> {
        let known = self.windows.iter().flatten().find(|node| node.metadata.name.as_deref() == Some(name));
        match (known, self.others.get(name)) {
            (Some(node), _) => Ok(Some(node)),
            (None, Some(Ok(node))) => Ok(node.as_ref()),
            (None, Some(Err(error))) => Err(Some(error)),
            (None, None) => Err(None),
        }
    }
}

pub fn node_name(pod: &ClusterPod) -> Option<&str> {
    pod.object.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}

/// The step: what keeps the pod from running on its node, or from being on one.
pub fn check(pod: &ClusterPod, subject: Subject<'_>, nodes: &Nodes, events: &Events) -> Check {
    let Some(name) = node_name(pod) else {
        // A pod that has ended without a node says itself why.
        return if pod.has_ended() {
            Check::pass(SCHEDULING, "not on a node")
        } else {
            Check::found(SCHEDULING, unscheduled(pod, subject, nodes, events))
        };
    };
    // What has ended there does not depend on how the node is now.
    if pod.has_ended() {
        return Check::pass(SCHEDULING, format!("on {name}"));
    }
    match nodes.find(name) {
        Ok(None) => {
            let gone = format!("the pod is on {name}, which does not exist any more");
            Check::found(SCHEDULING, Diagnostic::new(&rules::NODE_NOT_READY, gone))
        }
        Ok(Some(node)) => match on_node(pod, subject, name, node, nodes) {
            Some(found) => Check::found(SCHEDULING, found),
            None => Check::pass(SCHEDULING, format!("on {name}{}", of_build(node))),
        },
        Err(Some(error)) => not_checked(SCHEDULING, error),
        Err(None) => Check::pass(SCHEDULING, format!("on {name}")),
    }
}

fn of_build(node: &Node) -> String {
    labels(node).get(LABEL).map(|build| format!(", which is of {build}")).unwrap_or_default()
}

fn error(rule: &'static Rule, text: String) -> Diagnostic {
    Diagnostic::new(rule, text).with_severity(Severity::Error)
}

/// What is wrong with the node of a pod.
fn on_node(pod: &ClusterPod, subject: Subject<'_>, name: &str, node: &Node, nodes: &Nodes) -> Option<Diagnostic> {
    let status = node.status.as_ref();
    let labels = labels(node);
    let info = status.and_then(|status| status.node_info.as_ref()).map(|info| &info.operating_system);
    if let Some(os) = labels.get(OS).or(info).filter(|os| *os != "windows") {
        let text =
            format!("the pod is on {name}, a node with the operating system {os}, on which no Windows container runs");
        let spec = json!({"os": {"name": "windows"}, "nodeSelector": {(OS): "windows"}});
        return Some(error(&rules::LINUX_NODE, text).with_fix(subject.change(&spec)));
    }
    if let Some(why) = not_ready(node) {
        let found = error(&rules::NODE_NOT_READY, format!("{name} is not ready: {why}"));
        return Some(Diagnostic { fix: see_node(name), ..found });
    }
    let build = Build::of_label(labels.get(LABEL)?)?;
    // One that runs proves that its images can.
    (pod.phase() != "Running").then(|| other_build(pod, subject, name, build, nodes)).flatten()
}

/// Why a node is not ready.
pub fn not_ready(node: &Node) -> Option<&str> {
    let mut conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions.find(|condition| condition.type_ == "Ready" && condition.status != "True")?;
    Some(ready.message.as_deref().or(ready.reason.as_deref()).unwrap_or("its kubelet does not say why"))
}

fn see_node(name: &str) -> Option<String> {
    is_dns_subdomain(name).then(|| {
        format!(
            "`kubectl describe node {name}` says why: start its kubelet and its container runtime. Pods with a controller are created on other \
             nodes after five minutes."
        )
    })
}

/// The images of the pod whose build is known, each with its container.
fn images(pod: &ClusterPod) -> Vec<(String, Build)> {
    let Some(spec) = &pod.object.spec else { return Vec::new() };
    let mut slots = pod.admission.slots();
    let of_pod = slots.next().and_then(|slot| slot.host_process);
    slots
        .filter(|slot| slot.host_process.or(of_pod) != Some(true))
        .filter_map(|slot| {
            let containers = match slot.kind {
                SlotKind::InitContainer => spec.init_containers.as_deref()?,
                SlotKind::Container => &spec.containers,
                SlotKind::Pod | SlotKind::EphemeralContainer => return None,
            };
            let image = containers.get(slot.index)?.image.as_deref()?;
            Some((format!("{} {:?}", slot.kind, slot.owner), Build::of_image(image)?))
        })
        .collect()
}

/// The image of the pod that its node does not run.
fn other_build(pod: &ClusterPod, subject: Subject<'_>, name: &str, build: Build, nodes: &Nodes) -> Option<Diagnostic> {
    let images = images(pod);
    let (container, image) = images.iter().find(|(_, image)| !build.runs(*image))?;
    let text = format!("the pod is on {name} of {build}, which does not run the image of {container}, of {image}");
    let fits = |node: &Build| images.iter().all(|(_, image)| node.runs(*image));
    let builds: BTreeSet<Build> = nodes.windows.iter().flatten().filter_map(build_of).filter(fits).collect();
    let found = error(&rules::WINDOWS_BUILD, text);
    Some(match builds.into_iter().next_back() {
        Some(fit) => {
            found.with_fix(subject.change(&json!({"nodeSelector": {(OS): "windows", (LABEL): fit.to_string()}})))
        }
        None => found.with_fix(format!("Use an image of {build}, or add a node that runs one of {image}.")),
    })
}

fn build_of(node: &Node) -> Option<Build> {
    Build::of_label(node.metadata.labels.as_ref()?.get(LABEL)?)
}

/// Why the pod is on no node: what keeps it from the Windows nodes, or what the scheduler says.
fn unscheduled(pod: &ClusterPod, subject: Subject<'_>, nodes: &Nodes, events: &Events) -> Diagnostic {
    let said = scheduler_says(pod, events).unwrap_or("the scheduler has not tried it");
    let text = format!("the pod is not on a node: {said}");
    let Some((spec, windows)) = pod.object.spec.as_ref().zip(nodes.windows.as_ref()) else {
        return Diagnostic::new(&rules::NOT_SCHEDULED, text);
    };
    if windows.is_empty() {
        return error(&rules::WINDOWS_NODES, format!("{text}; the cluster has no Windows node"));
    }
    let selected: Vec<&Node> = windows.iter().filter(|node| selects(spec, &labels(node))).collect();
    if selected.is_empty() {
        return unselected(spec, windows, &text, subject);
    }
    let keep_away: Vec<(&Node, Vec<&Taint>)> = selected
        .into_iter()
        .map(|node| (node, untolerated(spec, node)))
        .filter(|(_, taints)| !taints.is_empty())
        .collect();
    let others = windows.iter().filter(|node| selects(spec, &labels(node))).count() - keep_away.len();
    match keep_away.first() {
        Some((node, taints)) if others == 0 => tainted(pod, node, taints, &text, subject),
        _ => Diagnostic::new(&rules::NOT_SCHEDULED, text),
    }
}

fn scheduler_says<'e>(pod: &'e ClusterPod, events: &'e Events) -> Option<&'e str> {
    let mut conditions = pod.object.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let condition = conditions.find(|condition| condition.type_ == "PodScheduled");
    let said = condition.and_then(|condition| condition.message.as_deref()).filter(|said| !said.is_empty());
    let uid = pod.object.metadata.uid.as_deref().unwrap_or_default();
    let event = || events.newest(uid, |event| event.reason == "FailedScheduling").map(|event| event.message.as_str());
    said.or_else(event)
}

/// The pod selects none of the Windows nodes.
fn unselected(spec: &PodSpec, windows: &[Node], text: &str, subject: Subject<'_>) -> Diagnostic {
    let selector = spec.node_selector.clone().unwrap_or_default();
    if selector.get(OS).is_some_and(|os| os != "windows") {
        let change = subject.change(&json!({"os": {"name": "windows"}, "nodeSelector": {(OS): "windows"}}));
        return error(&rules::LINUX_NODE, format!("{text}; it selects nodes that are not for Windows"))
            .with_fix(change);
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
    let found = Diagnostic::new(&rules::NOT_SCHEDULED, format!("{text}; it selects none of the Windows nodes"));
    match missing.first().filter(|label| label.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./=".contains(&b))) {
        Some(label) => found.with_fix(format!(
            "No Windows node has the label {label}: correct the node selector, or label a node that is meant: `kubectl label node NODE {label}`."
        )),
        None => found,
    }
}

/// All Windows nodes that the pod selects have a taint that it does not tolerate: what to do about that of the first.
fn tainted(pod: &ClusterPod, node: &Node, taints: &[&Taint], text: &str, subject: Subject<'_>) -> Diagnostic {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    // Kubernetes sets these by itself, for as long as the node is like this (Taint based Evictions, Taint Nodes by Condition).
    let of_condition = taints.iter().find_map(|taint| Some((taint, taint.key.strip_prefix("node.kubernetes.io/")?)));
    match of_condition.map(|(_, condition)| condition) {
        Some("unschedulable") => {
            let found = Diagnostic::new(&rules::NODE_TAINT, format!("{text}; {name} is cordoned"));
            let fix = is_dns_subdomain(name).then(|| format!("`kubectl uncordon {name}`."));
            Diagnostic { fix, ..found }
        }
        Some(condition) => {
            let why = not_ready(node).map(|why| format!(": {why}")).unwrap_or_default();
            let found =
                Diagnostic::new(&rules::NODE_NOT_READY, format!("{text}; {name} has the condition {condition}{why}"));
            Diagnostic { fix: see_node(name), ..found }
        }
        None => {
            let names: Vec<String> = taints.iter().map(|taint| shown(taint)).collect();
            let text = format!("{text}; {name} has the taint {}, which it does not tolerate", first_five(&names));
            Diagnostic::new(&rules::NODE_TAINT, text)
                .with_fix(subject.change(&json!({"tolerations": tolerations(pod, taints)})))
        }
    }
}

/// As `kubectl taint` has it.
fn shown(Taint { key, value, effect, .. }: &Taint) -> String {
    let value = value.as_deref().filter(|value| !value.is_empty()).map(|value| format!("={value}")).unwrap_or_default();
    format!("{key}{value}:{effect}")
}

/// The tolerations of the pod and those for these taints. Those that Kubernetes adds by itself are left to it.
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
