//! The custom resource for credential specs: whether it is installed, served, and as new as this release.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::{
    found,
    parts::{Judged, Parts},
};
use crate::shared::{installer::Installer, rules};
use gmsa_cluster::crd;
use gmsa_core::{
    credspec::{GROUP, PLURAL, VERSION},
    diagnostic::{Check, Diagnostic},
};

pub(super) const CRD: &str = "custom resource";

pub(super) fn check(parts: &Parts) -> Judged<'_> {
    let installer = parts.installer.as_ref();
    Ok(vec![if let Some(crd) = parts.crd.as_ref()? {
        installed(crd, installer)
    } else {
        let missing = Diagnostic::new(&rules::CRD_MISSING, format!("{PLURAL}.{GROUP} is not installed"));
        Check::found(CRD, Diagnostic { fix: installer.map(restored), ..missing })
    }])
}

/// Of the one that is there; `installer` installed the webhook, if it is there.
pub(super) fn installed(crd: &CustomResourceDefinition, installer: Option<&Installer>) -> Check {
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
    } else if revision < own && installer != Some(&Installer::Aks) {
        let text = format!("serves {served}, but is older than this release's (revision {revision}, not {own})");
        found(CRD, &rules::CRD_OUTDATED, text)
    } else {
        Check::pass(CRD, format!("serves {served}"))
    }
}

/// What creates the custom resource again where the webhook is installed.
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
