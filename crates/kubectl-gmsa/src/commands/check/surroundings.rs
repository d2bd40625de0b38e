//! What a pod refers to beside credential specs, in the manifests and in the cluster: its service account, its runtime class, the
//! webhooks that review it and the nodes that run it.
//!
//! Invariants: each object of a cluster is read once; what could not be read is no finding about a pod, and is kept in
//! [`Surroundings::unread`].

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use k8s_openapi::api::core::v1::Node;
use serde_json::Value;

use super::Options;
use crate::shared::{
    admission::{FactFinder, Labels, Reviewed},
    connection::Connection,
    credspecs, input, names,
    output::{Report, first_five},
    rules,
    snapshot::Snapshot,
    unread::Unread,
    walk::scheduling::Nodes,
    webhook::{Configured, configured, gives_hostnames},
    windows_build::{Build, LABEL},
};
use gmsa_cluster::{
    authorizer::rbac::Rbac,
    manifests::Document,
    resolver::{live::collection, manifests::CredentialSpecs},
};
use gmsa_core::{
    credspec::{GROUP, KIND, is_dns_subdomain},
    diagnostic::{Diagnostic, Location, Severity},
};

/// Where the facts of decisions, and the objects around a pod, are looked up.
pub(super) struct Surroundings {
    pub facts: FactFinder,
    /// Of objects that name none.
    pub namespace: String,
    live: Option<Snapshot>,
    /// The service accounts of the manifests, by namespace.
    accounts: HashMap<String, Vec<String>>,
    /// Their runtime classes.
    classes: HashMap<String, Value>,
    /// The names of their credential specs.
    specs: BTreeSet<String>,
    /// The labels of their namespaces.
    namespaces: HashMap<String, Labels>,
    webhooks: Option<Result<Vec<Configured>, NotRead>>,
    builds: Option<Result<BTreeSet<Build>, NotRead>>,
    /// What could not be read, by the causes.
    unread: BTreeMap<String, Vec<String>>,
}

/// It could not be read, or there is no cluster to read it from.
#[derive(Clone, Copy, Debug)]
struct NotRead;

/// The runtime class of a pod.
pub(super) enum RuntimeClass {
    /// The pod names none, or neither the manifests nor the cluster say anything about it.
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

impl Surroundings {
    /// Of `documents`, or what `--state` names in their place, and of a cluster or a bundle where there is one. What is wrong with the objects that
    /// are the facts goes to the report.
    pub(super) async fn read(
        options: &Options,
        connection: &Connection,
        live: Option<Snapshot>,
        documents: &[Document],
        report: &mut Report,
    ) -> Self {
        let state = options.state.as_ref().map(|path| input::manifests(std::slice::from_ref(path)));
        report.findings.extend(state.iter().flat_map(|state| state.problems.clone()));
        let documents = state.as_ref().map_or(documents, |state| &state.documents);
        let namespace = live.as_ref().map_or(connection.offline_namespace(), |live| &live.namespace).to_owned();
        let facts = if let Some(live) = &live {
            FactFinder::of(live).await
        } else {
            let (specs, refused_specs) = CredentialSpecs::from_documents(documents);
            let (rbac, refused_rbac) = Rbac::from_documents(documents);
            // The linter reports more about a credential spec among the manifests.
            let linted = if state.is_none() { documents } else { &[] };
            let linted = linted.iter().filter(|document| credspecs::is_credential_spec(document));
            let is_error = |found: Diagnostic| found.severity == Severity::Error;
            let linted = linted.filter(|document| credspecs::findings(document).any(is_error));
            let linted: HashSet<_> = linted.map(|document| place(&document.location)).collect();
            let is_new = |found: &Diagnostic| found.location.as_ref().is_none_or(|at| !linted.contains(&place(at)));
            let refused = refused_specs.into_iter().filter(is_new).chain(refused_rbac);
            report.findings.extend(refused.map(|found| {
                let number = found.location.as_ref().and_then(|at| place(at).1);
                let object = number.map_or_else(String::new, |number| format!("document {number}"));
                let consequence = Some("the API server refuses the object, so it has no effect here");
                Diagnostic { object, consequence, ..found }
            }));
            FactFinder::new(Arc::new(specs), Arc::new(rbac), connection.timeout())
        };
        let (mut accounts, mut classes) = (HashMap::<String, Vec<String>>::new(), HashMap::new());
        let (mut specs, mut namespaces) = (BTreeSet::new(), HashMap::new());
        for document in documents {
            let text = |pointer: &str| document.value.pointer(pointer).and_then(Value::as_str);
            let Some(name) = text("/metadata/name").map(str::to_owned) else { continue };
            match (document.group(), document.kind.as_str()) {
                ("", "ServiceAccount") => {
                    let namespace = text("/metadata/namespace").unwrap_or(&namespace);
                    accounts.entry(namespace.to_owned()).or_default().push(name);
                }
                ("", "Namespace") => drop(namespaces.insert(name, labels(&document.value))),
                ("node.k8s.io", "RuntimeClass") => drop(classes.insert(name, document.value.clone())),
                (GROUP, KIND) if is_dns_subdomain(&name) => drop(specs.insert(name)),
                _ => {}
            }
        }
        let (webhooks, builds, unread) = (None, None, BTreeMap::new());
        Self { facts, namespace, live, accounts, classes, specs, namespaces, webhooks, builds, unread }
    }

