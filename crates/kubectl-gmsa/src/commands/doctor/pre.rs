//! `doctor --pre`: whether the cluster is ready for an installation, and which GMSA objects exist already.
//!
//! Invariants: only access reviews are created, and no webhook is called.

use anyhow::ensure;
use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::version::Info,
};

use super::{api_server, configuration, crd};
use crate::shared::{rules, world::World};
use gmsa_core::{credspec::is_dns_subdomain, diagnostic::Check};

mod rights;

/// The namespace that the documentation installs into.
pub(super) const NAMESPACE: &str = "gmsa-webhook";

const NAMESPACE_CHECK: &str = "namespace";

/// The label of a namespace that names its Pod Security level. <https://kubernetes.io/docs/concepts/security/pod-security-admission/>
const LEVEL: &str = "pod-security.kubernetes.io/enforce";

/// The checks; `namespace` is the target of the installation.
pub(super) async fn checks(world: &World, namespace: &str) -> anyhow::Result<Vec<Check>> {
    ensure!(!namespace.contains('.') && is_dns_subdomain(namespace), "{namespace:?} is not the name of a namespace");
    let path = format!("/api/v1/namespaces/{namespace}");
    let (info, definition, webhooks, read) = tokio::join!(
        world.get::<Info>("/version"),
        world.find::<CustomResourceDefinition>(gmsa_cluster::crd::PATH),
        world.webhooks(),
        world.find::<Namespace>(&path),
    );
    let is_missing = matches!(read, Ok(None));
    let judged = [
        (api_server::API_SERVER, info.map(|info| vec![api_server::installable(&info.git_version)])),
        (rights::RIGHTS, rights::check(world, namespace, is_missing).await),
        (NAMESPACE_CHECK, read.map(|read| vec![self::namespace(namespace, read)])),
        (crd::CRD, definition.map(crd::before_installation)),
        (configuration::CONFIGURATION, webhooks.map(configuration::before_installation)),
    ];
    let lines = judged.into_iter().map(|(about, judged)| judged.unwrap_or_else(|unread| vec![unread.check(about)]));
    Ok(lines.flatten().collect())
}

/// Checks the namespace, which must exist and stay. The webhook runs under every Pod Security level, but `hostNetwork`, a value of the
/// chart that is not known here, needs `privileged`.
fn namespace(name: &str, namespace: Option<Namespace>) -> Check {
    let Some(namespace) = namespace else {
        return Check::pass(NAMESPACE_CHECK, format!("{name} does not exist yet: --create-namespace creates it"));
    };
    if namespace.metadata.deletion_timestamp.is_some() {
        return Check::breach(NAMESPACE_CHECK, &rules::NAMESPACE_UNUSABLE, format!("{name} is being deleted"));
    }
    let level = namespace.metadata.labels.as_ref().and_then(|labels| labels.get(LEVEL));
    let enforced = level.map_or("no Pod Security level".to_owned(), |level| format!("the Pod Security level {level}"));
    let text = format!(
        "{name} enforces {enforced}: the webhook runs under every level, with hostNetwork only under privileged"
    );
    Check::pass(NAMESPACE_CHECK, text)
}
