//! Whether the nodes for a pod can run its images, as far as Windows builds are known. The tag gives the build of an image.
//! The pod's selectors, or in a cluster the labels of nodes, give the builds of nodes.

use std::collections::BTreeSet;

use gmsa_core::{
    admission::pod::{Pod, Slot, VERSION_LABELS},
    credspec::placeholder::is_placeholder,
    diagnostic::{Diagnostic, Severity},
    node_affinity::{LabelValue, Node, NodeAffinity},
    pointer::escape,
    quote::{VALUE, quoted},
};
use serde_json::Value;

use crate::shared::{
    rules,
    walk::placement::NodeRequirements,
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
    pod: &Pod,
    class: Option<&Value>,
    context: &CheckContext,
) -> Vec<Diagnostic> {
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
    if let Some(selected) = selected(checked, class, &required.affinity) {
        return images.iter().filter_map(|image| on_selected(checked, image, &selected)).collect();
    }
    if pod.pins_build() && class.is_none() {
        return Vec::new();
    }
    let Some(nodes) = context.node_builds(&required).await else { return vec![not_selected(checked, &images)] };
    let mut found: Vec<Diagnostic> = images.iter().filter_map(|image| on_any(checked, image, &nodes)).collect();
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

/// The selection of node builds for a pod.
struct Selected<'p> {
    /// The pod, or its runtime class for it.
    by: &'static str,
    builds: BTreeSet<Build>,
    /// The label, and its value; `None` for another label than [`LABEL`] in an affinity.
    label: Option<(&'p str, &'p str)>,
}

fn selected<'p>(checked: &'p CheckedPod<'_>, class: Option<&Value>, affinity: &NodeAffinity) -> Option<Selected<'p>> {
    let by_class = class.and_then(|class| class.pointer("/scheduling/nodeSelector")?.get(LABEL)?.as_str());
    if let Some(build) = by_class.and_then(Build::of_label) {
        return Some(Selected { by: "its runtime class", builds: [build].into(), label: Some((LABEL, "")) });
    }
    let by = "the pod";
    let selector = checked.pod.json.pointer("/spec/nodeSelector").and_then(Value::as_object);
    let by_selector = selector.into_iter().flatten().find_map(|(key, value)| {
        let label @ (key, value) = (&**key, value.as_str()?);
        Some(Selected { by, builds: [Build::of_node_label(key, value)?].into(), label: Some(label) })
    });
    by_selector.or_else(|| {
        let (has_label, builds) = by_affinity(affinity)?;
        Some(Selected { by, builds, label: has_label.then_some((LABEL, "")) })
    })
}

fn on_selected(
    checked: &CheckedPod<'_>,
    image: &Image,
    Selected { by, builds, label }: &Selected<'_>,
) -> Option<Diagnostic> {
    let (Image { container, build, .. }, unfit) = (image, unfit(image, builds)?);
    let text = format!("{by} selects nodes of {unfit}, which do not run the image of {container}, of {build}");
    let fix = match label {
        Some((LABEL, _)) => selector(&build.nodes().collect::<Vec<_>>()),
        // A second selector would have no effect.
        Some((key, value)) => relabelled(key, value, *build),
        None => None,
    };
    Some(warning(checked, &image.at, text, fix))
}

/// The node builds that the affinity of the pod allows, and whether they come from [`LABEL`]; `None` if it allows a build that it does not
/// name.
fn by_affinity(affinity: &NodeAffinity) -> Option<(bool, BTreeSet<Build>)> {
    if affinity.allows(&OfVersion { key: None, value: "a version that it does not name" }) {
        return None;
    }
    let mut builds = BTreeSet::new();
    for key in std::iter::once(LABEL).chain(VERSION_LABELS) {
        let allowed = affinity.values(key).filter(|value| affinity.allows(&OfVersion { key: Some(key), value }));
        builds.extend(allowed.filter_map(|value| Build::of_node_label(key, value)));
    }
    (!builds.is_empty()).then(|| (affinity.values(LABEL).next().is_some(), builds))
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

/// The same label for nodes that run the image.
fn relabelled(key: &str, value: &str, image: Build) -> Option<String> {
    let value = image.nodes().find_map(|node| node.label_value(key, value))?;
    Some(format!("spec:\n  nodeSelector: {{{key}: {value}}}"))
}

fn on_any(checked: &CheckedPod<'_>, image: &Image, nodes: &BTreeSet<Build>) -> Option<Diagnostic> {
    let unfit = unfit(image, nodes)?;
    let fit: Vec<Build> = nodes.iter().copied().filter(|node| node.runs(image.build)).collect();
    let message = if fit.is_empty() {
        let Image { container, build, .. } = image;
        format!("no node that the pod may land on runs the image of {container}, of {build}: they are of {unfit}")
    } else {
        format!(
            "the pod may land on a node of {unfit}, which does not run the image of {}, of {}",
            image.container, image.build
        )
    };
    Some(warning(checked, &image.at, message, selector(&fit)))
}

/// The builds that cannot run an image, as a list; `None` if all can.
fn unfit(image: &Image, nodes: &BTreeSet<Build>) -> Option<String> {
    let unfit: Vec<String> = nodes.iter().filter(|node| !node.runs(image.build)).map(Build::to_string).collect();
    (!unfit.is_empty()).then(|| unfit.join(", "))
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
        several => {
            let builds: Vec<String> = several.iter().map(Build::to_string).collect();
            Some(format!(
                "spec:\n  affinity:\n    nodeAffinity:\n      requiredDuringSchedulingIgnoredDuringExecution:\n        \
                 nodeSelectorTerms:\n        - matchExpressions:\n          - {{key: {LABEL}, operator: In, values: [{}]}}",
                builds.join(", ")
            ))
        }
    }
}
