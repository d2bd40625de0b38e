//! The installation: the custom resource, the webhook configurations, and whether the API server calls the webhook.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{admissionregistration::v1::ServiceReference, core::v1::Namespace},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use serde_json::json;

use super::{certificate, found, not_checked, service};
use crate::shared::{
    connection::Cluster,
    output::first_five,
    webhook::{Configured, configured},
};
use gmsa_cluster::crd;
use gmsa_core::{
    causes,
    credspec::{GROUP, PLURAL, VERSION},
    diagnostic::{Check, Diagnostic, Severity, rules},
};

const CRD: &str = "custom resource";
const CONFIGURATION: &str = "configuration";
const CALL: &str = "call of the webhook";
const NAMESPACES: &str = "namespaces";

/// Adds the checks; returns the namespaces that the webhook does not review, as far as they could be read.
pub(super) async fn add_checks(cluster: &Cluster, checks: &mut Vec<Check>) -> Vec<String> {
    checks.push(custom_resource(cluster).await);
    let webhooks = match configured(cluster).await {
        Ok(webhooks) => webhooks,
        Err(error) => {
            checks.push(not_checked(CONFIGURATION, &error));
            return Vec::new();
        }
    };
    for mutating in [true, false] {
        configurations(mutating, &webhooks, checks);
    }
    let of_pods: Vec<&Configured> = webhooks.iter().filter(|found| found.is_of_pods()).collect();
    let Some(first) = of_pods.first() else { return Vec::new() };
    checks.push(call(cluster).await);
    service::add_checks(cluster, &first.webhook.client_config, checks).await;
    excluded(cluster, &of_pods, checks).await
}

/// Checks the webhooks in the configurations of one of the two kinds.
fn configurations(mutating: bool, webhooks: &[Configured], checks: &mut Vec<Check>) {
    let kind = if mutating { "MutatingWebhookConfiguration" } else { "ValidatingWebhookConfiguration" };
    let of_pods: Vec<_> = webhooks.iter().filter(|found| found.mutating == mutating && found.is_of_pods()).collect();
    if of_pods.is_empty() {
        let text = format!("no {kind} sends pods to a GMSA webhook");
        checks.push(found(CONFIGURATION, &rules::WEBHOOK_MISSING, text));
    }
    // Within one installation all webhooks have different names, so equal names mean two installations.
    let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for found in &of_pods {
        by_name.entry(&found.webhook.name).or_default().push(&found.name);
        configuration(found, checks);
    }
    for same in by_name.values().filter(|same| same.len() > 1) {
        let text = format!("{} {kind}s of several installations are for GMSA: {}", same.len(), first_five(same));
        checks.push(found(CONFIGURATION, &rules::WEBHOOK_DUPLICATE, text));
    }
}

async fn custom_resource(cluster: &Cluster) -> Check {
    let crd: CustomResourceDefinition = match cluster.find(crd::PATH).await {
        Ok(Some(crd)) => crd,
        Ok(None) => return found(CRD, &rules::CRD_MISSING, format!("{PLURAL}.{GROUP} is not installed")),
        Err(error) => return not_checked(CRD, &error),
    };
    let versions = crd.spec.versions.iter().filter(|version| version.served);
    let served: Vec<&str> = versions.map(|version| version.name.as_str()).collect();
    let is_served = served.contains(&VERSION);
    let served = served.join(", ");
    let mut conditions = crd.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let is_established = conditions.any(|condition| condition.type_ == "Established" && condition.status == "True");
    let (revision, own) = (crd::revision(&crd.metadata), crd::own_revision());
    if !is_served {
        found(CRD, &rules::CRD_NOT_SERVED, format!("{VERSION} is not served, only: {served}"))
    } else if !is_established {
        found(CRD, &rules::CRD_NOT_SERVED, "it is not established")
    } else if revision < own {
        let text = format!("serves {served}, but is older than this release's (revision {revision}, not {own})");
        found(CRD, &rules::CRD_OUTDATED, text)
    } else {
        Check::pass(CRD, format!("serves {served}"))
    }
}

