//! Whether a pod is on a node that can run it, and if it has no node, why the Windows nodes do not fit.

use std::collections::{BTreeMap, BTreeSet};

use gmsa_cluster::kubernetes_version::{NATIVE_SIDECARS, is_at_least};
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use super::{
    containers::Seen,
    nodes::{Labelled, NodeRequirements, build, label},
};
use crate::shared::{
    output::first_five,
    pods::with_sidecar,
    rules::{self, Names},
    windows_build::{Build, LABEL, built_containers},
};
use gmsa_core::{
    admission::pod::{Slot, SlotKind},
    diagnostic::{Check, Diagnostic, Rule, Severity},
};

pub const SCHEDULING: &str = "scheduling";

/// The remedy for a pod whose node is deleted.
const GONE: &str =
    "Its controller creates it on another node after five minutes; a Pod without a controller must be created again.";

/// The label of a node with its operating system.
const OS: &str = "kubernetes.io/os";

impl Seen<'_> {
    /// The step: why the pod has no node, or cannot run on its node.
    pub fn scheduled(&self) -> Check {
        let Self { pod, target, nodes, .. } = self;
        let Some(name) = pod.node_name() else {
            // An ended pod without a node names the cause itself.
            if pod.has_ended() {
                return Check::pass(SCHEDULING, "not on a node");
            }
            let said = self.scheduler_says().unwrap_or("the scheduler has not tried it");
            let text = format!("the pod is not on a node: {said}");
            let found = self.misfit(&text).unwrap_or_else(|| {
                let unknown =
                    with_sidecar(Some(&pod.admission), said, rules::found(&rules::NOT_SCHEDULED, &text, &self.names()));
                if self.is_untried() { self.if_late(unknown) } else { unknown }
            });
            return Check::found(SCHEDULING, found);
        };
        // An ended pod does not depend on the current state of its node.
        if pod.has_ended() {
            return Check::pass(SCHEDULING, format!("on {name}"));
        }
        // Whether a scheduler, not the template, chose the node.
        let was_scheduled = pod.condition("PodScheduled").is_some_and(|condition| condition.status == "True");
        let found = match nodes.of_pods.get(name) {
            Some(Ok(None)) if pod.phase() == "Pending" && !was_scheduled => {
                let text = format!("the pod asks for {name} by `nodeName`, and no such node exists");
                let fix = target.change(&json!({"nodeName": null}));
                Diagnostic::new(&rules::NODE_NOT_READY, text).with_fix(format!("Let the scheduler choose: {fix}"))
            }
            Some(Ok(None)) => {
                let gone = format!("the pod is on {name}, which does not exist any more");
                Diagnostic::new(&rules::NODE_NOT_READY, gone).with_fix(GONE)
            }
            Some(Ok(Some(node))) => {
                let Some(found) = self.on_node(name, node) else {
                    let build = label(node, LABEL).map(|build| format!(", which is of {build}")).unwrap_or_default();
                    return Check::pass(SCHEDULING, format!("on {name}{build}"));
                };
                found
            }
            Some(Err(unread)) => return unread.check(SCHEDULING),
            None => return Check::pass(SCHEDULING, format!("on {name}")),
        };
        Check::found(SCHEDULING, found)
    }

    /// The finding for a pod on a Linux node. `node` is the pod's node.
    fn linux_node(&self, text: String, node: Option<&str>) -> Diagnostic {
        let names = Names { target: Some(self.target), node, ..Names::default() };
        rules::found(&rules::LINUX_NODE, text, &names).with_severity(Severity::Error)
    }

    /// The finding on the node of a pod.
    fn on_node(&self, name: &str, node: &Node) -> Option<Diagnostic> {
        let is_of_windows = self.pod.admission.uses_gmsa();
        let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
        let os = label(node, OS).or(info.map(|info| &*info.operating_system));
        if let Some(os) = os.filter(|os| is_of_windows && *os != "windows") {
            let text = format!(
                "the pod is on {name}, a node with the operating system {os}, on which no Windows container runs"
            );
            return Some(self.linux_node(text, Some(name)));
        }
        let version = info.map(|info| info.kubelet_version.as_str()).filter(|version| !version.is_empty());
        if let Some(found) = self.no_tickets_on(name, os.is_some_and(|os| os == "windows"), version) {
            return Some(found);
        }
        if let Some(why) = not_ready(node) {
            let names = Names { node: Some(name), ..Names::default() };
            return Some(rules::found(&rules::NODE_NOT_READY, format!("{name} is not ready: {why}"), &names));
        }
        // A running pod proves that the node runs its images.
        let build = build(node).filter(|_| self.pod.phase() != "Running")?;
        let (container, image) = self.images().into_iter().find(|(_, image)| !build.runs(*image))?;
        let text = format!("the pod is on {name} of {build}, which does not run the image of {container}, of {image}");
        let fix = self.on_build().unwrap_or_else(|| {
            format!("Use an image of {build}, or let the Pod select nodes that run one of {image}.")
        });
        Some(error(&rules::WINDOWS_BUILD, text).with_fix(fix))
    }

    /// The finding for a pod that asks for tickets and never starts on its node: a node of Windows, or one without native sidecars.
    fn no_tickets_on(&self, name: &str, is_of_windows: bool, version: Option<&str>) -> Option<Diagnostic> {
        let pod = &self.pod.admission;
        let is_waiting = self.pod.phase() == "Pending" && !pod.uses_gmsa();
        pod.asks_tickets_of().next().filter(|_| is_waiting)?;
        if is_of_windows {
            let text = format!("the pod is on {name}, a Windows node, and tickets are for Linux pods");
            let fix = self.target.change(&json!({"nodeSelector": {(OS): "linux"}}));
            return Some(Diagnostic::new(&rules::TICKETS_IMPOSSIBLE, text).with_fix(fix));
        }
        let version =
            version.filter(|version| !is_at_least(version, NATIVE_SIDECARS) && pod.audiences().next().is_some())?;
        let text = format!(
            "the kubelet of {name} is {version}: before 1.{NATIVE_SIDECARS} it waits for the end of a sidecar, which does not end"
        );
        let fix = format!(
            "Upgrade the kubelet of {name} to 1.{NATIVE_SIDECARS} or later, or have the Pod select other nodes."
        );
        Some(Diagnostic::new(&rules::TICKETS_IMPOSSIBLE, text).with_fix(fix))
    }

    /// The images with a known build that need a node of certain builds, each with its container.
    fn images(&self) -> Vec<(String, Build)> {
        let Some(spec) = &self.pod.object.spec else { return Vec::new() };
        if spec.runtime_class_name.as_ref().is_some_and(|class| self.nodes.hyper_v.contains(class)) {
            return Vec::new();
        }
        let image = |slot: Slot<'_>| {
            let containers = match slot.kind {
                SlotKind::InitContainer => spec.init_containers.as_deref()?,
                SlotKind::Container => &spec.containers,
                SlotKind::Pod | SlotKind::EphemeralContainer => return None,
            };
            let image = containers.get(slot.index)?.image.as_deref()?;
            Some((format!("{} {:?}", slot.kind, slot.owner), Build::of_image(image)?))
        };
        built_containers(&self.pod.admission).filter_map(image).collect()
    }

    /// Whether a node of this build runs all images of the pod.
    fn runs_images(&self, build: Build) -> bool {
        self.images().iter().all(|(_, image)| build.runs(*image))
    }

    /// The change that brings the pod to nodes that run its images: those that it selects but for their build, or else without the labels
    /// that keep it from them. The oldest of several builds is the closest to the images.
    fn on_build(&self) -> Option<String> {
        let required = NodeRequirements::of_pod(self.pod);
        // A runtime class may have added labels.
        let is_own = self.pod.object.spec.as_ref()?.runtime_class_name.is_none();
        let fitting = self.nodes.windows.iter().flatten().filter_map(|node| {
            let build = build(node).filter(|build| self.runs_images(*build))?;
            let mut labels = required.missing(&Labelled(node))?;
            labels.retain(|key| ![OS, LABEL].contains(key));
            ((labels.is_empty() || is_own) && required.untolerated(node).is_empty()).then_some((labels, build))
        });
        let (labels, build) = fitting.min_by_key(|(labels, build)| (labels.len(), *build))?;
        let mut selector = BTreeMap::from([(OS, json!("windows")), (LABEL, json!(build.to_string()))]);
        selector.extend(labels.into_iter().map(|label| (label, Value::Null)));
        Some(self.target.change(&json!({"nodeSelector": selector})))
    }

    /// Whether no scheduler has tried to find a node for the pod.
    pub fn is_untried(&self) -> bool {
        self.scheduler_says().is_none()
    }

    /// Why none of the Windows nodes is for the pod, as far as they are known. `text` is what else is known.
    pub fn misfit(&self, text: &str) -> Option<Diagnostic> {
        let windows = self.nodes.windows.as_ref().filter(|_| self.pod.admission.uses_gmsa())?;
        if windows.is_empty() {
            return Some(error(&rules::WINDOWS_NODES, format!("{text}; the cluster has no Windows node")));
        }
        let required = NodeRequirements::of_pod(self.pod);
        let selected = windows.iter().filter(|node| required.allow(&Labelled(node)));
        // The scheduler does not always name the taint.
        let tainted: Vec<_> = selected.map(|node| (node, required.untolerated(node))).collect();
        if tainted.is_empty() {
            return Some(self.unselected(&required, windows, text));
        }
        if tainted.iter().any(|(_, taints)| taints.is_empty()) {
            return None;
        }
        let runs = |node: &Node| build(node).is_none_or(|build| self.runs_images(build));
        let Some((node, taints)) = tainted.iter().find(|(node, _)| runs(node)) else {
            let text = format!("{text}; the nodes that it selects do not run its images");
            return Some(error(&rules::WINDOWS_BUILD, text).fixed(self.on_build()));
        };
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let shown = first_five(taints.iter().map(|taint| format!("{}:{}", taint.key, taint.effect)));
        let text = format!("{text}; {name} has the taint {shown}, which the pod does not tolerate");
        let is_condition = taints.iter().any(|taint| taint.key.starts_with("node.kubernetes.io/"));
        let rule = if is_condition { &rules::NODE_NOT_READY } else { &rules::NODE_TAINT };
        Some(rules::found(rule, text, &Names { node: Some(name), ..Names::default() }))
    }

    fn scheduler_says(&self) -> Option<&str> {
        let condition = self.pod.condition("PodScheduled").and_then(|condition| condition.message.as_deref());
        let event = || Some(self.newest(|event| event.reason == "FailedScheduling")?.message.as_str());
        condition.filter(|said| !said.is_empty()).or_else(event)
    }

    /// The finding that the pod selects no Windows node.
    fn unselected(&self, required: &NodeRequirements, windows: &[Node], text: &str) -> Diagnostic {
        if required.label(OS).is_some_and(|os| os != "windows") {
            return self.linux_node(format!("{text}; it selects nodes that are not for Windows"), None);
        }
        let builds: BTreeSet<Build> = windows.iter().filter_map(build).collect();
        let builds: Vec<String> = builds.iter().map(Build::to_string).collect();
        if let Some(selected) = required.label(LABEL).filter(|selected| builds.iter().all(|build| build != selected)) {
            let builds = first_five(&builds);
            let text = format!("{text}; it selects nodes of {selected}, and the Windows nodes are of {builds}");
            let fix = format!("Add a node of {selected}, or use an image that runs on {builds} and select that.");
            return error(&rules::WINDOWS_BUILD, text).with_fix(fix);
        }
        Diagnostic::new(&rules::NODE_SELECTOR, format!("{text}; it selects none of the Windows nodes"))
    }
}

fn error(rule: &'static Rule, text: String) -> Diagnostic {
    Diagnostic::new(rule, text).with_severity(Severity::Error)
}

/// Why a node is not ready.
pub fn not_ready(node: &Node) -> Option<&str> {
    let mut conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions.find(|condition| condition.type_ == "Ready" && condition.status != "True")?;
    Some(ready.message.as_deref().or(ready.reason.as_deref()).unwrap_or("its kubelet does not say why"))
}
