//! The objects around a pod, besides credential specs: its service account, its runtime class, the webhooks that review it and the
//! nodes that run it.
//!
//! Invariants: manifests take precedence over the cluster, except for the labels of a namespace that exists there. Failed reads are
//! reported at the end, not as findings about pods.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
};

use k8s_openapi::api::{admissionregistration::v1::ServiceReference, core::v1};
use serde_json::Value;

use super::{Options, template::CheckedPod};
use crate::shared::{
    admission::{Labels, Reviewed, labels},
    connection::Connection,
    credspecs, input, names,
    output::{Report, first_five},
    rules::{self, Fix, Names},
    unread::Read,
    walk::{ending_namespace, placement::NodeRequirements},
    webhook::{replica, silent},
    windows_build::{Build, LABEL, is_hyper_v},
    world::{World, is_unchecked},
};
use gmsa_cluster::{
    authorizer::rbac::Rbac,
    manifests::Document,
    resolver::{live::collection, manifests::CredentialSpecs},
};
use gmsa_core::{
    admission::{
        Denial,
        pod::{Pod, Slot},
    },
    credspec::{GROUP, KIND, SpecName, is_dns_subdomain, services},
    diagnostic::{Diagnostic, Location, Rule, Severity},
    pointer::escape,
};

/// The kinds, each with its group.
const KINDS: [(&str, &str); 4] =
    [("", "ServiceAccount"), ("", "Namespace"), ("node.k8s.io", "RuntimeClass"), (GROUP, KIND)];

#[derive(Default)]
struct ManifestObjects {
    /// The names of service accounts, by namespace.
    service_accounts: HashMap<String, Vec<String>>,
    runtime_classes: HashMap<String, Value>,
    /// Each with its annotation for tickets.
    credential_specs: BTreeMap<String, Option<String>>,
    /// The labels of the namespaces.
    namespaces: HashMap<String, Labels>,
    /// The first file that could not be read, which may hold more.
    unread_file: Option<String>,
}

impl ManifestObjects {
    /// Collects them; objects without a namespace are in `namespace`.
    fn of(documents: &[Document], namespace: &str, unread_file: Option<String>) -> Self {
        let mut found = Self { unread_file, ..Self::default() };
        for document in documents.iter().filter(|document| KINDS.contains(&(document.group(), &*document.kind))) {
            found.add(document, namespace);
        }
        found
    }

    fn add(&mut self, document: &Document, namespace: &str) {
        let value = document.value();
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
        let Some(name) = text("/metadata/name").map(str::to_owned) else { return };
        match document.kind.as_str() {
            "ServiceAccount" => {
                let namespace = text("/metadata/namespace").unwrap_or(namespace).to_owned();
                self.service_accounts.entry(namespace).or_default().push(name);
            }
            "Namespace" => drop(self.namespaces.insert(name, labels(&value))),
            "RuntimeClass" => drop(self.runtime_classes.insert(name, value)),
            _ if is_dns_subdomain(&name) => {
                drop(self.credential_specs.insert(name, services::listed(&value).map(str::to_owned)));
            }
            _ => {}
        }
    }
}

/// The world that pods are checked in, and what of it could not be read.
pub(super) struct CheckContext {
    pub world: World,
    files: ManifestObjects,
    /// Failed reads, by cause. They do not affect the decisions about credential specs.
    unread: RefCell<BTreeMap<String, Vec<String>>>,
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

    /// Its handler, if it isolates containers by Hyper-V.
    pub(super) fn hyper_v(&self) -> Option<&str> {
        let Self::Found(class) = self else { return None };
        self.text("/handler").filter(|_| is_hyper_v(class))
    }

    /// The build of the nodes that it selects.
    pub(super) fn selected_build(&self) -> Option<&str> {
        self.text(&format!("/scheduling/nodeSelector/{}", escape(LABEL)))
    }
}

impl CheckContext {
    /// Reads the facts from `documents` or `--state`, or from a cluster or a bundle. Problems in these objects go to the report.
    pub(super) fn of(
        options: &Options,
        connection: &Connection,
        cluster: Option<World>,
        documents: &[Document],
        report: &mut Report,
    ) -> Self {
        let state =
            options.state.as_ref().map(|path| input::manifests_of(std::slice::from_ref(path), options.max_size));
        report.findings.extend(state.iter().flat_map(|state| state.problems.clone()));
        let facts_of = state.as_ref().map_or(documents, |state| &state.documents);
        let world = cluster.unwrap_or_else(|| {
            // The linter reports more about a credential spec among the manifests.
            let (specs, rbac) = facts(facts_of, if state.is_none() { documents } else { &[] }, report);
            World::of_files(specs, rbac, connection.offline_namespace().to_owned())
        });
        let problems = state.as_ref().map_or(&report.findings, |state| &state.problems);
        let mut problems = problems.as_slice().iter().filter(|found| *found.rule == rules::UNREADABLE);
        let unread_file = problems.find_map(|found| Some(found.location.as_ref()?.file.to_string()));
        let files = ManifestObjects::of(facts_of, &world.namespace, unread_file);
        Self { world, files, unread: RefCell::default() }
    }

