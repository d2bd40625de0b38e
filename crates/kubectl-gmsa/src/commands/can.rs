//! `can`: lists the credential specs that a service account may use, with the binding of each. `who-can` is the reverse.

use std::{collections::BTreeSet, path::PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;

use crate::shared::{
    Outcome,
    args::service_account,
    connection::{Connection, block_on},
    credspecs::is_credential_spec,
    input, names,
    output::{
        Shape,
        grants::{Grant, Grants},
    },
    rbac::roles_and_bindings,
    snapshot::ClusterSource,
};
use gmsa_cluster::{authorizer::rbac::Rbac, manifests::Manifests, resolver::live::collection};
use gmsa_core::{admission::ServiceAccount, credspec::SpecName};

const EXAMPLES: &str = "Examples:
  # Ask the cluster
  kubectl gmsa can shop:web

  # Read manifests instead, for a program
  kubectl gmsa can shop:web --state manifests/ -o json";

#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Options {
    /// The service account
    #[arg(value_name = "NAMESPACE:NAME", value_parser = service_account, required_unless_present = "named")]
    serviceaccount: Option<ServiceAccount>,
    /// The same, as `grant` takes it
    #[arg(long = "serviceaccount", alias = "service-account", value_parser = service_account, conflicts_with = "serviceaccount", hide = true)]
    named: Option<ServiceAccount>,
    /// Read credential specs and RBAC from here
    ///
    /// A file, a folder, or - for standard input, instead of the cluster
    #[arg(long, value_name = "DIR", conflicts_with = "from")]
    state: Option<PathBuf>,
    #[command(flatten)]
    from: ClusterSource,
    /// Print table or json
    #[arg(long, short, value_enum, default_value = "table", hide_possible_values = true)]
    output: Shape,
}

pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    let asked = options.serviceaccount.as_ref().or(options.named.as_ref()).context("no service account")?;
    block_on(async {
        let mut snapshot = None;
        let (names, read): (BTreeSet<SpecName>, _) = if let Some(path) = &options.state {
            let read = input::manifests(std::slice::from_ref(path));
            let specs = read.documents.iter().filter(|document| is_credential_spec(document));
            (specs.filter_map(|document| spec_name(&document.value())).collect(), read)
        } else {
            let snapshot = snapshot.insert(options.from.open(connection).await?);
            let specs = snapshot.list(&collection()).await?;
            (specs.iter().filter_map(spec_name).collect(), roles_and_bindings(snapshot).await?)
        };
        let Manifests { documents, mut problems, .. } = read;
        let (rbac, refused) = Rbac::from_documents(&documents);
        problems.extend(refused);
        let grant = |name: &SpecName| {
            let grant = rbac.grant(asked, name)?;
            Some(Grant { credential_spec: Some(name.to_string()), ..Grant::by(grant.binding) })
        };
        let found: BTreeSet<Grant> = names.iter().filter_map(grant).collect();
        if let Some(snapshot) = snapshot.filter(|_| found.is_empty()) {
            let ServiceAccount { namespace, name: service_account } = asked;
            let what = format!("namespace {namespace}");
            names::expect(&snapshot, &what, "/api/v1/namespaces", namespace).await?;
            let what = format!("service account {namespace}:{service_account}");
            let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
            names::expect(&snapshot, &what, &accounts, service_account).await?;
        }
        let none = format!("{}:{} may use no credential spec", asked.namespace, asked.name);
        Grants { found, act_as_pods: BTreeSet::new(), problems, none }.print(options.output)
    })
}

fn spec_name(object: &Value) -> Option<SpecName> {
    SpecName::parse(object.pointer("/metadata/name")?.as_str()?)
}
