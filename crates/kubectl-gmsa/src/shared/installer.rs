//! The installer of an object: a Helm release, AKS, or a user who applied a manifest.

use gmsa_core::credspec::is_dns_subdomain;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Installer {
    /// The AKS feature (`az aks update --enable-windows-gmsa`): AKS manages it, installs the plugin for nodes outside the domain, and
    /// sets their DNS server. <https://learn.microsoft.com/azure/aks/use-group-managed-service-accounts>
    Aks,
    Helm {
        release: String,
        namespace: String,
    },
    /// Includes Argo CD, which applies the manifests that Helm renders.
    Manifest,
}

/// A Helm command that also takes over fields of other managers. Helm 3 has no server-side apply, so no conflicts and no flag for them.
fn forced(command: &str) -> String {
    format!("`{command} --force-conflicts` (Helm 3: without this flag)")
}

impl Installer {
    pub fn of(object: &ObjectMeta) -> Self {
        let label = |key: &str| object.labels.as_ref().and_then(|labels| labels.get(key)).map_or("", String::as_str);
        let annotation = |key: &str| object.annotations.as_ref().and_then(|annotations| annotations.get(key)).cloned();
        // https://learn.microsoft.com/azure/aks/use-labels#reserved-system-labels, https://learn.microsoft.com/azure/aks/core-aks-concepts
        let of_aks = ["kubernetes.azure.com/managedby", "app.kubernetes.io/managed-by"];
        if of_aks.iter().any(|key| label(key) == "aks") || !label("addonmanager.kubernetes.io/mode").is_empty() {
            return Self::Aks;
        }
        match (annotation("meta.helm.sh/release-name"), annotation("meta.helm.sh/release-namespace")) {
            // AKS installs its features as releases of this name.
            (Some(release), _) if release.starts_with("aks-managed-") => Self::Aks,
            // Checked because they become part of commands, and any user who may annotate the object can set them.
            (Some(release), Some(namespace)) if is_dns_subdomain(&release) && is_dns_subdomain(&namespace) => {
                Self::Helm { release, namespace }
            }
            _ => Self::Manifest,
        }
    }

    /// The command that restores deleted or changed objects of the installation. It keeps the values of a release, and takes over
    /// fields that others have changed.
    pub fn restore(&self) -> String {
        match self {
            Self::Helm { release, namespace } => forced(&format!("helm upgrade {release} CHART -n {namespace}")),
            Self::Aks => "`az aks update --enable-windows-gmsa`".to_owned(),
            Self::Manifest => {
                "`kubectl apply --server-side --force-conflicts -f` with the manifest that installed it".to_owned()
            }
        }
    }

    /// The command that installs it again after its namespace was deleted. It adopts the objects that remain.
    pub fn install_again(&self) -> String {
        match self {
            Self::Helm { release, namespace } => {
                let install = forced(&format!("helm install {release} CHART -n {namespace} --create-namespace"));
                format!(
                    "The record of the release was deleted with it. Install it again, with the values of before: {install}."
                )
            }
            Self::Aks | Self::Manifest => format!("Install it again: {}.", self.restore()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_release_whose_name_is_no_name_is_no_part_of_a_command() {
        let annotations = [("meta.helm.sh/release-name", "x; reboot"), ("meta.helm.sh/release-namespace", "gmsa")];
        let annotations: BTreeMap<_, _> = annotations.map(|(key, value)| (key.into(), value.into())).into();
        let of_release = ObjectMeta { annotations: Some(annotations), ..ObjectMeta::default() };
        assert_eq!(
            Installer::of(&of_release).restore(),
            "`kubectl apply --server-side --force-conflicts -f` with the manifest that installed it"
        );
    }
}
