//! The nodes that the steps of pods read, each once.

use std::collections::{BTreeMap, BTreeSet};

use gmsa_core::credspec::is_dns_subdomain;
use k8s_openapi::api::core::v1::Node;

use crate::shared::{
    pods::ClusterPod,
    unread::{Read, Unread},
    world::World,
};

/// The nodes that were read.
#[derive(Default)]
pub struct Nodes {
    /// `None` if they were not requested, or could not be read.
    pub windows: Option<Vec<Node>>,
    /// The nodes with pods: `None` for a node that does not exist.
    pub of_pods: BTreeMap<String, Read<Option<Node>>>,
    /// The runtime classes that isolate containers by Hyper-V, as far as they were read.
    pub hyper_v: BTreeSet<String>,
}

impl Nodes {
    /// Starts with the Windows nodes, if they were read.
    pub fn of(windows: Option<Vec<Node>>) -> Self {
        Self { windows, ..Self::default() }
    }

    /// Adds the nodes of these pods, and reads those that are not among the Windows nodes.
    pub async fn add(&mut self, world: &World, pods: impl Iterator<Item = &ClusterPod>) {
        let names: BTreeSet<&str> =
            pods.filter_map(ClusterPod::node_name).filter(|name| is_dns_subdomain(name)).collect();
        for name in names {
            let known = self.windows.iter().flatten().find(|node| node.metadata.name.as_deref() == Some(name)).cloned();
            let read = match known {
                Some(known) => Ok(Some(known)),
                None => world.find(&format!("/api/v1/nodes/{name}")).await,
            };
            self.of_pods.insert(name.to_owned(), read);
        }
    }

    /// Why the node of a pod could not be read.
    pub fn unread(&self) -> Option<&Unread> {
        self.of_pods.values().find_map(|read| read.as_ref().err())
    }
}
