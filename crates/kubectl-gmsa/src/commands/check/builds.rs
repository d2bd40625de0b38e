//! Whether the nodes for a pod can run its images, as far as Windows builds are known. The tag gives the build of an image.
//! The pod's selectors, or in a cluster the labels of nodes, give the builds of nodes.

use std::collections::BTreeSet;

use gmsa_core::{
    admission::pod::{Pod, Slot, VERSION_LABELS},
    credspec::placeholder::is_placeholder,
    diagnostic::{Diagnostic, Severity},
    node_affinity::{LabelValue, Node},
    pointer::escape,
    quote::{VALUE, quoted},
};
use serde_json::Value;

use crate::shared::{
    rules,
    walk::nodes::NodeRequirements,
    windows_build::{Build, LABEL, built_containers, hyper_v},
};

use super::{context::CheckContext, template::CheckedPod};

/// An image, and its build.
struct Image {
    /// The place of the image in the pod.
    at: String,
    container: String,
    build: Build,
}

/// The findings on the images of a Windows pod.
pub(super) async fn findings(
    checked: &CheckedPod<'_>,
    class: Option<&Value>,
    context: &CheckContext,
) -> Vec<Diagnostic> {
    let Some(pod) = checked.pod.pod() else { return Vec::new() };
    // A Hyper-V isolated container does not depend on the build of the node.
    if pod.is_linux() || !pod.uses_gmsa() || class.and_then(hyper_v).is_some() {
        return Vec::new();
    }
    let (images, has_unknown) = images(checked, pod);
    if images.is_empty() && !has_unknown {
        return Vec::new();
    }
    if let Some(found) = no_build(checked, &images) {
        return vec![found];
    }
    let required = NodeRequirements::of(checked.pod.root().below("spec").json);
    let required = class.into_iter().fold(required, NodeRequirements::with_class);
    if let Some(selected) = selected(&required) {
        let by_class = class.and_then(|class| class.pointer("/scheduling/nodeSelector")?.get(LABEL));
        let by = if by_class.is_some() { "its runtime class" } else { "the pod" };
        return images.iter().filter_map(|image| misfit(checked, image, &selected, Some((by, &required)))).collect();
    }
    if pod.pins_build() && class.is_none() {
        return Vec::new();
    }
    let Some(nodes) = context.node_builds(&required).await else { return vec![not_selected(checked, &images)] };
    let mut found: Vec<Diagnostic> = images.iter().filter_map(|image| misfit(checked, image, &nodes, None)).collect();
    if has_unknown && found.is_empty() && nodes.len() > 1 {
        found.push(not_selected(checked, &images));
    }
    found
}

/// The build that the pod selects, where no node can have it: `20348`, `ltsc2022`.
fn no_build(checked: &CheckedPod<'_>, images: &[Image]) -> Option<Diagnostic> {
    let at = format!("/spec/nodeSelector/{}", escape(LABEL));
    let value = checked.text(&at).filter(|value| !is_placeholder(value))?;
    let read = Build::of_text(value);
    if read.is_some_and(|build| build.to_string() == value) {
        return None;
    }
    let text = format!("no node has {LABEL}: {}, so the pod stays Pending", quoted(value, VALUE));
    let fit = read.or_else(|| images.first().map(|image| image.build));
    Some(warning(checked, &at, text, selector(fit.as_slice())))
}

/// The images with a known build, and whether there are others.
fn images(checked: &CheckedPod<'_>, pod: &Pod) -> (Vec<Image>, bool) {
    let image = |slot: Slot<'_>| {
        let at = format!("/spec/{}/{}/image", slot.kind.field()?, slot.index);
        let build = Build::of_image(checked.text(&at)?)?;
        Some(Image { at, container: format!("{} {:?}", slot.kind, slot.owner), build })
    };
    let all: Vec<Option<Image>> = built_containers(pod).map(image).collect();
    let has_unknown = all.iter().any(Option::is_none);
    (all.into_iter().flatten().collect(), has_unknown)
}

/// The labels that give the build of a node.
fn build_labels() -> impl Iterator<Item = &'static str> {
    std::iter::once(LABEL).chain(VERSION_LABELS)
}

