//! Who installed an object: a Helm release, AKS, or a user who applied a manifest.

use gmsa_core::credspec::is_dns_subdomain;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Installer {
    /// The feature of AKS (`az aks update --enable-windows-gmsa`), which AKS manages: it also installs the plugin for nodes outside the
    /// domain and sets their DNS server. <https://learn.microsoft.com/azure/aks/use-group-managed-service-accounts>
    Aks,
    Helm {
        release: String,
        namespace: String,
    },
    /// Argo CD too, which applies what Helm renders.
    Manifest,
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
            // They become part of commands, and any user who may annotate the object can set them.
            (Some(release), Some(namespace)) if is_dns_subdomain(&release) && is_dns_subdomain(&namespace) => {
                Self::Helm { release, namespace }
            }
            _ => Self::Manifest,
        }
    }

    /// The command that creates again what was deleted or changed of the installation. It keeps the values of a release; what others have
    /// changed would be a conflict.
    pub fn restore(&self) -> String {
        match self {
            Self::Helm { release, namespace } => {
                format!("`helm upgrade {release} CHART -n {namespace} --force-conflicts`")
            }
            Self::Aks => "`az aks update --enable-windows-gmsa`".to_owned(),
            Self::Manifest => "`kubectl apply --server-side -f` with the manifest that installed it".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_release_whose_name_is_no_name_is_no_part_of_a_command() {
        let of = |release: &str| {
            let annotations = [("meta.helm.sh/release-name", release), ("meta.helm.sh/release-namespace", "gmsa")];
            let annotations: BTreeMap<_, _> = annotations.map(|(key, value)| (key.into(), value.into())).into();
            Installer::of(&ObjectMeta { annotations: Some(annotations), ..ObjectMeta::default() }).restore()
        };
        assert_eq!(of("webhook"), "`helm upgrade webhook CHART -n gmsa --force-conflicts`");
        assert_eq!(of("x; reboot"), "`kubectl apply --server-side -f` with the manifest that installed it");
    }
}
