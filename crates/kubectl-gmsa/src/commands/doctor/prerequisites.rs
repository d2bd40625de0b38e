//! What an installation needs of the cluster: the version of the API server, and the custom resource for credential specs; before an installation
//! (`doctor --pre`) also its namespace, and which GMSA objects exist already.
//!
//! Invariants: nothing is created, and no webhook is called.

use anyhow::ensure;
use gmsa_cluster::{crd, kubernetes_version::numbers};
use gmsa_core::{
    credspec::{GROUP, PLURAL, VERSION, is_dns_subdomain},
    diagnostic::{Check, Diagnostic, Severity},
};
use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::version::Info,
};

use super::{configuration, install::MATCH_CONDITIONS};
use crate::shared::{
    installer::Installer,
    output::first_five,
    rules,
    unread::Read,
    webhook::{installer, no_namespace},
    world::World,
};

pub(super) const API_SERVER: &str = "API server";

/// The oldest minor version of Kubernetes 1 that the chart installs on: its `kubeVersion`.
const OLDEST: u32 = 25;

/// The version; before an installation also whether the chart installs on it.
pub(super) async fn check_api_server(world: &World, is_installed: bool) -> Read<Vec<Check>> {
    let version = world.get::<Info>("/version").await?.git_version;
    let upgrade = "Upgrade the cluster to 1.28 or later";
    let fix = if !is_installed {
        format!("{upgrade}, or read \"Older clusters\" in docs/install.md first.")
    } else if let Some(installer) = installer(world).await {
        format!("{upgrade}, then run {}.", installer.restore())
    } else {
        format!("{upgrade}.")
    };
    Ok(vec![judged_version(&version, is_installed, fix)])
}

fn judged_version(version: &str, is_installed: bool, fix: String) -> Check {
    let known = numbers(version);
    if known.is_none() && !is_installed {
        let text = format!("could not be checked: {version:?} is not a version of Kubernetes");
        return Check::breach(API_SERVER, &rules::NOT_CHECKED, text);
    }
    if known.is_none_or(|known| known >= (1, MATCH_CONDITIONS)) {
        let version = if version.is_empty() { "of unknown version" } else { version };
        return Check::pass(API_SERVER, format!("answers, {version}"));
    }
    if known < Some((1, OLDEST)) && !is_installed {
        let text = format!("{version} is older than 1.{OLDEST}, the oldest that the chart installs on");
        return Check::breach(API_SERVER, &rules::KUBERNETES_VERSION, text);
    }
    let text = format!(
        "{version} has no match conditions: pods of all namespaces but kube-system and the webhook's own wait for the webhook"
    );
    let severity = if is_installed { Severity::Note } else { Severity::Warning };
    let older = Diagnostic::new(&rules::KUBERNETES_VERSION, text).with_severity(severity);
    Check::found(API_SERVER, older.with_fix(fix))
}

pub(super) const CRD: &str = "custom resource";

/// Updates a custom resource in place, for any creator. Otherwise, Helm 4 does not replace it.
const IN_PLACE: &str = "install with `--skip-crds --set crds.upgrade=true`, which brings it up to date in place";

pub(super) async fn check_crd(world: &World) -> Read<Vec<Check>> {
    let (crd, installer) = tokio::join!(world.find(crd::PATH), installer(world));
    let installer = installer.as_ref();
    Ok(vec![if let Some(crd) = &crd? {
        installed(crd, installer)
    } else {
        let missing = Diagnostic::new(&rules::CRD_MISSING, format!("{PLURAL}.{GROUP} is not installed"));
        Check::found(CRD, Diagnostic { fix: installer.map(restored), ..missing })
    }])
}

/// Checks an installed custom resource; `installer` installed the webhook, if there is one.
fn installed(crd: &CustomResourceDefinition, installer: Option<&Installer>) -> Check {
    let versions = crd.spec.versions.iter().filter(|version| version.served);
    let served: Vec<&str> = versions.map(|version| version.name.as_str()).collect();
    let is_served = served.contains(&VERSION);
    let served = served.join(", ");
    let mut conditions = crd.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let is_established = conditions.any(|condition| condition.type_ == "Established" && condition.status == "True");
    let (revision, own) = (crd::revision(&crd.metadata), crd::own_revision());
    if !is_served {
        Check::breach(CRD, &rules::CRD_NOT_SERVED, format!("{VERSION} is not served, only: {served}"))
    } else if !is_established {
        Check::breach(CRD, &rules::CRD_NOT_SERVED, "it is not established")
    } else if revision < own && installer != Some(&Installer::Aks) {
        let text = format!("serves {served}, but is older than this release's (revision {revision}, not {own})");
        Check::breach(CRD, &rules::CRD_OUTDATED, text)
    } else {
        Check::pass(CRD, format!("serves {served}"))
    }
}

