//! Whether the nodes that a pod may start on run its images, as far as Windows builds are known. The tag gives the build of an image.
//! The pod's selectors, or in a cluster the labels of nodes, give the builds of nodes.

use std::collections::BTreeSet;

use gmsa_core::{
    admission::pod::{Pod, Slot},
    diagnostic::{Diagnostic, Severity},
    node_affinity::{Known, Node, NodeAffinity},
};
use serde::Deserialize as _;

use crate::shared::{
    rules,
    windows_build::{Build, LABEL},
};

use super::{
    surroundings::{RuntimeClass, Surroundings},
    template::CheckedPod,
};

/// An image, and its build.
struct Image {
    /// The place of the image in the pod.
    at: String,
    container: String,
    build: Build,
}

/// What is wrong with the images of a pod for Windows.
pub(super) async fn findings(
    checked: &CheckedPod<'_>,
    pod: &Pod,
    class: &RuntimeClass,
    surroundings: &mut Surroundings,
) -> Vec<Diagnostic> {
    // In a virtual machine of its own a container does not depend on the build of the node.
    if pod.is_linux() || class.hyper_v().is_some() {
        return Vec::new();
    }
    let (images, has_unknown) = images(checked, pod);
    if images.is_empty() && !has_unknown {
        return Vec::new();
    }
    if let Some((by, builds)) = selected(checked, class) {
        let on_selected = |image: &Image| {
            let (unfit, Image { container, build, .. }) = (unfit(image, &builds)?, image);
            let text = format!("{by} selects nodes of {unfit}, which do not run the image of {container}, of {build}");
            Some(warning(checked, image, text, &build.nodes().collect::<Vec<_>>()))
        };
        return images.iter().filter_map(on_selected).collect();
    }
    if pod.pins_build() && !matches!(class, RuntimeClass::Found(_)) {
        return Vec::new();
    }
    let Some(nodes) = surroundings.node_builds().await else { return vec![not_selected(checked, &images)] };
    let mut found: Vec<Diagnostic> = images.iter().filter_map(|image| on_any(checked, image, nodes)).collect();
    if has_unknown && found.is_empty() && nodes.len() > 1 {
        found.push(not_selected(checked, &images));
    }
    found
}

/// The images whose build is known, and whether there are others. A hostProcess container is not bound to the build of its node.
fn images(checked: &CheckedPod<'_>, pod: &Pod) -> (Vec<Image>, bool) {
    let mut slots = pod.slots();
    let of_pod = slots.next().and_then(|slot| slot.host_process);
    let slots = slots.filter(|slot| slot.host_process.or(of_pod) != Some(true));
    let (known, unknown): (Vec<_>, Vec<_>) = slots.map(|slot| image(checked, &slot)).partition(Option::is_some);
    (known.into_iter().flatten().collect(), !unknown.is_empty())
}

fn image(checked: &CheckedPod<'_>, slot: &Slot<'_>) -> Option<Image> {
    let at = format!("/spec/{}/{}/image", slot.kind.field()?, slot.index);
    let build = Build::of_image(checked.text(&at)?)?;
    Some(Image { at, container: format!("{} {:?}", slot.kind, slot.owner), build })
}

/// What keeps the pod on nodes of certain builds, and these: the pod, or its runtime class for it.
fn selected(checked: &CheckedPod<'_>, class: &RuntimeClass) -> Option<(&'static str, BTreeSet<Build>)> {
    let one = |build: &str| Build::of_label(build).map(|build| BTreeSet::from([build]));
    let by_pod = || checked.text(&format!("/spec/nodeSelector/{}", LABEL.replace('/', "~1"))).and_then(one);
    let by_affinity = || Some(by_affinity(checked)).filter(|builds| !builds.is_empty());
    match class.selected_build().and_then(one) {
        Some(builds) => Some(("its runtime class", builds)),
        None => Some(("the pod", by_pod().or_else(by_affinity)?)),
    }
}

/// The builds of the nodes that the affinity of the pod allows; none where it allows every build.
fn by_affinity(checked: &CheckedPod<'_>) -> BTreeSet<Build> {
    let affinity = checked.pod.pointer("/spec/affinity/nodeAffinity");
    let affinity: NodeAffinity = affinity.and_then(|found| NodeAffinity::deserialize(found).ok()).unwrap_or_default();
    if affinity.allows(&OfBuild("a build that it does not name")) {
        return BTreeSet::new();
    }
    affinity.values(LABEL).filter(|build| affinity.allows(&OfBuild(build))).filter_map(Build::of_label).collect()
}

/// A Windows node of which only the build is known.
struct OfBuild<'b>(&'b str);

impl Node for OfBuild<'_> {
    fn label(&self, key: &str) -> Known<'_> {
        match key {
            LABEL => Known::Value(self.0),
            "kubernetes.io/os" => Known::Value("windows"),
            _ => Known::Unknown,
        }
    }
}

fn on_any(checked: &CheckedPod<'_>, image: &Image, nodes: &BTreeSet<Build>) -> Option<Diagnostic> {
    let unfit = unfit(image, nodes)?;
    let fit: Vec<Build> = nodes.iter().copied().filter(|node| node.runs(image.build)).collect();
    let message = if fit.is_empty() {
        format!("no node of the cluster runs the image of {}, of {}: they are of {unfit}", image.container, image.build)
    } else {
        format!(
            "the pod may land on a node of {unfit}, which does not run the image of {}, of {}",
            image.container, image.build
        )
    };
    Some(warning(checked, image, message, &fit))
}

/// The builds that do not run an image, as a list; `None` where all do.
fn unfit(image: &Image, nodes: &BTreeSet<Build>) -> Option<String> {
    let unfit: Vec<String> = nodes.iter().filter(|node| !node.runs(image.build)).map(Build::to_string).collect();
    (!unfit.is_empty()).then(|| unfit.join(", "))
}

fn warning(checked: &CheckedPod<'_>, image: &Image, message: String, fit: &[Build]) -> Diagnostic {
    let found = checked.finding(&rules::WINDOWS_BUILD, &image.at, message).with_severity(Severity::Warning);
    Diagnostic { fix: selector(fit), ..found }
}

/// A note, since the nodes or the build of an image are unknown.
fn not_selected(checked: &CheckedPod<'_>, images: &[Image]) -> Diagnostic {
    let text = "no node.kubernetes.io/windows-build selector: where nodes differ in build, the container may not start";
    let run_all = |node: &Build| images.iter().all(|image| node.runs(image.build));
    let fit: Vec<Build> = images.first().into_iter().flat_map(|image| image.build.nodes()).filter(run_all).collect();
    Diagnostic { fix: selector(&fit), ..checked.finding(&rules::WINDOWS_BUILD, "/spec", text) }
}

/// The YAML that keeps a pod on nodes of these builds: all that fit, so that nodes can be replaced by those of a later release.
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
