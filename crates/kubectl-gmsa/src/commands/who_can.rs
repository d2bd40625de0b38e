//! `who-can`: lists the service accounts, and the users and groups that include service accounts, that may use a credential spec or export it, with
//! the binding of each, and who may act as their pods. For a service account it lists the credential specs that it may use.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use anyhow::{Context as _, ensure};
use clap::Args;
use serde_json::Value;

use crate::shared::{
    Outcome,
    args::{service_account, spec_name},
    connection::{Connection, block_on},
    credspecs::is_credential_spec,
    input, names,
    output::{
        Shape,
        grants::{Grant, Grants},
    },
    spelling::meant,
    world::{ClusterSource, reads::acts},
};
use gmsa_cluster::{
    authorizer::rbac::{Binding, BindingGrant, Rbac},
    manifests::{Document, Manifests},
    resolver::live::collection,
};
use gmsa_core::{
    admission::ServiceAccount,
    credspec::{SpecName, Verb},
    diagnostic::{Diagnostic, rules::SPEC_MISSING},
};

const EXAMPLES: &str = "Examples:
  # Ask the cluster
  kubectl gmsa who-can webapp1

  # List what a service account may use
  kubectl gmsa who-can --serviceaccount shop:web

  # Read manifests instead
  kubectl gmsa who-can webapp1 --state manifests/";

#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Options {
    /// The credential spec
    #[arg(value_name = "NAME", value_parser = spec_name, required_unless_present = "serviceaccount")]
    name: Option<SpecName>,
    /// List instead what this service account may use
    #[arg(long, alias = "service-account", value_name = "NAMESPACE:NAME", value_parser = service_account, conflicts_with = "name")]
    serviceaccount: Option<ServiceAccount>,
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

/// Lists who may use a credential spec: in the namespace of `--namespace`, otherwise in all.
pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    if let Some(account) = &options.serviceaccount {
        return block_on(used_by(account, options, connection));
    }
    let name = options.name.as_ref().context("no credential spec")?;
    let namespace = connection.asked_namespace();
    block_on(async {
        let mut world = None;
        let Manifests { documents, mut problems, .. } = if let Some(path) = &options.state {
            input::manifests(std::slice::from_ref(path), &format!("who-can {name} --state -"), None)
        } else {
            world.insert(options.from.open(connection).await?).roles_and_bindings().await?
        };
        let (rbac, refused) = Rbac::from_documents(&documents);
        problems.extend(refused);
        let found = grants(&rbac, name, namespace);
        let absent = match &world {
            Some(world) => {
                let what = format!("credential spec {name}");
                names::absent(world, &what, &collection(), name.as_str()).await.map(|absent| absent.text)
            }
            None => absent_in(&documents, name),
        };
        if let Some(absent) = absent {
            // Manifests may be a part of what is applied.
            ensure!(!found.is_empty() || world.is_none(), absent);
            problems.push(Diagnostic::new(&SPEC_MISSING, absent));
        }
        let act_as_pods = actors(&rbac, &found);
        Grants { found, act_as_pods, problems, none: format!("no subject may use {name}") }.print(options.output)
    })
}

/// Lists the credential specs that a service account may use.
async fn used_by(account: &ServiceAccount, options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    let mut world = None;
    let (specs, read): (Vec<Value>, _) = if let Some(path) = &options.state {
        let stdin = format!("who-can --serviceaccount {}:{} --state -", account.namespace, account.name);
        let read = input::manifests(std::slice::from_ref(path), &stdin, None);
        (read.documents.iter().filter(|found| is_credential_spec(found)).map(Document::value).collect(), read)
    } else {
        let world = world.insert(options.from.open(connection).await?);
        (world.list(&collection()).await?, world.roles_and_bindings().await?)
    };
    let Manifests { documents, mut problems, .. } = read;
    let (rbac, refused) = Rbac::from_documents(&documents);
    problems.extend(refused);
    let name = |spec: &Value| SpecName::parse(spec.pointer("/metadata/name")?.as_str()?);
    let grant = |name: &SpecName, verb| {
        let grant = Grant::by(rbac.grant(account, verb, name)?.binding);
        Some((Grant { credential_spec: Some(name.to_string()), ..grant }, verb.as_str()))
    };
    let names: Vec<SpecName> = specs.iter().filter_map(name).collect();
    let found = by_verb(names.iter().flat_map(|name| Verb::ALL.into_iter().filter_map(|verb| grant(name, verb))));
    let ServiceAccount { namespace, name } = account;
    if let Some(world) = world.filter(|_| found.is_empty()) {
        names::expect(&world, &format!("namespace {namespace}"), "/api/v1/namespaces", namespace).await?;
        let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        names::expect(&world, &format!("service account {namespace}:{name}"), &accounts, name).await?;
    }
    let none = format!("{namespace}:{name} may use no credential spec");
    Grants { found, act_as_pods: BTreeSet::new(), problems, none }.print(options.output)
}

