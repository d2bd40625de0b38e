//! The webhook configurations: whether both exist, the requests and selectors of each webhook, its failure policy, and the excluded
//! namespaces.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{api::core::v1::Namespace, jiff::Timestamp};
use kube::core::ParseExpressionError;
use serde_json::{Value, json};

use super::{
    certificate,
    install::{MATCH_CONDITIONS, has_kubernetes, is_ours},
};
use crate::shared::{
    configured::{Configured, kind},
    installer::Installer,
    output::first_five,
    rules,
    unread::{Read, not_checked},
    webhook::{installer, reviewing},
    world::World,
};
use gmsa_core::{
    diagnostic::{Check, Diagnostic, Severity},
    quote::shell,
};

pub(super) const CONFIGURATION: &str = "configuration";
pub(super) const NAMESPACES: &str = "namespaces";

pub(super) async fn checks(world: &World) -> Read<Vec<Check>> {
    let webhooks = world.webhooks().await?;
    let (installer, has_conditions) = tokio::join!(installer(world), has_kubernetes(world, MATCH_CONDITIONS));
    let of_kind = |mutating| {
        let of_pods = webhooks.iter().filter(|found| found.mutating == mutating && found.is_of_pods());
        let of_pods: Vec<&Configured> = of_pods.collect();
        let missing = of_pods.is_empty().then(|| missing(mutating, installer.as_ref()));
        let each: Vec<Check> =
            of_pods.iter().flat_map(|found| of_webhook(found, has_conditions, world.taken())).collect();
        missing.into_iter().chain(each).chain(duplicates(mutating, &of_pods))
    };
    Ok([true, false].into_iter().flat_map(of_kind).collect())
}

fn missing(mutating: bool, installer: Option<&Installer>) -> Check {
    let kind = kind(mutating);
    let missing = Diagnostic::new(&rules::WEBHOOK_MISSING, format!("no {kind} sends pods to a GMSA webhook"));
    let fix = installer.map(|installer| format!("{} creates it again.", installer.restore()));
    Check::found(CONFIGURATION, Diagnostic { fix, ..missing })
}

/// The findings on several installations: within one, all webhooks have different names.
fn duplicates(mutating: bool, webhooks: &[&Configured]) -> Vec<Check> {
    let mut by_name: BTreeMap<&str, Vec<&Configured>> = BTreeMap::new();
    // The webhook of AKS is not a forgotten installation.
    for found in webhooks.iter().filter(|found| is_ours(found)) {
        by_name.entry(&found.webhook.name).or_default().push(found);
    }
    let twice = by_name.values().filter(|same| same.len() > 1).map(|same| {
        let names = first_five(same.iter().map(|found| &found.name));
        let text = format!("{} {}s of several installations are for GMSA: {names}", same.len(), kind(mutating));
        Check::breach(CONFIGURATION, &rules::WEBHOOK_DUPLICATE, text)
    });
    twice.collect()
}

/// The checks of one webhook.
fn of_webhook(of: &Configured, has_conditions: bool, now: Timestamp) -> Vec<Check> {
    let Configured { mutating, webhook, changed_by, installer, .. } = of;
    let name = &format!("{} ({})", of.name, if *mutating { "mutating" } else { "validating" });
    let unconditional = webhook.match_conditions.iter().flatten().next().is_none();
    if *installer == Installer::Aks {
        let mut text = format!(
            "{name} is managed by AKS (--enable-windows-gmsa), which also gives the nodes their plugin and DNS: keep it. Every webhook for GMSA must admit a pod"
        );
        if webhook.failure_policy.as_deref() == Some("Fail") && unconditional {
            text += ", and while this one does not answer, no pod is created at all";
        }
        return vec![Check::pass(CONFIGURATION, text)];
    }
    let mut wanted = vec![("CREATE", "pods"), ("UPDATE", "pods/ephemeralcontainers")];
    if !mutating {
        wanted.push(("UPDATE", "pods"));
    }
    let missing: Vec<String> = wanted
        .into_iter()
        .filter(|(operation, resource)| !of.covers(operation, resource))
        .map(|(operation, resource)| format!("{operation} {resource}"))
        .collect();
    let mut checks = Vec::new();
    if !missing.is_empty() {
        let severity = if *mutating { Severity::Warning } else { Severity::Error };
        let text = format!("{name} does not receive {}", missing.join(", "));
        checks.push(Check::found(CONFIGURATION, Diagnostic::new(&rules::WEBHOOK_RULES, text).with_severity(severity)));
    }
    if webhook.failure_policy.as_deref() != Some("Fail") {
        let text = format!("{name} has failurePolicy Ignore: pods pass while the webhook is down");
        checks.push(Check::breach(CONFIGURATION, &rules::FAILURE_POLICY, text));
    }
    // Older API servers have no match conditions; the check of the version reports that.
    if unconditional && has_conditions {
        let text = format!("{name} has no matchConditions: every pod waits for the webhook");
        let added = Diagnostic::new(&rules::MATCH_CONDITIONS, text);
        checks.push(Check::found(CONFIGURATION, added.with_fix(format!("{} adds them.", installer.restore()))));
    }
    if !changed_by.is_empty() {
        let text = format!("the selectors of {name} were changed after the installation, by {}", changed_by.join(", "));
        let changed = Diagnostic::new(&rules::SELECTORS_CHANGED, text).with_fix(restored(of));
        checks.push(Check::found(CONFIGURATION, changed));
    }
    if checks.is_empty() {
        checks.push(Check::pass(CONFIGURATION, format!("{name} is complete")));
    }
    let bundle = webhook.client_config.ca_bundle.as_ref().map_or(&[][..], |bundle| &bundle.0);
    checks.push(certificate::authority(name, bundle, now));
    checks
}