/// Checks one webhook.
fn configuration(of: &Configured, checks: &mut Vec<Check>) {
    let Configured { mutating, name, webhook, changed_by } = of;
    let mut wanted = vec![("CREATE", "pods"), ("UPDATE", "pods/ephemeralcontainers")];
    if !mutating {
        wanted.push(("UPDATE", "pods"));
    }
    let missing: Vec<String> = wanted
        .into_iter()
        .filter(|(operation, resource)| !of.covers(operation, resource))
        .map(|(operation, resource)| format!("{operation} {resource}"))
        .collect();
    let before = checks.len();
    if !missing.is_empty() {
        let severity = if *mutating { Severity::Warning } else { Severity::Error };
        let text = format!("{name} does not receive {}", missing.join(", "));
        checks.push(Check::found(CONFIGURATION, Diagnostic::new(&rules::WEBHOOK_RULES, text).with_severity(severity)));
    }
    if webhook.failure_policy.as_deref() != Some("Fail") {
        let text = format!("{name} has failurePolicy Ignore: pods pass while the webhook is down");
        checks.push(found(CONFIGURATION, &rules::FAILURE_POLICY, text));
    }
    if webhook.match_conditions.iter().flatten().next().is_none() {
        let text = format!("{name} has no matchConditions: every pod waits for the webhook");
        checks.push(found(CONFIGURATION, &rules::MATCH_CONDITIONS, text));
    }
    if !changed_by.is_empty() {
        let text = format!("the selectors of {name} were changed after the installation, by {}", changed_by.join(", "));
        checks.push(found(CONFIGURATION, &rules::SELECTORS_CHANGED, text));
    }
    if checks.len() == before {
        checks.push(Check::pass(CONFIGURATION, format!("{name} is complete")));
    }
    let bundle = webhook.client_config.ca_bundle.as_ref().map_or(&[][..], |bundle| &bundle.0);
    checks.push(certificate::authority(name, bundle));
}

/// Asks the API server to create, as a dry run, a pod that the webhook must refuse. A refusal with its message means that the
/// API server reached it, and trusts the certificate that it serves.
async fn call(cluster: &Cluster) -> Check {
    const PROBE: &str = "kubectl-gmsa-doctor-probe";
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": format!("{PROBE}-")},
        "spec": {
            "securityContext": {"windowsOptions": {"gmsaCredentialSpecName": PROBE}},
            "containers": [{"name": "probe", "image": "probe"}],
        },
    });
    let namespace = &cluster.namespace;
    let denial = format!("cred spec {PROBE} does not exist");
    match cluster.post_for_warnings(&format!("/api/v1/namespaces/{namespace}/pods?dryRun=All"), &pod).await {
        Ok(warnings) if warnings.iter().any(|warning| warning.contains(&denial)) => {
            let text = format!("the API server reaches it, but denials are not enforced (dry run in {namespace})");
            found(CALL, &rules::NOT_ENFORCED, text)
        }
        Ok(_) => {
            let text =
                format!("a pod that names a credential spec that does not exist would be created in {namespace}");
            found(CALL, &rules::WEBHOOK_NOT_CALLED, text)
        }
        Err(error) => {
            let chain = causes::chain(error.as_ref());
            if chain.contains(&denial) {
                let text = format!("the API server reaches it and trusts its certificate (dry run in {namespace})");
                Check::pass(CALL, text)
            } else if chain.contains("failed calling webhook") {
                found(CALL, &rules::WEBHOOK_UNREACHABLE, chain)
            } else {
                not_checked(CALL, &error)
            }
        }
    }
}

/// The namespaces that one of the webhooks does not review.
async fn excluded(cluster: &Cluster, webhooks: &[&Configured], checks: &mut Vec<Check>) -> Vec<String> {
    let read = async {
        let namespaces: Vec<Namespace> = cluster.list("/api/v1/namespaces").await?;
        let mut excluded = Vec::new();
        for namespace in &namespaces {
            let selected: Result<Vec<bool>, _> = webhooks.iter().map(|webhook| webhook.selects(namespace)).collect();
            if selected?.contains(&false) {
                excluded.extend(namespace.metadata.name.clone());
            }
        }
        Ok((namespaces.len(), excluded))
    };
    let (count, excluded) = match read.await {
        Ok(found) => found,
        Err(error) => {
            checks.push(not_checked(NAMESPACES, &error));
            return Vec::new();
        }
    };
    // The webhook's own namespaces are excluded on purpose.
    let own = |name: &str| {
        let service = |found: &&Configured| found.webhook.client_config.service.clone();
        let mut services = webhooks.iter().filter_map(service);
        name == "kube-system" || services.any(|ServiceReference { namespace, .. }| namespace == name)
    };
    let others: Vec<&String> = excluded.iter().filter(|name| !own(name)).collect();
    checks.push(if others.is_empty() {
        Check::pass(NAMESPACES, format!("pods are reviewed in {} of {count}", count - excluded.len()))
    } else {
        found(NAMESPACES, &rules::NAMESPACES_EXCLUDED, format!("pods are not reviewed in {}", first_five(&others)))
    });
    excluded
}
