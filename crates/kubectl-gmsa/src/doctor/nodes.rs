//! The Windows nodes: whether there are any, and of which builds.

use std::collections::BTreeMap;

use super::{Line, text};
use crate::connect::Cluster;

const NODES: &str = "Windows nodes";

pub(super) async fn look(cluster: &Cluster, lines: &mut Vec<Line>) {
    let nodes = match cluster.list("/api/v1/nodes?labelSelector=kubernetes.io%2Fos%3Dwindows").await {
        Ok(nodes) => nodes,
        Err(error) => return lines.push(Line::unknown(NODES, &error)),
    };
    let mut builds: BTreeMap<&str, usize> = BTreeMap::new();
    for node in &nodes {
        *builds.entry(text(node, "/metadata/labels/node.kubernetes.io~1windows-build")).or_default() += 1;
    }
    let listed: Vec<String> = builds
        .iter()
        .map(|(build, count)| format!("{count} of {}", if build.is_empty() { "unknown build" } else { build }))
        .collect();
    lines.push(match builds.len() {
        0 => Line::warn(NODES, "there are none", "pods that use GMSA stay Pending until one joins"),
        1 => Line::pass(NODES, listed.join(", ")),
        _ => Line::warn(
            NODES,
            format!("of several builds: {}", listed.join(", ")),
            "select node.kubernetes.io/windows-build in every Windows pod, or use runtime classes",
        ),
    });
}
