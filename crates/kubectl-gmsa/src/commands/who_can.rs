//! `who-can`: the service accounts, and the users and groups that pods can be, that may use a credential spec, and by which binding.

use std::{collections::BTreeSet, path::PathBuf};

use clap::Args;

use crate::shared::{
    Outcome,
    args::spec_name,
    connection::{Connection, block_on},
    input, names,
    output::{
        Shape,
        grants::{Grant, Grants},
    },
    rbac::roles_and_bindings,
    snapshot::{From, Snapshot},
};
use gmsa_cluster::{authorizer::rbac::Rbac, manifests::Manifests, resolver::live::collection};
use gmsa_core::credspec::SpecName;

mod workloads;

use workloads::Users;

const EXAMPLES: &str = "Examples:
  # Ask the cluster
  kubectl gmsa who-can webapp1

  # List the workloads that name it, before it is retired
  kubectl gmsa who-can webapp1 --workloads

  # Read manifests instead
  kubectl gmsa who-can webapp1 --state manifests/";

#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Options {
    /// The credential spec
    #[arg(value_parser = spec_name)]
    name: SpecName,
    /// Read roles and bindings from here
    ///
    /// A file, a folder, or - for standard input, instead of the cluster
    #[arg(long, value_name = "DIR", conflicts_with = "from")]
    state: Option<PathBuf>,
    /// List what names it: workloads, and other pods
    ///
    /// Workloads by their pod templates, and pods that no workload controls
    #[arg(long, conflicts_with = "state")]
    workloads: bool,
    #[command(flatten)]
    from: From,
    /// Print table or json
    #[arg(long, short, value_enum, default_value = "table", hide_possible_values = true)]
    output: Shape,
}

/// Lists who may use a credential spec: in one namespace if `--namespace` says so, otherwise in all.
pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    if options.workloads {
        return block_on(async {
            let snapshot = options.from.open(connection).await?;
            let users = Users::read(&snapshot, &options.name, connection.asked_namespace()).await;
            if users.is_empty() {
                expect_spec(&snapshot, &options.name).await?;
            }
            users.print(&options.name, options.output)
        });
    }
    let Manifests { documents, mut problems, .. } = match &options.state {
        Some(path) => input::manifests(std::slice::from_ref(path)),
        None => block_on(async {
            let snapshot = options.from.open(connection).await?;
            let found = roles_and_bindings(&snapshot).await?;
            let (rbac, _) = Rbac::from_documents(&found.documents);
            if grants(&rbac, &options.name, connection.asked_namespace()).is_empty() {
                expect_spec(&snapshot, &options.name).await?;
            }
            Ok(found)
        })?,
    };
    let (rbac, refused) = Rbac::from_documents(&documents);
    problems.extend(refused);
    let grants = grants(&rbac, &options.name, connection.asked_namespace());
    Grants { found: grants, problems, none: format!("no subject may use {}", options.name) }.print(options.output)
}

async fn expect_spec(snapshot: &Snapshot, name: &SpecName) -> anyhow::Result<()> {
    names::expect(snapshot, &format!("credential spec {name}"), &collection(), name.as_str()).await
}

fn grants(rbac: &Rbac, name: &SpecName, only: Option<&str>) -> BTreeSet<Grant> {
    let mut grants = BTreeSet::new();
    // ClusterRoleBindings are listed for every namespace, also for one without bindings of its own.
    for namespace in rbac.namespaces().chain([only.unwrap_or("")]) {
        if only.is_some_and(|only| only != namespace) {
            continue;
        }
        for grant in rbac.grants(name, namespace) {
            let binding = grant.binding;
            // Of a binding for all namespaces, the pods of the namespace that was asked for count.
            if !grant.holder.is_of_pods_in(binding.namespace.as_deref().or(only)) {
                continue;
            }
            grants.insert(Grant::by(binding).with_subject(grant.holder));
        }
    }
    grants
}
