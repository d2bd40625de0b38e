//! Whether there are Windows nodes, and their builds.

use std::collections::BTreeMap;

use super::install::{DoctorInput, broker_of, narrowed};
use crate::shared::{
    rules,
    unread::Read,
    walk::workload::{WorkloadTree, Workloads},
    windows_build::{Build, LABEL},
    world::World,
};
use gmsa_core::{
    admission::pod::Pod,
    diagnostic::{Check, Diagnostic, Severity},
};

pub(super) const NODES: &str = "Windows nodes";

pub(super) async fn check(world: &World, asked: &DoctorInput) -> Read<Vec<Check>> {
    let nodes = world.windows_nodes().await?;
    let mut builds: BTreeMap<&str, usize> = BTreeMap::new();
    for node in &nodes {
        let build = node.metadata.labels.as_ref().and_then(|labels| labels.get(LABEL));
        *builds.entry(build.map_or("unknown build", String::as_str)).or_default() += 1;
    }
    let listed: Vec<String> = builds.iter().map(|(build, count)| format!("{count} of {build}")).collect();
    let listed = listed.join(", ");
    let known: Option<Vec<Build>> = builds.keys().map(|build| Build::of_label(build)).collect();
    let image = known.and_then(|builds| Build::image_for_all(builds.into_iter()));
    let needs_none = builds.is_empty() && has_linux_pods_alone(world, asked).await;
    Ok(vec![match (builds.len(), image) {
        (0, _) if needs_none => Check::pass(NODES, "there are none, and no pod template needs one"),
        (0, _) => Check::breach(NODES, &rules::WINDOWS_NODES, "there are none"),
        (1, _) => Check::pass(NODES, listed),
        (_, Some(image)) => Check::pass(NODES, format!("{listed}; all of them run images of {image}")),
        (_, None) => {
            let several = Diagnostic::new(&rules::WINDOWS_BUILD, format!("of several builds: {listed}"));
            Check::found(NODES, several.with_severity(Severity::Warning))
        }
    }])
}

/// Whether the webhook gives tickets to Linux pods, and no pod template uses GMSA on Windows.
async fn has_linux_pods_alone(world: &World, asked: &DoctorInput) -> bool {
    if broker_of(world).await.is_none() {
        return false;
    }
    let narrowed = narrowed(world, asked).await;
    let scope = narrowed.as_ref().map(|(namespace, _)| namespace.as_str());
    let Workloads { known, unread } = Workloads::read(world, scope).await;
    let uses_gmsa = |workload: &WorkloadTree| workload.template.pod().is_none_or(Pod::uses_gmsa);
    unread.is_empty() && !known.iter().any(uses_gmsa)
}
