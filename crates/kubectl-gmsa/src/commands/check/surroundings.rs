//! What a pod refers to beside credential specs, in the manifests and in the cluster: its service account, its runtime class, the
//! webhooks that review it and the nodes that run it.
//!
//! Invariants: each object of a cluster is read once; what could not be read is no finding about a pod, and is kept in
//! [`Surroundings::unchecked`].

use std::collections::{BTreeMap, BTreeSet, HashMap};

use k8s_openapi::api::core::v1::Node;
use serde_json::Value;

use crate::shared::windows_build::{Build, LABEL};
use crate::shared::{
    admission::{Labels, Reviewed},
    names,
    not_checked::Unread,
    snapshot::Snapshot,
    start::scheduling::Nodes,
    webhook::{Configured, configured, gives_hostnames},
};
use gmsa_cluster::{manifests::Document, resolver::live::collection};
use gmsa_core::{
    credspec::{GROUP, KIND, is_dns_subdomain},
    diagnostic::Severity,
};

/// Where service accounts, runtime classes and namespaces are looked up.
pub(super) struct Surroundings {
    files: FileObjects,
    live: Option<Snapshot>,
    webhooks: Option<Result<Vec<Configured>, NotRead>>,
    builds: Option<Result<BTreeSet<Build>, NotRead>>,
    /// What could not be read, by the causes.
    pub unchecked: BTreeMap<String, Vec<String>>,
}

/// The objects of the manifests.
#[derive(Default)]
struct FileObjects {
    /// The service accounts of each namespace.
    accounts: HashMap<String, Vec<String>>,
    classes: HashMap<String, Value>,
    /// The names of the credential specs.
    specs: BTreeSet<String>,
    /// The labels of namespaces.
    namespaces: HashMap<String, Labels>,
}

/// It could not be read, or there is no cluster to read it from.
#[derive(Clone, Copy, Debug)]
struct NotRead;

/// The runtime class of a pod.
pub(super) enum RuntimeClass {
    /// The pod names none.
    None,
    /// Neither the manifests nor the cluster say anything about it.
    Unknown,
    Missing,
    Found(Value),
}

impl RuntimeClass {
    fn text(&self, pointer: &str) -> Option<&str> {
        let Self::Found(class) = self else { return None };
        class.pointer(pointer).and_then(Value::as_str)
    }

    /// Its handler, where that isolates containers by Hyper-V: `runhcs-wcow-hypervisor` is that of containerd (containerd: cri, Windows).
    pub(super) fn hyper_v(&self) -> Option<&str> {
        self.text("/handler").filter(|handler| handler.contains("hypervisor"))
    }

    pub(super) fn is_hyper_v(&self) -> bool {
        self.hyper_v().is_some()
    }

    /// The build of the nodes that it selects.
    pub(super) fn selected_build(&self) -> Option<&str> {
        self.text(&format!("/scheduling/nodeSelector/{}", LABEL.replace('/', "~1")))
    }
}

impl Surroundings {
    /// Of manifests, and of a cluster where there is one; objects without a namespace are in `namespace`.
    pub(super) fn new(documents: &[Document], namespace: &str, live: Option<Snapshot>) -> Self {
        let mut files = FileObjects::default();
        for document in documents {
            let text = |pointer: &str| document.value.pointer(pointer).and_then(Value::as_str);
            let Some(name) = text("/metadata/name") else { continue };
            match (document.group(), document.kind.as_str()) {
                ("", "ServiceAccount") => {
                    let namespace = text("/metadata/namespace").unwrap_or(namespace);
                    files.accounts.entry(namespace.to_owned()).or_default().push(name.to_owned());
                }
                ("", "Namespace") => {
                    files.namespaces.insert(name.to_owned(), labels(&document.value));
                }
                ("node.k8s.io", "RuntimeClass") => {
                    files.classes.insert(name.to_owned(), document.value.clone());
                }
                (GROUP, KIND) if is_dns_subdomain(name) => drop(files.specs.insert(name.to_owned())),
                _ => {}
            }
        }
        Self { files, live, webhooks: None, builds: None, unchecked: BTreeMap::new() }
    }

    /// The credential spec that may be meant by the name of one that does not exist.
    pub(super) async fn nearest_spec(&self, name: &str) -> Option<String> {
        match &self.live {
            Some(snapshot) => names::nearest_in(snapshot, &collection(), name).await,
            None => names::nearest(name, self.files.specs.iter().map(String::as_str)).map(str::to_owned),
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
        let of_files = self.files.accounts.get(namespace);
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
        let Some(name) = name else { return RuntimeClass::None };
        if let Some(class) = self.files.classes.get(name) {
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
        let mut labels = self.files.namespaces.get(namespace).cloned().unwrap_or_default();
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

    /// Keeps what could not be read, and why.
    fn unread(&mut self, unread: &Unread, about: &str) -> NotRead {
        let known = self.unchecked.entry(unread.cause.clone()).or_default();
        if known.iter().all(|known| known != about) {
            known.push(about.to_owned());
        }
        NotRead
    }
}

/// The labels of an object.
pub(super) fn labels(object: &Value) -> Labels {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    labels.into_iter().flatten().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
