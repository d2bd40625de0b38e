//! `who-can`: the service accounts, users and groups that may use a credential spec, and by which binding.

use std::{collections::BTreeSet, path::PathBuf};

use clap::Args;

use super::{
    Outcome,
    connect::{Cluster, Connection, block_on},
    grant::spec_name,
    input,
    output::aligned,
    print,
};
use gmsa_cluster::{
    authorizer::rbac::{Binding, Holder, Rbac},
    manifests::{Document, Manifests},
};
use gmsa_core::{
    credspec::SpecName,
    diagnostic::{Diagnostics, printable::one_line},
};

#[derive(Debug, Args)]
pub struct Options {
    /// The credential spec
    #[arg(value_parser = spec_name)]
    name: SpecName,
    /// Read roles and bindings from a file, a folder, or - for standard input, instead of the cluster
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

/// Lists who may use a credential spec: in one namespace if `--namespace` says so, otherwise in all.
pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    let Manifests { documents, mut problems, .. } = match &options.state {
        Some(path) => input::manifests(std::slice::from_ref(path)),
        None => block_on(async { roles_and_bindings(&connection.cluster().await?).await })?,
    };
    let (rbac, refused) = Rbac::from_documents(&documents);
    problems.extend(refused);
    let mut text = problems_of(&problems);
    let rows = rows(&rbac, &options.name, connection.asked_namespace());
    if rows.is_empty() {
        text.extend(["no subject may use ", options.name.as_str(), "\n"]);
    } else {
        text.push_str(&table(["NAMESPACE", "WHO", "BY"], &rows));
    }
    print(text.as_bytes())?;
    Ok(if problems.is_empty() { Outcome::Clean } else { Outcome::Incomplete })
}

/// What could not be read, a line for each.
pub(super) fn problems_of(problems: &Diagnostics) -> String {
    let lines = problems.as_slice().iter().map(|problem| format!("{}: {problem}\n", problem.rule.id));
    lines.collect::<Vec<_>>().concat()
}

/// A binding and its role, for people.
pub(super) fn by(binding: &Binding) -> String {
    let kind = if binding.namespace.is_some() { "RoleBinding" } else { "ClusterRoleBinding" };
    format!("{kind} {} of {} {}", binding.name, binding.role_kind.as_str(), binding.role)
}

/// Namespace, holder, binding and role of each grant; `*` for all namespaces.
fn rows(rbac: &Rbac, name: &SpecName, only: Option<&str>) -> BTreeSet<[String; 3]> {
    let mut rows = BTreeSet::new();
    // ClusterRoleBindings are listed for every namespace, also for one without bindings of its own.
    for namespace in rbac.namespaces().chain([only.unwrap_or_default()]) {
        if only.is_some_and(|only| only != namespace) {
            continue;
        }
        for grant in rbac.grants(name, namespace) {
            let binding = grant.binding;
            let place = binding.namespace.as_deref().unwrap_or("*");
            let holder = match grant.holder {
                Holder::ServiceAccount { namespace, name } => format!("ServiceAccount {namespace}:{name}"),
                Holder::User(name) => format!("User {name}"),
                Holder::Group(name) => format!("Group {name}"),
            };
            rows.insert([place.to_owned(), holder, by(binding)].map(|cell| one_line(&cell).into_owned()));
        }
    }
    rows
}

/// A table of these columns.
pub(super) fn table<const COLUMNS: usize>(head: [&str; COLUMNS], rows: &BTreeSet<[String; COLUMNS]>) -> String {
    let head = head.map(str::to_owned);
    let lines = aligned(std::iter::once(&head).chain(rows));
    lines.iter().map(|line| line.trim_end()).chain([""]).collect::<Vec<_>>().join("\n")
}

const API_VERSION: &str = "rbac.authorization.k8s.io/v1";

/// The kinds that RBAC is made of.
const KINDS: [(&str, &str); 4] = [
    ("ClusterRole", "clusterroles"),
    ("Role", "roles"),
    ("ClusterRoleBinding", "clusterrolebindings"),
    ("RoleBinding", "rolebindings"),
];

/// Reads all roles and bindings of a cluster, in pages.
pub(super) async fn roles_and_bindings(cluster: &Cluster) -> anyhow::Result<Manifests> {
    let mut found = Manifests::default();
    for (kind, resources) in KINDS {
        let items = cluster.list(&format!("/apis/{API_VERSION}/{resources}")).await?.into_iter();
        found.documents.extend(items.map(|item| Document::of_api(resources, API_VERSION, kind, item)));
    }
    Ok(found)
}