    /// The credential spec that may be meant by the name of one that does not exist.
    pub(super) async fn nearest_spec(&self, name: &str) -> Option<String> {
        match &self.live {
            Some(snapshot) => names::nearest_in(snapshot, &collection(), name).await,
            None => names::nearest(name, self.specs.iter().map(String::as_str)).map(str::to_owned),
        }
    }

    /// Where a service account is missing, and how severe that is; `None` where it exists, or nothing says otherwise. Every
    /// namespace gets `default` by itself.
    pub(super) async fn lacks_service_account(
        &mut self,
        namespace: &str,
        name: &str,
    ) -> Option<(&'static str, Severity)> {
        if name == "default" || !is_dns_subdomain(namespace) || !is_dns_subdomain(name) {
            return None;
        }
        let of_files = self.accounts.get(namespace);
        if of_files.is_some_and(|known| known.iter().any(|known| known == name)) {
            return None;
        }
        if self.live.is_none() {
            // Only where the manifests hold others of its namespace; even then another file may create it.
            return of_files.map(|_| ("among the manifests", Severity::Warning));
        }
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}");
        let found = self.find(&path, &format!("service account {namespace}/{name}")).await;
        matches!(found, Ok(None)).then_some(("in the cluster", Severity::Error))
    }

    /// The runtime class of a name; nothing is said of one that is neither in the manifests nor asked of a cluster.
    pub(super) async fn runtime_class(&mut self, name: Option<&str>) -> RuntimeClass {
        let Some(name) = name else { return RuntimeClass::Unknown };
        if let Some(class) = self.classes.get(name) {
            return RuntimeClass::Found(class.clone());
        }
        if !is_dns_subdomain(name) {
            return RuntimeClass::Unknown;
        }
        let path = format!("/apis/node.k8s.io/v1/runtimeclasses/{name}");
        match self.find(&path, &format!("runtime class {name}")).await {
            Err(NotRead) => RuntimeClass::Unknown,
            Ok(None) => RuntimeClass::Missing,
            Ok(Some(class)) => RuntimeClass::Found(class),
        }
    }

    /// The webhooks that review a pod with these labels.
    pub(super) async fn reviewed(&mut self, namespace: &str, pod: &Labels) -> Reviewed {
        let Some(live) = &self.live else { return Reviewed::ASSUMED };
        if self.webhooks.is_none() {
            let read = configured(live).await;
            self.webhooks = Some(read.map_err(|unread| self.unread(&unread, "the configurations of the webhooks")));
        }
        let mut labels = self.namespaces.get(namespace).cloned().unwrap_or_default();
        if is_dns_subdomain(namespace) {
            let path = format!("/api/v1/namespaces/{namespace}");
            match self.find(&path, &format!("namespace {namespace}")).await {
                Err(NotRead) => return Reviewed::UNSURE,
                Ok(found) => labels = found.as_ref().map_or(labels, self::labels),
            }
        }
        // The API server sets it.
        labels.insert("kubernetes.io/metadata.name".to_owned(), namespace.to_owned());
        let webhooks = self.webhooks.as_ref().and_then(|webhooks| webhooks.as_ref().ok());
        webhooks.map_or(Reviewed::UNSURE, |webhooks| Reviewed::of(webhooks, &labels, pod))
    }

    /// The builds of the Windows nodes of the cluster, where they are known.
    pub(super) async fn node_builds(&mut self) -> Option<&BTreeSet<Build>> {
        if self.builds.is_none() {
            let read = self.live.as_ref()?.list(Nodes::WINDOWS).await;
            let build = |node: &Node| Build::of_label(node.metadata.labels.as_ref()?.get(LABEL)?);
            let read = read.map(|nodes: Vec<Node>| nodes.iter().filter_map(build).collect());
            self.builds = Some(read.map_err(|unread| self.unread(&unread, "the builds of the nodes")));
        }
        self.builds.as_ref()?.as_ref().ok()
    }

    /// Whether the webhook of the cluster gives random host names to all pods, as far as is known.
    pub(super) async fn gives_hostnames(&self) -> bool {
        match &self.live {
            Some(live) => gives_hostnames(live).await,
            None => false,
        }
    }

    /// The object of a path, where there is one.
    async fn find(&mut self, path: &str, about: &str) -> Result<Option<Value>, NotRead> {
        let found = self.live.as_ref().ok_or(NotRead)?.find(path).await;
        found.map_err(|unread| self.unread(&unread, about))
    }

    /// What could not be read. It is beside the question: the answers about credential specs hold.
    pub(super) fn unchecked(self) -> impl Iterator<Item = Diagnostic> {
        self.unread.into_iter().map(|(cause, about)| {
            let found = Diagnostic::new(&rules::NOT_CHECKED, format!("could not be checked: {cause}"));
            Diagnostic { object: first_five(&about), ..found.with_severity(Severity::Note) }
        })
    }

    /// Keeps what could not be read, and why.
    fn unread(&mut self, unread: &Unread, about: &str) -> NotRead {
        let known = self.unread.entry(unread.cause.clone()).or_default();
        if known.iter().all(|known| known != about) {
            known.push(about.to_owned());
        }
        NotRead
    }
}

/// The file of an object, and its number there.
fn place(location: &Location) -> (&str, Option<usize>) {
    (&location.file, location.position.map(|position| position.document))
}

/// The labels of an object.
pub(super) fn labels(object: &Value) -> Labels {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    labels.into_iter().flatten().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
