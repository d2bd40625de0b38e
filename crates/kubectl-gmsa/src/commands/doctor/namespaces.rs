//! The namespaces whose pods the webhook does not review.

use k8s_openapi::api::{admissionregistration::v1::ServiceReference, core::v1::Namespace};

use super::{found, not_checked};
use crate::shared::{output::first_five, rules, webhook::Configured};
use gmsa_core::diagnostic::Check;

const NAMESPACES: &str = "namespaces";

/// The namespaces that one of the webhooks does not review.
pub(super) fn excluded(
    read: anyhow::Result<Vec<Namespace>>,
    webhooks: &[&Configured],
    checks: &mut Vec<Check>,
) -> Vec<String> {
    let select = |namespaces: Vec<Namespace>| {
        let mut excluded = Vec::new();
        for namespace in &namespaces {
            let selected: Result<Vec<bool>, _> = webhooks.iter().map(|webhook| webhook.selects(namespace)).collect();
            if selected?.contains(&false) {
                excluded.extend(namespace.metadata.name.clone());
            }
        }
        Ok((namespaces.len(), excluded))
    };
    let (count, excluded) = match read.and_then(select) {
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
