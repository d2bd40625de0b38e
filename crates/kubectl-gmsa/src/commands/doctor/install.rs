//! The installation: the custom resource, the webhook configurations, and what follows from them.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::OptionFuture;
use k8s_openapi::{
    api::{admissionregistration::v1::WebhookClientConfig, apps::v1::Deployment, core::v1::Namespace},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};

use super::{
    call,
    configuration::{self, CONFIGURATION},
    crd, namespaces, not_checked, protection, service,
};
use crate::shared::{
    connection::Cluster,
    installer::Installer,
    output::first_five,
    rules,
    webhook::{Configured, configured},
};
use gmsa_core::diagnostic::{Check, Diagnostic};

/// Adds the checks; returns the namespaces that the webhook does not review, as far as they could be read.
pub(super) async fn add_checks(cluster: &Cluster, checks: &mut Vec<Check>) -> Vec<String> {
    let (crd, webhooks, namespaces) = tokio::join!(
        cluster.find::<CustomResourceDefinition>(gmsa_cluster::crd::PATH),
        configured(cluster),
        cluster.list::<Namespace>("/api/v1/namespaces"),
    );
    let webhooks = match webhooks {
        Ok(webhooks) => webhooks,
        Err(error) => {
            checks.extend([crd::check(crd, None), not_checked(CONFIGURATION, &error)]);
            // Who may create pods can still see whether they are refused.
            checks.extend(call::checks(cluster, None).await);
            return Vec::new();
        }
    };
    let of_pods: Vec<&Configured> = webhooks.iter().filter(|found| found.is_of_pods()).collect();
    let ours: Vec<&Configured> = of_pods.iter().copied().filter(|found| found.installer != Installer::Aks).collect();
    let installer = match ours.first().or(of_pods.first()) {
        Some(found) => Some(found.installer.clone()),
        None => installer_of_deployment(cluster).await,
    };
    checks.push(crd::check(crd, installer.as_ref()));
    for mutating in [true, false] {
        configurations(mutating, &webhooks, installer.as_ref(), checks);
    }
    if of_pods.is_empty() {
        return Vec::new();
    }
    let validating = ours.iter().find(|found| !found.mutating);
    let (called, protected, serving) = tokio::join!(
        call::checks(cluster, Some(&webhooks)),
        OptionFuture::from(validating.map(|found| protection::check(cluster, found.configuration()))),
        services(cluster, &ours)
    );
    checks.extend(called);
    checks.extend(protected);
    checks.extend(serving);
    namespaces::excluded(namespaces, if ours.is_empty() { &of_pods } else { &ours }, checks)
}

/// Who installed the Deployment of the chart, where no configuration says it. A user who may not list Deployments gets the remedy for a
/// cluster without one.
async fn installer_of_deployment(cluster: &Cluster) -> Option<Installer> {
    let path = "/apis/apps/v1/deployments?labelSelector=app.kubernetes.io%2Fname%3Dgmsa-webhook";
    let found: Vec<Deployment> = cluster.list(path).await.ok()?;
    found.first().map(|deployment| Installer::of(&deployment.metadata))
}

/// Checks the webhooks in the configurations of one of the two kinds.
fn configurations(mutating: bool, webhooks: &[Configured], installer: Option<&Installer>, checks: &mut Vec<Check>) {
    let kind = if mutating { "MutatingWebhookConfiguration" } else { "ValidatingWebhookConfiguration" };
    let of_pods: Vec<_> = webhooks.iter().filter(|found| found.mutating == mutating && found.is_of_pods()).collect();
    if of_pods.is_empty() {
        let missing = format!("no {kind} sends pods to a GMSA webhook");
        let missing = Diagnostic::new(&rules::WEBHOOK_MISSING, missing);
        checks.push(Check::found(
            CONFIGURATION,
            match installer {
                Some(installer) => missing.with_fix(format!("{} creates it again.", installer.restore())),
                None => missing,
            },
        ));
    }
    // Within one installation all webhooks have different names, so equal names mean two installations.
    let mut by_name: BTreeMap<&str, Vec<&Configured>> = BTreeMap::new();
    for found in of_pods {
        configuration::add_checks(found, checks);
        // That of AKS is not one that somebody forgot to uninstall.
        if found.installer != Installer::Aks {
            by_name.entry(&found.webhook.name).or_default().push(found);
        }
    }
    for same in by_name.values().filter(|same| same.len() > 1) {
        let names: Vec<&String> = same.iter().map(|found| &found.name).collect();
        let text = format!("{} {kind}s of several installations are for GMSA: {}", same.len(), first_five(&names));
        let twice = Diagnostic::new(&rules::WEBHOOK_DUPLICATE, text).with_fix(uninstalled(same));
        checks.push(Check::found(CONFIGURATION, twice));
    }
}

/// How to end one of several installations.
fn uninstalled(same: &[&Configured]) -> String {
    let commands: Vec<String> = same
        .iter()
        .map(|found| match &found.installer {
            Installer::Helm { release, namespace } => format!("`helm uninstall {release} -n {namespace}`"),
            _ => format!("`kubectl delete` of the manifest of {}, without its custom resource", found.configuration()),
        })
        .collect();
    format!("All of them must admit a Pod. Keep one, and uninstall the others: {}.", commands.join(" or "))
}

/// The checks of each Service that a webhook is called by.
async fn services(cluster: &Cluster, webhooks: &[&Configured]) -> Vec<Check> {
    let mut seen = BTreeSet::new();
    let name = |client: &WebhookClientConfig| {
        client
            .service
            .as_ref()
            .map(|service| (service.namespace.clone(), service.name.clone()))
            .ok_or(client.url.clone())
    };
    let clients = webhooks.iter().map(|found| &found.webhook.client_config);
    let each = clients.filter(|client| seen.insert(name(client))).map(|client| service::checks(cluster, client));
    futures::future::join_all(each).await.concat()
}
