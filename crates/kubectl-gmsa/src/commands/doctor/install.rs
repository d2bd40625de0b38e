//! The installation: the API server, and the webhook configurations.

use std::collections::BTreeMap;

use k8s_openapi::jiff::Timestamp;

use super::{
    configuration::{self, CONFIGURATION},
    parts::{Judged, Parts},
};
use crate::shared::{installer::Installer, output::first_five, rules, webhook::Configured};
use gmsa_core::diagnostic::{Check, Diagnostic};

pub(super) const VERSION: &str = "API server";

pub(super) fn version(parts: &Parts) -> Judged<'_> {
    let version = parts.version.as_ref()?.git_version.as_str();
    let version = if version.is_empty() { "of unknown version" } else { version };
    Ok(vec![Check::pass(VERSION, format!("answers, {version}"))])
}

pub(super) fn configurations(parts: &Parts) -> Judged<'_> {
    let webhooks = parts.webhooks.as_ref()?;
    let (installer, mut checks) = (parts.installer(), Vec::new());
    for mutating in [true, false] {
        of_kind(mutating, webhooks, installer.as_ref(), parts.taken, &mut checks);
    }
    Ok(checks)
}

/// Checks the webhooks in the configurations of one of the two kinds.
fn of_kind(
    mutating: bool,
    webhooks: &[Configured],
    installer: Option<&Installer>,
    now: Timestamp,
    checks: &mut Vec<Check>,
) {
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
        configuration::add_checks(found, now, checks);
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
