//! `grant`: the ClusterRole and RoleBinding that let a service account use exactly one credential spec, or have its keytab.

use std::fmt::Write as _;

use anyhow::{Context as _, ensure};
use clap::Args;
use http::{Request, header::CONTENT_TYPE};
use serde_json::Value;

use crate::shared::{
    Outcome,
    args::{service_account, spec_name},
    connection::{Connection, block_on},
    grant::GrantObjects,
    live::LiveCluster,
    names::{self, Absent},
    output::grants::Grant,
    print, print_clean,
    world::World,
};
use gmsa_cluster::{
    authorizer::rbac::Rbac,
    manifests::{Document, Manifests},
    resolver::live::collection,
};
use gmsa_core::{
    admission::ServiceAccount,
    credspec::{SpecName, Verb},
    quote::one_line,
};

const GRANTS_MORE: &str = "grants something else: edit or delete it with kubectl";

const EXAMPLES: &str = "Examples:
  # Print the role and the binding, as for a Git repository
  kubectl gmsa grant --credspec webapp1 --serviceaccount shop:web

  # Let the API server check them, and change nothing
  kubectl gmsa grant --credspec webapp1 --serviceaccount shop:web --apply --dry-run=server

  # Revoke the permission
  kubectl gmsa grant --credspec webapp1 --serviceaccount shop:web --revoke --apply";

#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Options {
    /// The credential spec
    #[arg(long, value_name = "NAME", value_parser = spec_name)]
    credspec: SpecName,
    /// The service account
    #[arg(long, alias = "service-account", value_name = "NAMESPACE:NAME", value_parser = service_account)]
    serviceaccount: ServiceAccount,
    /// Grant `export` instead of `use`: the keytab
    ///
    /// A keytab is the account's password until it changes. A service that accepts Kerberos needs it; one that logs on does not
    #[arg(long)]
    keytab: bool,
    /// Revoke the permission
    ///
    /// With --apply the RoleBinding is deleted, otherwise the command for it is printed. The ClusterRole stays: other bindings may use it
    #[arg(long)]
    revoke: bool,
    /// Apply the objects, or with --revoke delete
    #[arg(long)]
    apply: bool,
    /// Let the API server check; change nothing
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "server", value_parser = ["server"], hide_possible_values = true)]
    dry_run: Option<String>,
}

pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    let ServiceAccount { namespace, name: service_account } = &options.serviceaccount;
    let verb = if options.keytab { Verb::Export } else { Verb::Use };
    let grant = GrantObjects { verb, spec: &options.credspec, namespace, service_account };
    let is_dry_run = options.dry_run.is_some();
    if !is_dry_run && !options.apply {
        // Never prints the object: piped to `kubectl apply`, it would grant the permission again.
        let delete = || format!("kubectl delete rolebinding --namespace {} {}\n", grant.namespace, grant.binding());
        return print_clean(if options.revoke { delete() } else { grant.yaml() });
    }
    block_on(async {
        let cluster = connection.cluster().await?;
        if options.revoke {
            revoke(&cluster, &grant, is_dry_run).await
        } else {
            apply_grant(&cluster, &grant, is_dry_run).await
        }
    })
}

/// The text printed after each change.
fn suffix(is_dry_run: bool) -> &'static str {
    if is_dry_run { " (server dry run)" } else { "" }
}

/// Applies both objects. An object that grants something else is an error, because applying would replace its lists.
async fn apply_grant(cluster: &LiveCluster, grant: &GrantObjects<'_>, is_dry_run: bool) -> anyhow::Result<Outcome> {
    let role: Option<Value> = cluster.find(&grant.role_path()).await.context("cannot read the ClusterRole")?;
    let is_own = role.as_ref().is_none_or(|role| grant.is_own_role(role));
    ensure!(is_own, "clusterrole/{} {GRANTS_MORE}", grant.role());
    let binding: Option<Value> = cluster.find(&grant.binding_path()).await.context("cannot read the RoleBinding")?;
    let is_own = binding.as_ref().is_none_or(|binding| grant.is_own_binding(binding));
    ensure!(is_own, "rolebinding/{} in {} {GRANTS_MORE}", grant.binding(), grant.namespace);
    // Checked first, because a failed binding would leave the role behind.
    let world = World::of(cluster.clone());
    expect_namespace(&world, grant).await?;
    let applied = apply(cluster, &grant.role_path(), &grant.role_yaml(), role.as_ref(), is_dry_run).await;
    applied.context("cannot apply the ClusterRole")?;
    let applied = apply(cluster, &grant.binding_path(), &grant.binding_yaml(), binding.as_ref(), is_dry_run).await;
    applied.context("cannot apply the RoleBinding")?;
    let (role, binding, namespace, suffix) = (grant.role(), grant.binding(), grant.namespace, suffix(is_dry_run));
    let mut text =
        format!("clusterrole/{role} applied{suffix}\nrolebinding/{binding} applied in {namespace}{suffix}\n");
    for absent in absent(&world, grant).await {
        let _ = writeln!(text, "{}{}", absent.text, if absent.is_misspelt { "" } else { " yet" });
    }
    print_clean(text)
}

