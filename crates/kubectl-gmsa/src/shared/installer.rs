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
        writes: HelmWrites,
    },
    /// Includes Argo CD, which applies the manifests that Helm renders.
    Manifest,
}

/// The way Helm writes objects, as its field manager shows. Only server-side apply reports a field that another manager owns;
/// Helm 3 has no flag for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum HelmWrites {
    /// As Helm 3 does.
    Update,
    /// As Helm 4 does for a release of its own.
    Apply,
    #[default]
    Unknown,
}

impl HelmWrites {
    fn of(object: &ObjectMeta) -> Self {
        let mut entries = object.managed_fields.iter().flatten();
        let of_helm = entries.find(|entry| entry.manager.as_deref() == Some("helm"));
        match of_helm.and_then(|entry| entry.operation.as_deref()) {
            Some("Update") => Self::Update,
            Some("Apply") => Self::Apply,
            _ => Self::Unknown,
        }
    }

    /// A Helm command that also takes over fields of other managers.
    fn forced(self, command: &str) -> String {
        match self {
            Self::Update => format!("`{command}`"),
            Self::Apply => format!("`{command} --force-conflicts`"),
            Self::Unknown => format!("`{command}` (Helm 4: with `--force-conflicts`)"),
        }
    }
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
                Self::Helm { release, namespace, writes: HelmWrites::of(object) }
            }
            _ => Self::Manifest,
        }
    }

    /// The command that restores deleted or changed objects of the installation. It keeps the values of a release, and takes over
    /// fields that others have changed.
    pub fn restore(&self) -> String {
        match self {
            Self::Helm { release, namespace, writes } => {
                writes.forced(&format!("helm upgrade {release} CHART -n {namespace}"))
            }
            Self::Aks => "`az aks update --enable-windows-gmsa`".to_owned(),
            Self::Manifest => {
                "`kubectl apply --server-side --force-conflicts -f` with the manifest that installed it".to_owned()
            }
        }
    }

    /// The command that installs a release again after its record was lost. It adopts the objects that remain.
    pub fn install_again(&self) -> Option<String> {
        let Self::Helm { release, namespace, writes } = self else { return None };
        Some(writes.forced(&format!("helm install {release} CHART -n {namespace} --create-namespace")))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;

    use super::*;

    fn release(name: &str, operation: Option<&str>) -> Installer {
        let annotations = [("meta.helm.sh/release-name", name), ("meta.helm.sh/release-namespace", "gmsa")];
        let annotations: BTreeMap<_, _> = annotations.map(|(key, value)| (key.into(), value.into())).into();
        let entry = |manager: &str, operation: &str| ManagedFieldsEntry {
            manager: Some(manager.to_owned()),
            operation: Some(operation.to_owned()),
            ..ManagedFieldsEntry::default()
        };
        let of_helm = operation.map(|operation| entry("helm", operation));
        let managed = [entry("kubectl-edit", "Update")].into_iter().chain(of_helm).collect();
        Installer::of(&ObjectMeta {
            annotations: Some(annotations),
            managed_fields: Some(managed),
            ..ObjectMeta::default()
        })
    }

    #[test]
    fn a_release_whose_name_is_no_name_is_no_part_of_a_command() {
        assert_eq!(
            release("x; reboot", None).restore(),
            "`kubectl apply --server-side --force-conflicts -f` with the manifest that installed it"
        );
    }

    #[test]
    fn only_helm_that_applies_on_the_server_is_told_to_force() {
        for (operation, restore, again) in [
            (
                Some("Update"),
                "`helm upgrade webhook CHART -n gmsa`",
                "`helm install webhook CHART -n gmsa --create-namespace`",
            ),
            (
                Some("Apply"),
                "`helm upgrade webhook CHART -n gmsa --force-conflicts`",
                "`helm install webhook CHART -n gmsa --create-namespace --force-conflicts`",
            ),
            (
                None,
                "`helm upgrade webhook CHART -n gmsa` (Helm 4: with `--force-conflicts`)",
                "`helm install webhook CHART -n gmsa --create-namespace` (Helm 4: with `--force-conflicts`)",
            ),
        ] {
            let installer = release("webhook", operation);
            assert_eq!((installer.restore().as_str(), installer.install_again().as_deref()), (restore, Some(again)));
        }
        assert_eq!(Installer::Manifest.install_again(), None);
    }
}