/// The commands that restore the selectors. Server-side apply resets only fields that it applies: a selector that the chart does not
/// render stays until it is removed.
fn restored(of: &Configured) -> String {
    let pointer = |field: &str| format!("/webhooks/{}/{field}", of.index);
    let test = json!({"op": "test", "path": pointer("name"), "value": of.webhook.name});
    let selectors =
        [("namespaceSelector", &of.webhook.namespace_selector), ("objectSelector", &of.webhook.object_selector)];
    let present = selectors.iter().filter(|(_, selector)| selector.is_some());
    let removals = present.map(|(field, _)| json!({"op": "remove", "path": pointer(field)}));
    let patch = Value::Array(std::iter::once(test).chain(removals).collect());
    let (kind, name) = (kind(of.mutating).to_lowercase(), of.configuration());
    let apply = of.installer.restore();
    let command = |patch| format!("`kubectl patch {kind} {name} --type=json -p {patch}`");
    let remove = shell::json(&patch.to_string()).map_or_else(|| "Remove its selectors".to_owned(), command);
    format!("{remove}, then {apply}, which restores those of the chart's values.")
}

/// The line about namespaces whose pods are not reviewed.
pub(super) async fn namespaces(world: &World) -> Read<Vec<Check>> {
    let (webhooks, namespaces) = tokio::join!(world.webhooks(), world.list::<Namespace>("/api/v1/namespaces"));
    let (webhooks, namespaces) = (reviewing(webhooks?), namespaces?);
    if webhooks.is_empty() {
        return Ok(Vec::new());
    }
    let excluded = match excluded(&namespaces, &webhooks) {
        Ok(excluded) => excluded,
        Err(error) => return Ok(vec![not_checked(NAMESPACES, &error.into())]),
    };
    // The webhook's own namespaces are excluded on purpose.
    let own = |name: &str| {
        let mut services = webhooks.iter().filter_map(|found| found.webhook.client_config.service.as_ref());
        name == "kube-system" || services.any(|service| service.namespace == name)
    };
    let others: Vec<&str> = excluded.iter().copied().filter(|name| !own(name)).collect();
    Ok(vec![if others.is_empty() {
        let (reviewed, count) = (namespaces.len() - excluded.len(), namespaces.len());
        Check::pass(NAMESPACES, format!("pods are reviewed in {reviewed} of {count}"))
    } else {
        let text = format!("pods are not reviewed in {}", first_five(&others));
        Check::breach(NAMESPACES, &rules::NAMESPACES_EXCLUDED, text)
    }])
}

/// The namespaces that one of the webhooks does not review.
pub(super) fn excluded<'n>(
    namespaces: &'n [Namespace],
    webhooks: &[&Configured],
) -> Result<Vec<&'n str>, ParseExpressionError> {
    let mut excluded = Vec::new();
    for namespace in namespaces {
        let labels = namespace.metadata.labels.as_ref();
        let selected: Result<Vec<bool>, _> = webhooks.iter().map(|webhook| webhook.selects(labels)).collect();
        if selected?.contains(&false) {
            excluded.extend(namespace.metadata.name.as_deref());
        }
    }
    Ok(excluded)
}

/// The existing webhooks for GMSA, of this project or another: a check for each installation.
pub(super) fn before_installation(webhooks: &[Configured]) -> Vec<Check> {
    // The Go webhook has no rule for ephemeral containers.
    let is_ours = |found: &Configured| found.covers("UPDATE", "pods/ephemeralcontainers");
    let mut installations: BTreeMap<(&Installer, bool), BTreeSet<&str>> = BTreeMap::new();
    for found in webhooks.iter().filter(|found| found.is_of_pods()) {
        installations.entry((&found.installer, is_ours(found))).or_default().insert(found.configuration());
    }
    if installations.is_empty() {
        return vec![Check::pass(CONFIGURATION, "there is no other webhook for GMSA")];
    }
    installations.into_iter().map(|((installer, ours), names)| installed(installer, ours, &first_five(names))).collect()
}

fn installed(installer: &Installer, ours: bool, names: &str) -> Check {
    let (owner, fix) = match installer {
        Installer::Helm { release, namespace, .. } => (
            format!("the Helm release {release} in {namespace}"),
            format!(
                "Upgrade it in place, by docs/migrate.md: `helm upgrade {release} charts/gmsa-webhook -n {namespace}` with the values that it names."
            ),
        ),
        Installer::Aks => (
            "AKS (--enable-windows-gmsa)".to_owned(),
            "Keep it: AKS manages it, and the nodes get their plugin and DNS from it. See docs/platforms.md.".to_owned(),
        ),
        Installer::Manifest => (
            "a manifest".to_owned(),
            "Upgrade it in place, with the same name and namespace: \"An installation by its script\" in docs/migrate.md."
                .to_owned(),
        ),
    };
    if ours {
        let text = format!("this webhook is installed already, by {owner} ({names}): `kubectl gmsa doctor` checks it");
        return Check::pass(CONFIGURATION, text);
    }
    let text = format!("another webhook for GMSA is installed, by {owner} ({names}): both must admit a pod");
    Check::found(CONFIGURATION, Diagnostic::new(&rules::WEBHOOK_PRESENT, text).with_fix(fix))
}