/// Fails if the namespace of the grant does not exist.
async fn expect_namespace(world: &World, grant: &GrantObjects<'_>) -> anyhow::Result<()> {
    let what = format!("namespace {}", grant.namespace);
    names::expect(world, &what, "/api/v1/namespaces", grant.namespace).await
}

/// The service account and the credential spec of the grant, if they do not exist.
async fn absent(world: &World, grant: &GrantObjects<'_>) -> Vec<Absent> {
    let GrantObjects { spec, namespace, service_account, .. } = grant;
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    let account = format!("service account {namespace}:{service_account}");
    let account = names::absent(world, &account, &accounts, service_account).await;
    let spec = names::absent(world, &format!("credential spec {spec}"), &collection(), spec.as_str()).await;
    account.into_iter().chain(spec).collect()
}

/// Creates the object, or applies it to the one that was read, by server-side apply. The API server refuses it if the object was
/// created or changed since then: it may grant something else.
async fn apply(
    cluster: &LiveCluster,
    path: &str,
    yaml: &str,
    read: Option<&Value>,
    is_dry_run: bool,
) -> anyhow::Result<()> {
    let mut object: Value = serde_saphyr::from_str(yaml)?;
    let parameters = format!("fieldManager=kubectl-gmsa{}", if is_dry_run { "&dryRun=All" } else { "" });
    let request = if let Some(read) = read {
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            let version = read.pointer("/metadata/resourceVersion").cloned().unwrap_or_default();
            metadata.insert("resourceVersion".to_owned(), version);
        }
        Request::patch(format!("{path}?{parameters}&force=true")).header(CONTENT_TYPE, "application/apply-patch+yaml")
    } else {
        let (collection, _) = path.rsplit_once('/').unwrap_or_default();
        Request::post(format!("{collection}?{parameters}")).header(CONTENT_TYPE, "application/json")
    };
    cluster.api.call(request.body(serde_json::to_vec(&object)?), cluster.deadline()).await?;
    Ok(())
}

/// Deletes the binding that was read, and reports another one that still gives the permission. A binding that grants something else stays,
/// and so does one that was created since the read.
async fn revoke(cluster: &LiveCluster, grant: &GrantObjects<'_>, is_dry_run: bool) -> anyhow::Result<Outcome> {
    let (binding, suffix) = (grant.binding(), suffix(is_dry_run));
    // Evaluates RBAC itself, because the API server's authorizer sees a deletion only a moment later.
    let world = World::of(cluster.clone());
    let read = world.roles_and_bindings().await;
    let Manifests { documents, .. } = read.context("cannot tell what else gives the permission")?;
    let (own, others): (Vec<Document>, Vec<Document>) =
        documents.into_iter().partition(|document| grant.is_binding(document));
    let own = own.first().map(Document::value);
    let is_own = own.as_ref().is_none_or(|binding| grant.is_own_binding(binding));
    ensure!(is_own, "rolebinding/{binding} in {} {GRANTS_MORE}", grant.namespace);
    let is_deleted = match own {
        Some(binding) => {
            // An empty UID, which no object has, deletes nothing.
            let uid = binding.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
            let deleted = cluster.delete(&grant.binding_path(), is_dry_run, Some(uid)).await;
            deleted.context("cannot delete the RoleBinding")?
        }
        None => false,
    };
    let mut is_misspelt = false;
    let mut text = if is_deleted {
        format!("rolebinding/{binding} deleted in {}{suffix}\n", grant.namespace)
    } else {
        // A misspelt name has no binding either, and must not look like a revoked one.
        expect_namespace(&world, grant).await?;
        let absent = absent(&world, grant).await;
        is_misspelt = absent.iter().any(|absent| absent.is_misspelt);
        let lines: String = absent.into_iter().map(|absent| absent.text + "\n").collect();
        format!("there is no rolebinding/{binding} in {}\n{lines}", grant.namespace)
    };
    let (rbac, _) = Rbac::from_documents(&others);
    let account = ServiceAccount { namespace: grant.namespace.into(), name: grant.service_account.into() };
    let other = rbac.grant(&account, grant.verb, grant.spec);
    if let Some(other) = &other {
        let (GrantObjects { verb, spec, namespace, service_account }, by) = (grant, Grant::by(other.binding).why());
        // Writing into a String cannot fail.
        let _ =
            writeln!(text, "{namespace}:{service_account} may still {} {spec}, by {}", verb.as_str(), one_line(&by));
    }
    print(text)?;
    Ok(if other.is_some() || is_misspelt { Outcome::Findings } else { Outcome::Clean })
}