/// The node builds that the labels allow; `None` if they allow a build that they do not name.
fn selected(required: &NodeRequirements) -> Option<BTreeSet<Build>> {
    if required.allow(&OfVersion { key: None, value: "a version that it does not name" }) {
        return None;
    }
    let of_label = |key| {
        let allowed = required.values(key).filter(move |value| required.allow(&OfVersion { key: Some(key), value }));
        allowed.filter_map(move |value| Build::of_node_label(key, value))
    };
    Some(build_labels().flat_map(of_label).collect()).filter(|builds: &BTreeSet<_>| !builds.is_empty())
}

/// A simulated Windows node: one known label has the version, or all version labels have this value.
struct OfVersion<'v> {
    key: Option<&'v str>,
    value: &'v str,
}

impl Node for OfVersion<'_> {
    fn label(&self, key: &str) -> LabelValue<'_> {
        let is_known = self.key.map_or_else(|| key == LABEL || VERSION_LABELS.contains(&key), |known| known == key);
        match key {
            "kubernetes.io/os" => LabelValue::Value("windows"),
            _ if is_known => LabelValue::Value(self.value),
            _ => LabelValue::Unknown,
        }
    }
}

/// The finding on an image that not all nodes of these builds run: the nodes that `by` selects, or else those of the cluster.
fn misfit(
    checked: &CheckedPod<'_>,
    Image { at, container, build }: &Image,
    nodes: &BTreeSet<Build>,
    by: Option<(&str, &NodeRequirements)>,
) -> Option<Diagnostic> {
    let (fit, unfit): (Vec<Build>, Vec<Build>) = nodes.iter().partition(|node| node.runs(*build));
    let unfit = Some(unfit).filter(|unfit| !unfit.is_empty()).map(|unfit| listed(&unfit))?;
    let image = format!("the image of {container}, of {build}");
    let (message, fix) = match by {
        Some((by, required)) => {
            (format!("{by} selects nodes of {unfit}, which do not run {image}"), selected_instead(required, *build))
        }
        None if fit.is_empty() => (format!("no node that the pod may land on runs {image}: they are of {unfit}"), None),
        None => (format!("the pod may land on a node of {unfit}, which does not run {image}"), selector(&fit)),
    };
    Some(warning(checked, at, message, fix))
}

/// The same label for nodes that run the image: a second selector would have no effect.
fn selected_instead(required: &NodeRequirements, image: Build) -> Option<String> {
    match build_labels().find(|key| required.values(key).next().is_some())? {
        LABEL => selector(&image.nodes().collect::<Vec<_>>()),
        key => {
            let value = required.label(key)?;
            let value = image.nodes().find_map(|node| node.label_value(key, value))?;
            Some(format!("spec:\n  nodeSelector: {{{key}: {value}}}"))
        }
    }
}

fn listed(builds: &[Build]) -> String {
    builds.iter().map(Build::to_string).collect::<Vec<_>>().join(", ")
}

fn warning(checked: &CheckedPod<'_>, at: &str, message: String, fix: Option<String>) -> Diagnostic {
    checked.finding(&rules::WINDOWS_BUILD, at, message).with_severity(Severity::Warning).fixed(fix)
}

/// A note, because the node builds or the build of an image are unknown.
fn not_selected(checked: &CheckedPod<'_>, images: &[Image]) -> Diagnostic {
    let text = "no node.kubernetes.io/windows-build selector: where nodes differ in build, the container may not start";
    let run_all = |node: &Build| images.iter().all(|image| node.runs(image.build));
    let fit: Vec<Build> = images.first().into_iter().flat_map(|image| image.build.nodes()).filter(run_all).collect();
    Diagnostic { fix: selector(&fit), ..checked.finding(&rules::WINDOWS_BUILD, "/spec", text) }
}

/// The YAML that selects all fitting builds, so that nodes can later be replaced by a newer release.
fn selector(fit: &[Build]) -> Option<String> {
    match fit {
        [] => None,
        [one] => Some(format!("spec:\n  nodeSelector: {{{LABEL}: {one}}}")),
        several => Some(format!(
            "spec:\n  affinity:\n    nodeAffinity:\n      requiredDuringSchedulingIgnoredDuringExecution:\n        \
                 nodeSelectorTerms:\n        - matchExpressions:\n          - {{key: {LABEL}, operator: In, values: [{}]}}",
            listed(several)
        )),
    }
}
