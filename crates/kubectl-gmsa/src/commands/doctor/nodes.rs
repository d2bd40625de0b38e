//! Whether there are Windows nodes, and their builds.

use std::collections::BTreeMap;

use super::parts::{Judged, Parts};
use crate::shared::{
    rules,
    windows_build::{Build, LABEL},
};
use gmsa_core::diagnostic::{Check, Diagnostic, Severity};

pub(super) const NODES: &str = "Windows nodes";

pub(super) fn check(parts: &Parts) -> Judged<'_> {
    let nodes = parts.windows.as_ref()?;
    let mut builds: BTreeMap<&str, usize> = BTreeMap::new();
    for node in nodes {
        let build = node.metadata.labels.as_ref().and_then(|labels| labels.get(LABEL));
        *builds.entry(build.map_or("unknown build", String::as_str)).or_default() += 1;
    }
    let listed: Vec<String> = builds.iter().map(|(build, count)| format!("{count} of {build}")).collect();
    let listed = listed.join(", ");
    let known: Option<Vec<Build>> = builds.keys().map(|build| Build::of_label(build)).collect();
    let image = known.and_then(|builds| Build::image_for_all(builds.into_iter()));
    Ok(vec![match (builds.len(), image) {
        (0, _) if parts.has_linux_pods_alone() => Check::pass(NODES, "there are none, and no pod template needs one"),
        (0, _) => Check::breach(NODES, &rules::WINDOWS_NODES, "there are none"),
        (1, _) => Check::pass(NODES, listed),
        (_, Some(image)) => Check::pass(NODES, format!("{listed}; all of them run images of {image}")),
        (_, None) => {
            let several = Diagnostic::new(&rules::WINDOWS_BUILD, format!("of several builds: {listed}"));
            Check::found(NODES, several.with_severity(Severity::Warning))
        }
    }])
}
