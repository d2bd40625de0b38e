//! The objects around a pod, besides credential specs: its service account, its runtime class, the webhooks that review it and the
//! nodes that run it. Manifests take precedence over the cluster, except for the labels of a namespace that exists there.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

use super::{
    Options,
    live_cluster::{LiveCluster, NotRead},
    manifest_objects::{ManifestObjects, labels},
};
use crate::shared::{
    admission::{FactFinder, Labels, Reviewed},
    connection::Connection,
    credspecs, input, names,
    output::Report,
    snapshot::Snapshot,
    walk::{ending_namespace, placement::NodeRequirements},
    webhook::{gives_hostnames, lacks_tickets},
    windows_build::{Build, LABEL},
};
use gmsa_cluster::{
    authorizer::rbac::Rbac,
    manifests::Document,
    resolver::{live::collection, manifests::CredentialSpecs},
};
use gmsa_core::{
    admission::Denial,
    credspec::{SpecName, is_dns_subdomain, services},
    diagnostic::{Diagnostic, Location, Severity},
};

/// The source for the facts of decisions and for the objects around a pod.
pub(super) struct ClusterContext {
    pub facts: FactFinder,
    /// The default namespace.
    pub namespace: String,
    manifests: ManifestObjects,
    live: Option<LiveCluster>,
}

/// The runtime class of a pod.
pub(super) enum RuntimeClass {
    /// The pod names no class, or one that is not in the manifests and for which no cluster could be asked.
    Unknown,
    Missing,
    Found(Value),
}

impl RuntimeClass {
    fn text(&self, pointer: &str) -> Option<&str> {
        let Self::Found(class) = self else { return None };
        class.pointer(pointer).and_then(Value::as_str)
    }

    /// Its handler, if it isolates containers by Hyper-V: containerd's is `runhcs-wcow-hypervisor` (containerd: cri, Windows).
    pub(super) fn hyper_v(&self) -> Option<&str> {
        self.text("/handler").filter(|handler| handler.contains("hypervisor"))
    }

    /// The build of the nodes that it selects.
    pub(super) fn selected_build(&self) -> Option<&str> {
        self.text(&format!("/scheduling/nodeSelector/{}", LABEL.replace('/', "~1")))
    }
}

impl ClusterContext {
    /// Reads the facts from `documents` or `--state`, or from a cluster or a bundle. Problems in these objects go to the report.
    pub(super) async fn read(
        options: &Options,
        connection: &Connection,
        live: Option<Snapshot>,
        documents: &[Document],
        report: &mut Report,
    ) -> Self {
        let state =
            options.state.as_ref().map(|path| input::manifests_of(std::slice::from_ref(path), options.max_size));
        report.findings.extend(state.iter().flat_map(|state| state.problems.clone()));
        let facts_of = state.as_ref().map_or(documents, |state| &state.documents);
        let namespace = live.as_ref().map_or(connection.offline_namespace(), |live| &live.namespace).to_owned();
        let facts = match &live {
            Some(live) => FactFinder::of(live).await,
            // The linter reports more about a credential spec among the manifests.
            None => facts(facts_of, if state.is_none() { documents } else { &[] }, connection.timeout(), report),
        };
        let problems = state.as_ref().map_or(&report.findings, |state| &state.problems);
        let manifests = ManifestObjects::of(facts_of, &namespace, problems);
        Self { facts, namespace, manifests, live: live.map(LiveCluster::new) }
    }

    /// An unreadable file that may contain the missing credential spec.
    pub(super) fn unread_file(&self, denial: Option<&Denial>) -> Option<&str> {
        let is_missing = denial.is_some_and(|denial| matches!(denial, Denial::SpecMissing(_)));
        self.manifests.unread_file.as_deref().filter(|_| is_missing && self.live.is_none())
    }

    /// The most similar name of an existing credential spec.
    pub(super) async fn nearest_spec(&self, name: &str) -> Option<String> {
        match &self.live {
            Some(live) => names::nearest_in(&live.snapshot, &collection(), name).await,
            None => names::nearest(name, self.manifests.credential_specs.keys().map(String::as_str)).map(str::to_owned),
        }
    }

    /// The services that a credential spec lists for tickets: `Ok(None)` without one, `Err(None)` where it could not be read.
    pub(super) async fn services(&mut self, spec: &SpecName) -> Result<Option<String>, Option<Denial>> {
        if let Some(services) = self.manifests.credential_specs.get(spec.as_str()) {
            return Ok(services.clone());
        }
        let missing = || Err(Some(Denial::SpecMissing(spec.clone())));
        let Some(live) = &mut self.live else { return missing() };
        let found = live.find(&format!("{}/{spec}", collection()), &format!("credential spec {spec}")).await;
        found
            .map_err(|NotRead| None)?
            .as_ref()
            .map_or_else(missing, |spec| Ok(services::listed(spec).map(str::to_owned)))
    }