    /// An unreadable file that may contain the missing credential spec.
    pub(super) fn unread_file(&self, denial: Option<&Denial>) -> Option<&str> {
        let is_missing = denial.is_some_and(|denial| matches!(denial, Denial::SpecMissing(_)));
        self.files.unread_file.as_deref().filter(|_| is_missing && !self.world.has_cluster())
    }

    /// The most similar name of an existing credential spec.
    pub(super) async fn nearest_spec(&self, name: &str) -> Option<String> {
        if self.world.has_cluster() {
            return names::nearest_in(&self.world, &collection(), name).await;
        }
        names::nearest(name, self.files.credential_specs.keys().map(String::as_str)).map(str::to_owned)
    }

    /// The services that a credential spec lists for tickets: `Ok(None)` without one, `Err(None)` where it could not be read.
    pub(super) async fn services(&self, spec: &SpecName) -> Result<Option<String>, Option<Denial>> {
        if let Some(services) = self.files.credential_specs.get(spec.as_str()) {
            return Ok(services.clone());
        }
        let missing = || Err(Some(Denial::SpecMissing(spec.clone())));
        if !self.world.has_cluster() {
            return missing();
        }
        let found = self.find(&format!("{}/{spec}", collection()), &format!("credential spec {spec}")).await;
        found.map_err(|_| None)?.as_ref().map_or_else(missing, |spec| Ok(services::listed(spec).map(str::to_owned)))
    }

