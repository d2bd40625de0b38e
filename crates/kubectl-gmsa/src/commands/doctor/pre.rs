//! `doctor --pre`: whether the cluster is ready for an installation, and which GMSA objects exist already.
//!
//! Invariants: nothing is created, and no webhook is called.

use anyhow::ensure;
use k8s_openapi::api::core::v1::Namespace;

use super::{api_server, configuration, crd};
use crate::shared::{rules, webhook::no_namespace, world::World};
use gmsa_core::{credspec::is_dns_subdomain, diagnostic::Check};

/// The namespace that the documentation installs into.
pub(super) const NAMESPACE: &str = "gmsa-webhook";

const NAMESPACE_CHECK: &str = "namespace";

/// The checks; `namespace` is the target of the installation.
pub(super) async fn checks(world: &World, namespace: &str) -> anyhow::Result<Vec<Check>> {
    ensure!(!namespace.contains('.') && is_dns_subdomain(namespace), "{namespace:?} is not the name of a namespace");
    let read = world.find::<Namespace>(&format!("/api/v1/namespaces/{namespace}")).await;
    let judged = [
        (api_server::API_SERVER, api_server::check(world, false).await),
        (NAMESPACE_CHECK, read.map(|read| vec![self::namespace(namespace, read.as_ref())])),
        (crd::CRD, world.find(gmsa_cluster::crd::PATH).await.map(crd::before_installation)),
        (configuration::CONFIGURATION, world.webhooks().await.map(configuration::before_installation)),
    ];
    let lines = judged.into_iter().map(|(about, judged)| judged.unwrap_or_else(|unread| vec![unread.check(about)]));
    Ok(lines.flatten().collect())
}

/// Checks that the namespace is not being deleted.
fn namespace(name: &str, namespace: Option<&Namespace>) -> Check {
    match (namespace, no_namespace(namespace)) {
        (None, _) => Check::pass(NAMESPACE_CHECK, format!("{name} does not exist yet: --create-namespace creates it")),
        (_, Some(state)) => Check::breach(NAMESPACE_CHECK, &rules::NAMESPACE_UNUSABLE, format!("{name} {state}")),
        (_, None) => Check::pass(NAMESPACE_CHECK, format!("{name} exists")),
    }
}
