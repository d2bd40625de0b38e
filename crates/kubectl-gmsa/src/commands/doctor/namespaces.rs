//! The namespaces whose pods the webhook does not review.

use k8s_openapi::api::{admissionregistration::v1::ServiceReference, core::v1::Namespace};
use kube::core::ParseExpressionError;

use super::{
    found,
    parts::{Judged, Parts},
};
use crate::shared::{not_checked::not_checked, output::first_five, rules, webhook::Configured};
use gmsa_core::diagnostic::Check;

pub(super) const NAMESPACES: &str = "namespaces";

pub(super) fn check(parts: &Parts) -> Judged<'_> {
    let webhooks = parts.of_pods()?;
    let namespaces = parts.namespaces.as_ref()?;
    if webhooks.is_empty() {
        return Ok(Vec::new());
    }
    let excluded = match excluded(namespaces, &webhooks) {
        Ok(excluded) => excluded,
        Err(error) => return Ok(vec![not_checked(NAMESPACES, &error.into())]),
    };
    // The webhook's own namespaces are excluded on purpose.
    let own = |name: &str| {
        let service = |found: &&Configured| found.webhook.client_config.service.clone();
        let mut services = webhooks.iter().filter_map(service);
        name == "kube-system" || services.any(|ServiceReference { namespace, .. }| namespace == name)
    };
    let others: Vec<&str> = excluded.iter().copied().filter(|name| !own(name)).collect();
    Ok(vec![if others.is_empty() {
        let (reviewed, count) = (namespaces.len() - excluded.len(), namespaces.len());
        Check::pass(NAMESPACES, format!("pods are reviewed in {reviewed} of {count}"))
    } else {
        found(NAMESPACES, &rules::NAMESPACES_EXCLUDED, format!("pods are not reviewed in {}", first_five(&others)))
    }])
}

/// The namespaces that one of the webhooks does not review.
pub(super) fn excluded<'n>(
    namespaces: &'n [Namespace],
    webhooks: &[&Configured],
) -> Result<Vec<&'n str>, ParseExpressionError> {
    let mut excluded = Vec::new();
    for namespace in namespaces {
        let selected: Result<Vec<bool>, _> = webhooks.iter().map(|webhook| webhook.selects(namespace)).collect();
        if selected?.contains(&false) {
            excluded.extend(namespace.metadata.name.as_deref());
        }
    }
    Ok(excluded)
}