    /// Where a service account is missing, and the severity; `None` if it exists or may exist. Every namespace has `default`.
    pub(super) async fn lacks_service_account(
        &mut self,
        namespace: &str,
        name: &str,
    ) -> Option<(&'static str, Severity)> {
        if name == "default" || !is_dns_subdomain(namespace) || !is_dns_subdomain(name) {
            return None;
        }
        let of_files = self.manifests.service_accounts.get(namespace);
        if of_files.is_some_and(|known| known.iter().any(|known| known == name)) {
            return None;
        }
        let Some(live) = &mut self.live else {
            // Only if the manifests contain other accounts of the namespace. Even then another file may create it, so it is a warning.
            return of_files.map(|_| ("among the manifests", Severity::Warning));
        };
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}");
        let found = live.find(&path, &format!("service account {namespace}/{name}")).await;
        matches!(found, Ok(None)).then_some(("in the cluster", Severity::Error))
    }

    /// The runtime class of a name; `Unknown` if it is not in the manifests and there is no cluster to ask.
    pub(super) async fn runtime_class(&mut self, name: Option<&str>) -> RuntimeClass {
        let Some(name) = name else { return RuntimeClass::Unknown };
        if let Some(class) = self.manifests.runtime_classes.get(name) {
            return RuntimeClass::Found(class.clone());
        }
        let Some(live) = self.live.as_mut().filter(|_| is_dns_subdomain(name)) else { return RuntimeClass::Unknown };
        let path = format!("/apis/node.k8s.io/v1/runtimeclasses/{name}");
        match live.find(&path, &format!("runtime class {name}")).await {
            Err(NotRead) => RuntimeClass::Unknown,
            Ok(None) => RuntimeClass::Missing,
            Ok(Some(class)) => RuntimeClass::Found(class),
        }
    }

    /// The webhooks that review a pod with these labels.
    pub(super) async fn reviewed(&mut self, namespace: &str, pod: &Labels) -> Reviewed {
        let Some(live) = &mut self.live else { return Reviewed::ASSUMED };
        // Read first, because failed reads are reported in this order.
        live.read_webhooks().await;
        let mut labels = self.manifests.namespaces.get(namespace).cloned().unwrap_or_default();
        if is_dns_subdomain(namespace) {
            let path = format!("/api/v1/namespaces/{namespace}");
            match live.find(&path, &format!("namespace {namespace}")).await {
                Err(NotRead) => return Reviewed::UNSURE,
                Ok(found) => labels = found.as_ref().map_or(labels, self::labels),
            }
        }
        // The API server sets this label.
        labels.insert("kubernetes.io/metadata.name".to_owned(), namespace.to_owned());
        live.reviewed(&labels, pod).await
    }

    /// The finding that the namespace is being deleted, so no pod can be created in it.
    pub(super) async fn ending_namespace(&self, namespace: &str) -> Option<Diagnostic> {
        let live = self.live.as_ref().filter(|_| is_dns_subdomain(namespace))?;
        ending_namespace(&live.snapshot, namespace).await
    }

    /// The builds of the Windows nodes of the cluster that a pod may land on, if known.
    pub(super) async fn node_builds(&mut self, required: &NodeRequirements) -> Option<BTreeSet<Build>> {
        self.live.as_mut()?.builds(required).await
    }

    /// Whether the webhook of the cluster is installed without tickets, as far as is known.
    pub(super) async fn lacks_tickets(&mut self) -> bool {
        self.replica().await.is_some_and(|pod| lacks_tickets(&pod))
    }

    /// Whether the webhook of the cluster gives random host names to all pods, as far as is known.
    pub(super) async fn gives_hostnames(&mut self) -> bool {
        self.replica().await.is_some_and(|pod| gives_hostnames(&pod))
    }

    async fn replica(&mut self) -> Option<Pod> {
        self.live.as_mut()?.replica().await
    }

    /// The findings about failed reads of the cluster.
    pub(super) fn unchecked(self) -> impl Iterator<Item = Diagnostic> {
        self.live.into_iter().flat_map(LiveCluster::unchecked)
    }
}

/// The facts of the manifests. Objects that the API server would refuse go to the report, unless `linted` has an error for them already.
fn facts(documents: &[Document], linted: &[Document], timeout: Duration, report: &mut Report) -> FactFinder {
    let (specs, refused_specs) = CredentialSpecs::from_documents(documents);
    let (rbac, refused_rbac) = Rbac::from_documents(documents);
    let linted = linted.iter().filter(|document| credspecs::is_credential_spec(document));
    let is_error = |found: &Diagnostic| found.severity == Severity::Error;
    let linted = linted.filter(|document| credspecs::findings(document, &document.value()).iter().any(is_error));
    let linted: HashSet<_> = linted.map(|document| place(&document.location)).collect();
    let is_new = |found: &Diagnostic| found.location.as_ref().is_none_or(|at| !linted.contains(&place(at)));
    let refused = refused_specs.into_iter().filter(is_new).chain(refused_rbac);
    report.findings.extend(refused.map(|found| {
        let number = found.location.as_ref().and_then(|at| place(at).1);
        let object = number.map_or_else(String::new, |number| format!("document {number}"));
        let consequence = Some("the API server refuses the object, so it has no effect here");
        Diagnostic { object, consequence, ..found }
    }));
    FactFinder::new(Arc::new(specs), Arc::new(rbac), timeout)
}

/// The file of an object, and its index in the file.
fn place(location: &Location) -> (&str, Option<usize>) {
    (&location.file, location.position.map(|position| position.document))
}
