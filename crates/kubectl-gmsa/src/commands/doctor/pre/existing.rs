//! What an installation finds: a custom resource for credential specs, and webhooks for GMSA, of somebody else or of this project.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use super::super::{
    configuration::CONFIGURATION,
    crd::{self, CRD},
};
use crate::shared::{installer::Installer, not_checked::Read, output::first_five, rules, webhook::Configured};
use gmsa_cluster::crd::{own_revision, revision};
use gmsa_core::{
    credspec::{GROUP, PLURAL, VERSION},
    diagnostic::{Check, Diagnostic},
};

/// Helm's field manager.
const HELM: &str = "helm";

/// What brings a custom resource up to date in place, whoever created it; Helm 4 does not replace it otherwise.
const IN_PLACE: &str = "install with `--skip-crds --set crds.upgrade=true`, which brings it up to date in place";

/// The checks of the custom resource that is there.
pub(super) fn custom_resource(read: Read<Option<CustomResourceDefinition>>) -> Vec<Check> {
    let crd = match read {
        Ok(Some(crd)) => crd,
        Ok(None) => {
            return vec![Check::pass(CRD, format!("{PLURAL}.{GROUP} does not exist yet: the installation creates it"))];
        }
        Err(unread) => return vec![unread.check(CRD)],
    };
    let stored = stored(&crd);
    let first = match revision(&crd.metadata) {
        0 => foreign(&crd),
        of if of != own_revision() => other_revision(&crd),
        _ => crd::installed(&crd, None),
    };
    std::iter::once(first).chain(stored).collect()
}

/// One of another release, which Helm would change: what another client has applied is a conflict.
fn other_revision(crd: &CustomResourceDefinition) -> Check {
    let owners: Vec<&str> = owners(&crd.metadata).into_iter().filter(|name| *name != HELM).collect();
    if owners.is_empty() {
        return crd::installed(crd, None);
    }
    let (owners, of) = (first_five(&owners), revision(&crd.metadata));
    let text = format!(
        "it is of revision {of}, not {}, and {owners} has applied it: `helm install` stops with a conflict",
        own_revision()
    );
    Check::found(CRD, Diagnostic::new(&rules::CRD_OUTDATED, text).with_fix(format!("Instead, {IN_PLACE}.")))
}

/// A custom resource that is not this project's, and whose it is.
fn foreign(crd: &CustomResourceDefinition) -> Check {
    let (owner, fix) = match Installer::of(&crd.metadata) {
        Installer::Helm { release, namespace } => (
            format!("of the Helm release {release} in {namespace}"),
            format!(
                "`helm uninstall {release} -n {namespace}` would delete it, and with it every credential spec: keep that release, and {IN_PLACE}."
            ),
        ),
        Installer::Aks => (
            "managed by AKS (--enable-windows-gmsa)".to_owned(),
            "Keep it as it is: install with `--skip-crds`.".to_owned(),
        ),
        Installer::Manifest => (
            managers(&crd.metadata),
            format!("Keep it: deleting it deletes every credential spec. Instead, {IN_PLACE}."),
        ),
    };
    let text = format!("{PLURAL}.{GROUP} exists and is not this project's, but {owner}");
    Check::found(CRD, Diagnostic::new(&rules::CRD_FOREIGN, text).with_fix(fix))
}

/// The field managers of an object, but for those of its status.
fn owners(object: &ObjectMeta) -> BTreeSet<&str> {
    let managers = object.managed_fields.iter().flatten().filter(|entry| entry.subresource.is_none());
    managers.filter_map(|entry| entry.manager.as_deref()).collect()
}

/// Who applied an object; the API server itself writes its status.
fn managers(object: &ObjectMeta) -> String {
    match Vec::from_iter(owners(object)) {
        names if names.is_empty() => "applied by an unknown client".to_owned(),
        names => format!("applied by {}", first_five(&names)),
    }
}

/// Whether credential specs may be stored in an old version.
/// <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#upgrade-existing-objects-to-a-new-stored-version>
fn stored(crd: &CustomResourceDefinition) -> Option<Check> {
    let versions = crd.status.as_ref().and_then(|status| status.stored_versions.as_ref())?;
    let old: Vec<&String> = versions.iter().filter(|version| *version != VERSION).collect();
    if old.is_empty() {
        return None;
    }
    let text = format!("credential specs may be stored as {}", first_five(&old));
    let rewrite = format!("`kubectl get {PLURAL}.{GROUP} -o json | kubectl replace -f -`");
    let forget = format!(
        "`kubectl patch crd {PLURAL}.{GROUP} --subresource=status --type=merge -p '{{\"status\":{{\"storedVersions\":[\"{VERSION}\"]}}}}'`"
    );
    let is_stored = |version: &str| crd.spec.versions.iter().any(|found| found.storage && found.name == version);
    let first = if is_stored(VERSION) { "" } else { "after the custom resource has been brought up to date, " };
    let fix = format!(
        "`crds.upgrade=true` in the chart does this. By hand: {first}{rewrite} writes each as {VERSION}; then {forget}. The installation does not depend on it."
    );
    Some(Check::found(CRD, Diagnostic::new(&rules::STORED_VERSION, text).with_fix(fix)))
}

/// The checks of the webhooks for GMSA that are there, one for each installation.
pub(super) fn webhooks(read: Read<Vec<Configured>>) -> Vec<Check> {
    let webhooks = match read {
        Ok(webhooks) => webhooks,
        Err(unread) => return vec![unread.check(CONFIGURATION)],
    };
    // The Go webhook has no rule for ephemeral containers.
    let is_ours = |found: &Configured| found.covers("UPDATE", "pods/ephemeralcontainers");
    let mut installations: BTreeMap<(&Installer, bool), BTreeSet<&str>> = BTreeMap::new();
    for found in webhooks.iter().filter(|found| found.is_of_pods()) {
        installations.entry((&found.installer, is_ours(found))).or_default().insert(found.configuration());
    }
    if installations.is_empty() {
        return vec![Check::pass(CONFIGURATION, "there is no other webhook for GMSA")];
    }
    installations
        .into_iter()
        .map(|((installer, ours), names)| installed(installer, ours, &Vec::from_iter(names)))
        .collect()
}

fn installed(installer: &Installer, ours: bool, names: &[&str]) -> Check {
    let (owner, fix) = match installer {
        Installer::Helm { release, namespace } => (
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
    let names = first_five(names);
    if ours {
        let text = format!("this webhook is installed already, by {owner} ({names}): `kubectl gmsa doctor` checks it");
        return Check::pass(CONFIGURATION, text);
    }
    let text = format!("another webhook for GMSA is installed, by {owner} ({names}): both must admit a pod");
    Check::found(CONFIGURATION, Diagnostic::new(&rules::WEBHOOK_PRESENT, text).with_fix(fix))
}
