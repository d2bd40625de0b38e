//! The installation that the checks of `doctor` are about: the Services of the webhook and of the broker, their pods and Deployments.
//!
//! Invariant: there are no checks here; what is asked for twice is read once, by [`World`].

use std::{cell::RefCell, collections::BTreeSet};

use k8s_openapi::{
    api::{admissionregistration::v1::ServiceReference, core::v1::Namespace},
    apimachinery::pkg::version::Info,
};
use serde_json::Value;

use crate::shared::{
    configured::Configured,
    directory::Source,
    installer::Installer,
    kinds::Kind,
    unread::{Read, Remedy, Unread, because},
    walk::{
        events::Events,
        nodes::Nodes,
        workload::{Idle, WorkloadTree},
    },
    webhook::{broker, replica, without_namespace},
    world::World,
};
use gmsa_cluster::{kubernetes_version::is_at_least, resolver::live::collection};
use gmsa_core::{credspec::is_dns_label, diagnostic::Check};

/// The parts of the command line that lints read.
pub(super) struct DoctorInput {
    /// The namespace to fall back to without the right to list pods of the whole cluster.
    pub namespace: Option<String>,
    /// The directories to ask, until they are asked.
    pub directories: RefCell<Vec<Source>>,
}

/// The first minor version in which the chart uses match conditions, because they are on by default.
pub(super) const MATCH_CONDITIONS: u32 = 28;

/// Whether the API server is at least minor version `minor` of Kubernetes 1, as far as is known.
pub(super) async fn has_kubernetes(world: &World, minor: u32) -> bool {
    let version = world.get::<Info>("/version").await;
    version.map_or(true, |info| is_at_least(&info.git_version, minor))
}

/// The credential specs: none without the custom resource, which another check reports.
pub(super) async fn specs(world: &World) -> Read<Vec<Value>> {
    match world.list(&collection()).await {
        Err(unread) if unread.is_missing() => Ok(Vec::new()),
        read => read,
    }
}

pub(super) fn is_ours(found: &Configured) -> bool {
    found.installer != Installer::Aks
}

/// The Services of the webhooks of pods that AKS does not manage.
pub(super) async fn services(world: &World) -> Read<Vec<&ServiceReference>> {
    let mut seen = BTreeSet::new();
    let ours = world.webhooks().await?.iter().filter(|found| found.is_of_pods() && is_ours(found));
    let named = ours.filter_map(|found| found.webhook.client_config.service.as_ref());
    Ok(named.filter(|named| seen.insert((&named.namespace, &named.name))).collect())
}

/// The Service of the broker that the webhook names; `None` where it injects no sidecar.
pub(super) async fn broker_of(world: &World) -> Option<ServiceReference> {
    broker(&replica(world).await.ok().flatten()?, "tickets-broker")
}

/// The Deployment of a Service: the chart gives both the same name.
pub(super) struct OwnDeployment {
    /// `None` if it was deleted.
    pub namespace: Read<Option<Namespace>>,
    pub workload: Read<Option<WorkloadTree>>,
    pub events: Events,
    pub nodes: Nodes,
}

impl OwnDeployment {
    pub(super) async fn read(world: &World, service: &ServiceReference) -> Self {
        let ServiceReference { namespace, name, .. } = service;
        let path = format!("/api/v1/namespaces/{namespace}");
        let (of, workload) =
            tokio::join!(world.find(&path), WorkloadTree::find(world, namespace, Kind::Deployment, name));
        let known = workload.iter().flatten();
        let nodes = nodes(world, known.clone()).await;
        // Events are needed only if something fails.
        let events = if known.count() > 0 { Events::read(world, Some(namespace)).await } else { Events::default() };
        Self { namespace: of, workload, events, nodes }
    }

    pub(super) fn is_scaled_to_zero(&self) -> bool {
        self.workload.iter().flatten().any(|workload| workload.wanted() == (0, Idle::Scaled))
    }

    /// Why nothing can run in its namespace, as far as is known.
    pub(super) fn without_namespace(&self, part: &str, service: &ServiceReference) -> Option<(String, &'static str)> {
        without_namespace(part, service, self.namespace.as_ref().ok()?.as_ref())
    }
}

/// The Windows nodes, and the other nodes that pods of these workloads are on.
pub(super) async fn nodes(world: &World, workloads: impl Iterator<Item = &WorkloadTree>) -> Nodes {
    let mut nodes = Nodes { windows: world.windows_nodes().await.ok(), ..Nodes::default() };
    // Without the right to list nodes, reading a single node rarely works.
    if nodes.windows.is_some() {
        nodes.add(world, workloads.flat_map(WorkloadTree::pods)).await;
    }
    nodes
}

/// The only namespace whose pods and workloads are read, and why: the user may not list those of all.
pub(super) async fn narrowed(world: &World, asked: &DoctorInput) -> Option<(String, Unread)> {
    let namespace = asked.namespace.as_ref()?;
    let unread = world.pods(None).await.err().filter(Unread::is_forbidden)?;
    is_dns_label(namespace).then(|| (namespace.clone(), unread))
}

/// The line of a check about pods of all namespaces, if those of one namespace alone were read.
pub(super) fn other_namespaces(about: &'static str, narrowed: Option<&(String, Unread)>) -> Option<Check> {
    let (namespace, unread) = narrowed?;
    let cause = format!("other namespaces than {namespace}, {}", unread.cause);
    Some(because(about, &cause, Remedy::new(unread.remedy())))
}

/// Why nodes could not be read: a pod that is said to run may be on a node that is gone.
pub(super) async fn unread_nodes(world: &World, nodes: &Nodes) -> Option<Unread> {
    world.windows_nodes().await.err().or_else(|| nodes.of_pods.values().find_map(|read| read.as_ref().err()).cloned())
}

/// Whether the webhook is scaled to 0, or its namespace is deleted or being deleted: checks of its pods cannot find that cause.
pub(super) async fn is_webhook_away(world: &World) -> bool {
    for service in services(world).await.unwrap_or_default() {
        let own = OwnDeployment::read(world, service).await;
        if own.is_scaled_to_zero() || own.without_namespace("webhook", service).is_some() {
            return true;
        }
    }
    false
}
