//! The nodes to probe, and the image for each.

use anyhow::{Context as _, ensure};
use k8s_openapi::api::{
    core::v1::{Node, Taint},
    node::v1::RuntimeClass,
};

use super::Options;
use crate::shared::{
    live::LiveCluster,
    rules::{self, Names},
    walk::scheduling::not_ready,
    windows_build::{Build, LABEL},
    world::WINDOWS_NODES,
};
use gmsa_core::diagnostic::{Diagnostic, Severity};

pub(super) const NODE: &str = "node";

/// The repository of Windows Server Core, which contains the commands of `verify`.
const SERVER_CORE: &str = "mcr.microsoft.com/windows/servercore";

/// The place for a pod.
pub(super) struct ProbeNode {
    /// `None` if the scheduler chooses.
    pub node: Option<String>,
    pub taints: Vec<Taint>,
    pub image: String,
    /// Why no pod can run there.
    pub fault: Option<Diagnostic>,
}

impl ProbeNode {
    pub fn name(&self) -> &str {
        self.node.as_deref().unwrap_or("a node of the runtime class")
    }
}

/// The requested nodes.
pub(super) async fn chosen(cluster: &LiveCluster, options: &Options) -> anyhow::Result<Vec<ProbeNode>> {
    if let Some(class) = &options.runtime_class {
        return Ok(vec![of_class(cluster, class, options).await?]);
    }
    if let Some(name) = &options.node {
        let node: Option<Node> = cluster.find(&format!("/api/v1/nodes/{name}")).await?;
        let node = node.with_context(|| format!("there is no node {name}"))?;
        let labels = node.metadata.labels.as_ref();
        let os = labels.and_then(|labels| labels.get("kubernetes.io/os"));
        ensure!(os.is_some_and(|os| os == "windows"), "{name} is not a Windows node (label kubernetes.io/os)");
        return Ok(vec![place(node, options)?]);
    }
    let mut nodes: Vec<Node> = cluster.list(WINDOWS_NODES, async |page| page).await?;
    nodes.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
    ensure!(!nodes.is_empty(), "the cluster has no Windows node");
    let places = nodes.into_iter().map(|node| place(node, options)).collect::<anyhow::Result<Vec<_>>>()?;
    if options.all_nodes {
        return Ok(places);
    }
    let count = places.len();
    let ready = places.into_iter().find(|place| place.fault.is_none());
    let none = || format!("none of the {count} Windows nodes can run the pod; --all-nodes says why");
    Ok(vec![ready.with_context(none)?])
}

fn place(node: Node, options: &Options) -> anyhow::Result<ProbeNode> {
    let build = node.metadata.labels.as_ref().and_then(|labels| Build::of_label(labels.get(LABEL)?));
    let is_cordoned = node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true));
    let name = node.metadata.name.clone().context("a node has no name")?;
    let names = Names { node: Some(&name), ..Names::default() };
    let image = image(options, build);
    let builds = build.zip(image.as_deref().and_then(Build::of_image)).filter(|(build, image)| !build.runs(*image));
    let not_checked = |text: &str, fix: &str| Diagnostic::new(&rules::NOT_CHECKED, text).with_fix(fix);
    let cordoned =
        || not_checked("is cordoned, so no pod is scheduled to it", "Uncordon it, or choose another node with --node.");
    let unknown = || not_checked("no image of Windows Server Core is known for its build", "Choose one with --image.");
    let found = not_ready(&node)
        .map(|why| rules::found(&rules::NODE_NOT_READY, format!("is not ready: {why}"), &names))
        .or_else(|| is_cordoned.then(cordoned))
        .or_else(|| image.is_none().then(unknown))
        .or_else(|| {
            let (build, image) = builds?;
            let text = format!("is of build {build} and does not run an image of build {image}");
            Some(Diagnostic::new(&rules::IMAGE_MISMATCH, text).with_severity(Severity::Error))
        });
    let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
    Ok(ProbeNode { node: Some(name), taints, image: image.unwrap_or_default(), fault: found })
}

async fn of_class(cluster: &LiveCluster, class: &str, options: &Options) -> anyhow::Result<ProbeNode> {
    let found: Option<RuntimeClass> = cluster.find(&format!("/apis/node.k8s.io/v1/runtimeclasses/{class}")).await?;
    let found = found.with_context(|| format!("there is no runtime class {class}"))?;
    let selector = found.scheduling.and_then(|scheduling| scheduling.node_selector).unwrap_or_default();
    let build = selector.get(LABEL).and_then(|build| Build::of_label(build));
    let image = image(options, build).with_context(|| {
        format!("runtime class {class} does not say the build of its nodes: choose an image with --image")
    })?;
    Ok(ProbeNode { node: None, taints: Vec::new(), image, fault: None })
}

/// The requested image, or Server Core for this build.
fn image(options: &Options, build: Option<Build>) -> Option<String> {
    let of_build = || Some(format!("{SERVER_CORE}:{}", build?.server_core()?));
    options.image.clone().or_else(of_build)
}
