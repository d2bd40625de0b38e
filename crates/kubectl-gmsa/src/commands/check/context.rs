//! The objects around a pod, besides credential specs: its service account, its runtime class, the webhooks that review it and the
//! nodes that run it.
//!
//! Invariants: what the webhooks decide by, contents and permissions, comes from one source: with `--live` or `--from` the cluster, which is what
//! they would read now, otherwise the manifests. For all else manifests take precedence over the cluster, because they are about to be applied:
//! service accounts, runtime classes, and the services for which the owner of a credential spec allows tickets. The exception is the labels of a
//! namespace that exists. Failed reads are reported at the end, not as findings about pods.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use k8s_openapi::api::{admissionregistration::v1::ServiceReference, core::v1};
use serde_json::Value;

use super::Options;
use crate::shared::{
    admission::{self, Labels, Reviewed},
    connection::Connection,
    credspecs, input,
    output::{Report, first_five},
    rules,
    unread::Read,
    walk::nodes::{Labelled, NodeRequirements, build},
    webhook::{replica, silent},
    windows_build::Build,
    world::World,
};
use gmsa_cluster::{
    authorizer::rbac::Rbac,
    manifests::Document,
    resolver::{live::collection, manifests::CredentialSpecs},
};
use gmsa_core::{
    admission::Denial,
    credspec::{GROUP, KIND, is_dns_subdomain},
    diagnostic::{Diagnostic, Location, Severity},
};

/// The world that pods are checked in, and what of it could not be read.
pub(super) struct CheckContext {
    pub world: World,
    /// The labels of the namespaces among the manifests. Those of the cluster take precedence.
    namespaces: BTreeMap<String, Labels>,
    /// The first file that could not be read, which may hold more.
    unread_file: Option<String>,
    /// Failed reads, by cause. They do not affect the decisions about credential specs.
    unread: RefCell<BTreeMap<String, Vec<String>>>,
}

/// The objects of manifests that pods refer to, by their path in the API; those without a namespace are in `namespace`.
fn referred(documents: &[Document], namespace: &str) -> BTreeMap<String, Value> {
    let placed = |document: &Document| {
        let list = |namespace: &str| match (document.group(), &*document.kind) {
            ("", "ServiceAccount") => Some(format!("/api/v1/namespaces/{namespace}/serviceaccounts")),
            ("node.k8s.io", "RuntimeClass") => Some("/apis/node.k8s.io/v1/runtimeclasses".to_owned()),
            (GROUP, KIND) => Some(collection()),
            _ => None,
        };
        list("")?;
        let value = document.value();
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
        let name = text("/metadata/name").filter(|name| is_dns_subdomain(name))?;
        let path = format!("{}/{name}", list(text("/metadata/namespace").unwrap_or(namespace))?);
        Some((path, value))
    };
    documents.iter().filter_map(placed).collect()
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
        let read =
            |path| input::manifests(std::slice::from_ref(path), "check -f FILE --state -", Some(options.max_size));
        let state = options.state.as_ref().map(read);
        report.findings.extend(state.iter().flat_map(|state| state.problems.clone()));
        let facts_of = state.as_ref().map_or(documents, |state| &state.documents);
        let mut world = cluster.unwrap_or_else(|| {
            // The linter reports more about a credential spec among the manifests.
            let (specs, rbac) = facts(facts_of, if state.is_none() { documents } else { &[] }, report);
            World::of_files(specs, rbac, connection.asked_namespace().unwrap_or("default").to_owned())
        });
        let problems = state.as_ref().map_or(&report.findings, |state| &state.problems);
        let mut problems = problems.as_slice().iter().filter(|found| *found.rule == rules::UNREADABLE);
        let unread_file = problems.find_map(|found| Some(found.location.as_ref()?.file.to_string()));
        world.files = Rc::new(referred(facts_of, &world.namespace));
        let namespaces = facts_of.iter().filter(|found| (found.group(), &*found.kind) == ("", "Namespace"));
        let labelled = namespaces.map(Document::value).filter_map(|found| {
            Some((found.pointer("/metadata/name")?.as_str()?.to_owned(), admission::labels(&found)))
        });
        Self { world, namespaces: labelled.collect(), unread_file, unread: RefCell::default() }
    }

    /// An unreadable file that may contain the missing credential spec.
    pub(super) fn unread_file(&self, denial: Option<&Denial>) -> Option<&str> {
        let is_missing = denial.is_some_and(|denial| matches!(denial, Denial::SpecMissing(_)));
        self.unread_file.as_deref().filter(|_| is_missing && !self.world.has_cluster())
    }

    /// The webhooks that review a pod with these labels, and whether they answer.
    pub(super) async fn reviewed(&self, namespace: &str, pod: &Labels) -> Reviewed {
        if !self.world.has_cluster() {
            return Reviewed::ASSUMED;
        }
        // Read first, because failed reads are reported in this order.
        let webhooks = self.read(self.world.webhooks().await, "the configurations of the webhooks");
        let found = self.read(self.world.namespace(namespace).await, &format!("namespace {namespace}"));
        let (Ok(webhooks), Ok(found)) = (webhooks, found) else {
            return Reviewed { is_unsure: true, ..Reviewed::ASSUMED };
        };
        let in_files = || self.namespaces.get(namespace).cloned();
        let labels = found.map(|found| found.metadata.labels.unwrap_or_default()).or_else(in_files);
        let mut labels = labels.unwrap_or_default();
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

    /// The builds of the Windows nodes of the cluster that a pod may land on, if known.
    pub(super) async fn node_builds(&self, required: &NodeRequirements) -> Option<BTreeSet<Build>> {
        let nodes = self.read(self.world.windows_nodes().await, "the builds of the nodes").ok()?;
        Some(nodes.iter().filter(|node| required.allow(&Labelled(node))).filter_map(build).collect())
    }

    /// Whether a replica of the cluster's webhook has this property, as far as is known.
    pub(super) async fn replica_is(&self, property: fn(&v1::Pod) -> bool) -> bool {
        self.read(replica(&self.world).await, "the pods of the webhook")
            .is_ok_and(|pod| pod.is_some_and(|pod| property(&pod)))
    }

    /// Keeps a failed read of a cluster for the report.
    pub(super) fn read<T>(&self, read: Read<T>, about: &str) -> Read<T> {
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
    let is_error = |found: &Diagnostic| found.severity == Severity::Error;
    let is_new = |found: &Diagnostic| {
        let is_same =
            |document: &&Document| found.location.as_ref().is_some_and(|at| place(at) == place(&document.location));
        let linted = linted.iter().filter(is_same).filter(|document| credspecs::is_credential_spec(document));
        !linted.flat_map(|document| credspecs::findings(document, &document.value())).any(|found| is_error(&found))
    };
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