/// The users that may act as these subjects' pods, in the namespaces of the pods. Bindings whose name and role begin with `system:`, by which
/// the control plane runs, are left out.
fn actors(rbac: &Rbac, found: &BTreeSet<Grant>) -> BTreeSet<Grant> {
    let of_pods = |grant: &Grant| {
        let subject = grant.subject.as_ref()?;
        let of_name = subject.name.strip_prefix("system:serviceaccounts:").map(str::to_owned);
        let of_user = subject.name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split(':').next());
        let of_subject = subject.namespace.clone().or(of_name).or(of_user.map(str::to_owned));
        grant.binding.namespace.clone().or(of_subject)
    };
    let named: Option<BTreeSet<String>> = found.iter().map(of_pods).collect();
    // A group of all service accounts has pods in every namespace.
    let namespaces = named.unwrap_or_else(|| rbac.namespaces().chain([""]).map(str::to_owned).collect());
    let is_of_system =
        |binding: &Binding| [&binding.name, &binding.role].iter().all(|name| name.starts_with("system:"));
    let all = namespaces.iter().flat_map(|namespace| acts().map(move |(word, action)| (namespace, word, action)));
    let all = all.flat_map(|(namespace, word, action)| rbac.grants(action, namespace).map(move |found| (found, word)));
    let all = all.filter(|(found, _)| !is_of_system(found.binding));
    by_verb(all.map(|(found, word)| (Grant::by(found.binding).with_subject(found.holder), word)))
}

/// The message about a credential spec that does not exist in manifests. Without any credential spec, they are only the roles and bindings.
fn absent_in(documents: &[Document], name: &SpecName) -> Option<String> {
    let values: Vec<Value> = documents.iter().filter(|found| is_credential_spec(found)).map(Document::value).collect();
    let known = || values.iter().filter_map(|spec| spec.pointer("/metadata/name")?.as_str());
    if known().next().is_none() || known().any(|known| known == name.as_str()) {
        return None;
    }
    Some(format!("there is no credential spec {name} in the manifests{}", meant(name.as_str(), known())))
}

/// The grants, each with its verbs; none where that is `use` alone.
fn by_verb(grants: impl Iterator<Item = (Grant, &'static str)>) -> BTreeSet<Grant> {
    let mut all: BTreeMap<Grant, BTreeSet<&'static str>> = BTreeMap::new();
    for (grant, verb) in grants {
        all.entry(grant).or_default().insert(verb);
    }
    let of_use = BTreeSet::from([Verb::Use.as_str()]);
    let shown = |may: BTreeSet<_>| if may == of_use { BTreeSet::new() } else { may };
    all.into_iter().map(|(grant, may)| Grant { may: shown(may), ..grant }).collect()
}

fn grants(rbac: &Rbac, name: &SpecName, only: Option<&str>) -> BTreeSet<Grant> {
    // ClusterRoleBindings are listed for every namespace, also for one without bindings of its own.
    let namespaces =
        rbac.namespaces().chain([only.unwrap_or("")]).filter(|namespace| only.is_none_or(|only| only == *namespace));
    let verbs = |namespace| Verb::ALL.into_iter().map(move |verb| (namespace, verb));
    let all = namespaces
        .flat_map(verbs)
        .flat_map(|(namespace, verb)| rbac.grants((verb, name), namespace).map(move |found| (found, verb)));
    // A binding for all namespaces counts for the pods of the requested namespace.
    let all =
        all.filter(|(BindingGrant { binding, holder }, _)| holder.is_of_pods_in(binding.namespace.as_deref().or(only)));
    by_verb(all.map(|(found, verb)| (Grant::by(found.binding).with_subject(found.holder), verb.as_str())))
}