    /// Where a service account is missing, and the severity; `None` if it exists or may exist. Every namespace has `default`.
    pub(super) async fn lacks_service_account(&self, namespace: &str, name: &str) -> Option<(&'static str, Severity)> {
        if name == "default" || !is_dns_subdomain(namespace) || !is_dns_subdomain(name) {
            return None;
        }
        let of_files = self.files.service_accounts.get(namespace);
        if of_files.is_some_and(|known| known.iter().any(|known| known == name)) {
            return None;
        }
        if !self.world.has_cluster() {
            // Only if the manifests contain other accounts of the namespace. Even then another file may create it, so it is a warning.
            return of_files.map(|_| ("among the manifests", Severity::Warning));
        }
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}");
        let found = self.find(&path, &format!("service account {namespace}/{name}")).await;
        matches!(found, Ok(None)).then_some(("in the cluster", Severity::Error))
    }

    /// The runtime class of a name; `Unknown` if it is not in the manifests and there is no cluster to ask.
    pub(super) async fn runtime_class(&self, name: Option<&str>) -> RuntimeClass {
        let Some(name) = name else { return RuntimeClass::Unknown };
        if let Some(class) = self.files.runtime_classes.get(name) {
            return RuntimeClass::Found(class.clone());
        }
        if !is_dns_subdomain(name) {
            return RuntimeClass::Unknown;
        }
        let path = format!("/apis/node.k8s.io/v1/runtimeclasses/{name}");
        match self.find(&path, &format!("runtime class {name}")).await {
            Err(_) => RuntimeClass::Unknown,
            Ok(None) => RuntimeClass::Missing,
            Ok(Some(class)) => RuntimeClass::Found(class),
        }
    }

    /// The webhooks that review a pod with these labels, and whether they answer.
    pub(super) async fn reviewed(&self, namespace: &str, pod: &Labels) -> Reviewed {
        if !self.world.has_cluster() {
            return Reviewed::ASSUMED;
        }
        // Read first, because failed reads are reported in this order.
        let webhooks = self.read(self.world.webhooks().await, "the configurations of the webhooks");
        let mut labels = self.files.namespaces.get(namespace).cloned().unwrap_or_default();
        if is_dns_subdomain(namespace) {
            let path = format!("/api/v1/namespaces/{namespace}");
            match self.find(&path, &format!("namespace {namespace}")).await {
                Err(_) => return Reviewed::UNSURE,
                Ok(found) => labels = found.as_ref().map_or(labels, self::labels),
            }
        }
        let Ok(webhooks) = webhooks else { return Reviewed::UNSURE };
        // The API server sets this label.
        labels.insert("kubernetes.io/metadata.name".to_owned(), namespace.to_owned());
        let reviewing = webhooks.iter().filter(|found| found.is_of_pods() && found.reviews(&labels, pod));
        let mut reviewed = Reviewed::of(webhooks, &labels, pod);
        reviewed.silent = silent(&self.world, reviewing).await.map(|(found, service)| {
            let ServiceReference { namespace, name, .. } = service;
            (format!("{namespace}/{name}"), found.webhook.failure_policy.as_deref() != Some("Ignore"))
        });
        reviewed
    }

    /// The finding that the namespace is being deleted, so no pod can be created in it.
    pub(super) async fn ending_namespace(&self, namespace: &str) -> Option<Diagnostic> {
        if !self.world.has_cluster() || !is_dns_subdomain(namespace) {
            return None;
        }
        ending_namespace(&self.world, namespace).await
    }

    /// The builds of the Windows nodes of the cluster that a pod may land on, if known.
    pub(super) async fn node_builds(&self, required: &NodeRequirements) -> Option<BTreeSet<Build>> {
        let nodes = self.read(self.world.windows_nodes().await, "the builds of the nodes").ok()?;
        let nodes = nodes.iter().filter(|node| required.allow(node));
        Some(nodes.filter_map(|node| Build::of_label(node.metadata.labels.as_ref()?.get(LABEL)?)).collect())
    }

    /// Whether a replica of the cluster's webhook has this property, as far as is known.
    pub(super) async fn replica_is(&self, property: fn(&v1::Pod) -> bool) -> bool {
        self.read(replica(&self.world).await, "the pods of the webhook")
            .is_ok_and(|pod| pod.is_some_and(|pod| property(&pod)))
    }

    /// The object at a path, if it exists. Without a cluster nothing is read.
    async fn find(&self, path: &str, about: &str) -> Read<Option<Value>> {
        self.read(self.world.find(path).await, about)
    }

    /// Keeps a failed read of a cluster for the report.
    fn read<T>(&self, read: Read<T>, about: &str) -> Read<T> {
        if let Err(unread) = read.as_ref()
            && self.world.has_cluster()
        {
            let mut all = self.unread.borrow_mut();
            let known = all.entry(unread.cause.clone()).or_default();
            if known.iter().all(|known| known != about) {
                known.push(about.to_owned());
            }
        }
        read
    }

    /// The findings about failed reads of the cluster.
    pub(super) fn unchecked(self) -> impl Iterator<Item = Diagnostic> {
        self.unread.into_inner().into_iter().map(|(cause, about)| {
            let found = Diagnostic::new(&rules::NOT_CHECKED, format!("could not be checked: {cause}"));
            Diagnostic { object: first_five(&about), ..found.with_severity(Severity::Note) }
        })
    }
}

/// The facts of the manifests. Objects that the API server would refuse go to the report, unless `linted` has an error for them already.
fn facts(documents: &[Document], linted: &[Document], report: &mut Report) -> (CredentialSpecs, Rbac) {
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
    (specs, rbac)
}

/// The file of an object, and its index in the file.
fn place(location: &Location) -> (&str, Option<usize>) {
    (&location.file, location.position.map(|position| position.document))
}

/// The rule of a denial: a failed look-up denies nothing.
pub(super) fn rule(denial: &Denial) -> &'static Rule {
    if is_unchecked(denial) { &rules::NOT_CHECKED } else { denial.rule() }
}

/// The finding about a denial of a slot, or of the pod. `nearest` is the name that may be intended.
pub(super) fn denied(
    checked: &CheckedPod<'_>,
    pod: &Pod,
    (slot, nearest): (Option<&Slot<'_>>, Option<&str>),
    at: &str,
    denial: &Denial,
    world: &World,
) -> Diagnostic {
    let (namespace, rule) = (&checked.namespace, denial.rule());
    let names = Names {
        namespace: Some(namespace),
        service_account: Some(pod.service_account()),
        pod: Some(pod),
        slot,
        nearest,
        ..Names::of_denial(denial)
    };
    let fix = match world.lacking(denial, namespace) {
        Some((_, remedy)) => remedy.text,
        None => rules::fix(rule, &names).and_then(Fix::in_manifest).unwrap_or_else(|| rule.remedy.to_owned()),
    };
    checked.finding(self::rule(denial), at, denial.to_string()).with_fix(fix)
}
