//! The objects that pods refer to, in a cluster or a bundle.
//!
//! Invariants: each object is read once; failed reads are reported at the end, not as findings about pods.

use std::collections::{BTreeMap, BTreeSet};

use gmsa_core::diagnostic::{Diagnostic, Severity};
use k8s_openapi::api::{
    admissionregistration::v1::ServiceReference,
    core::v1::{Node, Pod},
};
use serde_json::Value;

use crate::shared::{
    admission::{Labels, Reviewed},
    output::first_five,
    rules,
    snapshot::Snapshot,
    unread::Unread,
    walk::{placement::NodeRequirements, scheduling::Nodes},
    webhook::{Configured, configured, replica, silent},
    windows_build::{Build, LABEL},
};

pub(super) struct LiveCluster {
    pub snapshot: Snapshot,
    webhooks: Option<Result<Vec<Configured>, NotRead>>,
    windows_nodes: Option<Result<Vec<Node>, NotRead>>,
    /// Failed reads, by cause.
    unread: BTreeMap<String, Vec<String>>,
}

/// A failed read.
#[derive(Clone, Copy, Debug)]
pub(super) struct NotRead;

impl LiveCluster {
    pub(super) fn new(snapshot: Snapshot) -> Self {
        Self { snapshot, webhooks: None, windows_nodes: None, unread: BTreeMap::new() }
    }

    /// Reads the webhooks for GMSA.
    pub(super) async fn read_webhooks(&mut self) {
        if self.webhooks.is_none() {
            let read = configured(&self.snapshot).await;
            self.webhooks = Some(read.map_err(|unread| self.unread(&unread, "the configurations of the webhooks")));
        }
    }

    /// The webhooks that review a pod with these labels in such a namespace, and whether they answer.
    pub(super) async fn reviewed(&self, namespace: &Labels, pod: &Labels) -> Reviewed {
        let Some(Ok(webhooks)) = &self.webhooks else { return Reviewed::UNSURE };
        let reviewing = webhooks.iter().filter(|found| found.is_of_pods() && found.reviews(namespace, pod));
        let mut reviewed = Reviewed::of(webhooks, namespace, pod);
        reviewed.silent = silent(&self.snapshot, reviewing).await.map(|(found, service)| {
            let ServiceReference { namespace, name, .. } = service;
            (format!("{namespace}/{name}"), found.webhook.failure_policy.as_deref() != Some("Ignore"))
        });
        reviewed
    }

    /// The builds of the Windows nodes that a pod may land on.
    pub(super) async fn builds(&mut self, required: &NodeRequirements) -> Option<BTreeSet<Build>> {
        if self.windows_nodes.is_none() {
            let read = self.snapshot.list(Nodes::WINDOWS).await;
            self.windows_nodes = Some(read.map_err(|unread| self.unread(&unread, "the builds of the nodes")));
        }
        let nodes = self.windows_nodes.as_ref()?.as_ref().ok()?.iter().filter(|node| required.allow(node));
        Some(nodes.filter_map(|node| Build::of_label(node.metadata.labels.as_ref()?.get(LABEL)?)).collect())
    }

    /// A replica of the webhook.
    pub(super) async fn replica(&mut self) -> Option<Pod> {
        let found = replica(&self.snapshot).await;
        found.map_err(|unread| self.unread(&unread, "the pods of the webhook")).ok().flatten()
    }

    /// The object at a path, if it exists.
    pub(super) async fn find(&mut self, path: &str, about: &str) -> Result<Option<Value>, NotRead> {
        let found = self.snapshot.find(path).await;
        found.map_err(|unread| self.unread(&unread, about))
    }

    /// The findings about failed reads. They do not affect the decisions about credential specs.
    pub(super) fn unchecked(self) -> impl Iterator<Item = Diagnostic> {
        self.unread.into_iter().map(|(cause, about)| {
            let found = Diagnostic::new(&rules::NOT_CHECKED, format!("could not be checked: {cause}"));
            Diagnostic { object: first_five(&about), ..found.with_severity(Severity::Note) }
        })
    }

    /// Records a failed read and its cause.
    fn unread(&mut self, unread: &Unread, about: &str) -> NotRead {
        let known = self.unread.entry(unread.cause.clone()).or_default();
        if known.iter().all(|known| known != about) {
            known.push(about.to_owned());
        }
        NotRead
    }
}
