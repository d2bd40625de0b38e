//! The custom resource for credential specs: whether it is installed, served, and from this release; before an installation, its owner.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::shared::{installer::Installer, output::first_five, rules, unread::Read, webhook::installer, world::World};
use gmsa_cluster::crd;
use gmsa_core::{
    credspec::{GROUP, PLURAL, VERSION},
    diagnostic::{Check, Diagnostic},
};

pub(super) const CRD: &str = "custom resource";

/// Updates a custom resource in place, for any creator. Otherwise, Helm 4 does not replace it.
const IN_PLACE: &str = "install with `--skip-crds --set crds.upgrade=true`, which brings it up to date in place";

pub(super) async fn check(world: &World) -> Read<Vec<Check>> {
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
pub(super) fn before_installation(crd: Option<CustomResourceDefinition>) -> Vec<Check> {
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