/// The remedy that creates the custom resource again for an installed webhook.
fn restored(installer: &Installer) -> String {
    let create = match installer {
        // `helm upgrade` never creates what is in the folder `crds`:
        // https://helm.sh/docs/chart_best_practices/custom_resource_definitions/
        Installer::Helm { .. } => "`helm show crds CHART | kubectl apply --server-side -f -`",
        Installer::Aks => "`az aks update --enable-windows-gmsa`",
        Installer::Manifest => "`kubectl apply --server-side -f deploy/gmsa-crd.yaml`",
    };
    format!("{create}, then apply the credential specs again: they were deleted with it.")
}

/// Whether an installation would create it, keep it, or change it.
fn crd_before_installation(crd: Option<CustomResourceDefinition>) -> Vec<Check> {
    let Some(crd) = crd else {
        return vec![Check::pass(CRD, format!("{PLURAL}.{GROUP} does not exist yet: the installation creates it"))];
    };
    let stored = stored(&crd);
    let first = if crd::revision(&crd.metadata) == 0 { foreign(&crd) } else { installed(&crd, None) };
    std::iter::once(first).chain(stored).collect()
}

/// A custom resource of another project, with its owner.
fn foreign(crd: &CustomResourceDefinition) -> Check {
    let (owner, fix) = match Installer::of(&crd.metadata) {
        Installer::Helm { release, namespace, .. } => (
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
            "applied by another client".to_owned(),
            format!("Keep it: deleting it deletes every credential spec. Instead, {IN_PLACE}."),
        ),
    };
    let text = format!("{PLURAL}.{GROUP} exists and is not this project's, but {owner}");
    Check::found(CRD, Diagnostic::new(&rules::CRD_FOREIGN, text).with_fix(fix))
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

/// The namespace that the documentation installs into.
pub(super) const NAMESPACE: &str = "gmsa-webhook";

const NAMESPACE_CHECK: &str = "namespace";

/// The checks; `namespace` is the target of the installation.
pub(super) async fn before_installation(world: &World, namespace: &str) -> anyhow::Result<Vec<Check>> {
    ensure!(!namespace.contains('.') && is_dns_subdomain(namespace), "{namespace:?} is not the name of a namespace");
    let read = world.find::<Namespace>(&format!("/api/v1/namespaces/{namespace}")).await;
    let judged = [
        (API_SERVER, check_api_server(world, false).await),
        (NAMESPACE_CHECK, read.map(|read| vec![self::namespace(namespace, read.as_ref())])),
        (CRD, world.find(crd::PATH).await.map(crd_before_installation)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_distributions_are_read() {
        for (text, complaint) in [
            ("v1.36.2", None),
            ("v1.30.0-gke.1", None),
            ("v1.31.4+rke2r1", None),
            ("v2.0.0", None),
            ("v1.28.0-eks-1234", None),
            ("v1.27.16-eks-1234", Some((Severity::Warning, "kubernetes-version"))),
            ("v1.25.9", Some((Severity::Warning, "kubernetes-version"))),
            ("v1.24.17", Some((Severity::Error, "kubernetes-version"))),
            ("", Some((Severity::Warning, "not-checked"))),
            ("latest", Some((Severity::Warning, "not-checked"))),
        ] {
            let found =
                judged_version(text, false, String::new()).result.err().map(|found| (found.severity, found.rule.id));
            assert_eq!(found, complaint, "{text}");
        }
    }

    #[test]
    fn the_oldest_version_is_that_of_the_chart() {
        let chart = include_str!("../../../../../charts/gmsa-webhook/Chart.yaml");
        assert!(chart.contains(&format!("\nkubeVersion: \">=1.{OLDEST}.0-0\"\n")), "{chart}");
        let remedy = rules::KUBERNETES_VERSION.remedy;
        assert!(remedy.contains(&format!("the chart needs Kubernetes 1.{OLDEST} or later")), "{remedy}");
    }
}
