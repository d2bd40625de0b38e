//! How a cluster was made: where its DNS is configured, and what follows a change.

use clap::ValueEnum;
use serde_json::Value;

use super::wanted::Wanted;
use crate::shared::cluster_dns::{ClusterDns, Object, Objects, Zones, texts};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Platform {
    /// ConfigMap coredns
    Kubeadm,
    /// ConfigMap coredns-custom
    Aks,
    /// ConfigMap coredns-custom
    K3s,
    /// ConfigMap coredns
    Eks,
    /// HelmChartConfig rke2-coredns
    Rke2,
    /// dns.operator.openshift.io/default
    Openshift,
    /// ConfigMap kube-dns
    Gke,
}

/// The platform, and what it is recognized by. A version of the API server that names its distribution is the surest sign.
pub fn recognize(objects: &Objects, version: &str) -> Option<(Platform, String)> {
    let by_version =
        [("-gke.", Platform::Gke), ("-eks-", Platform::Eks), ("+k3s", Platform::K3s), ("+rke2", Platform::Rke2)];
    if let Some((_, platform)) = by_version.into_iter().find(|(mark, _)| version.contains(mark)) {
        return Some((platform, format!("the version of the API server ({version})")));
    }
    let by_object = [(Object::Rke2, Platform::Rke2), (Object::OpenShift, Platform::Openshift)];
    if let Some((object, platform)) = by_object.into_iter().find(|(object, _)| objects.contains_key(object)) {
        return Some((platform, object.place()));
    }
    if let Some(import) = import_of_custom(objects) {
        let platform = if import.contains("/etc/coredns/") { Platform::K3s } else { Platform::Aks };
        return Some((platform, format!("the line `{import}` of {}", Object::CoreDns.place())));
    }
    let labels = objects.get(&Object::CoreDns).and_then(|map| map.pointer("/metadata/labels"));
    if labels.and_then(|labels| labels.get("eks.amazonaws.com/component")).is_some() {
        return Some((Platform::Eks, format!("a label of {}", Object::CoreDns.place())));
    }
    let by_object = [
        (Object::CoreDns, Platform::Kubeadm),
        (Object::KubeDns, Platform::Gke),
        (Object::Custom, Platform::Aks),
        (Object::Rke2Values, Platform::Rke2),
    ];
    let found = by_object.into_iter().find(|(object, _)| objects.contains_key(object));
    found.map(|(object, platform)| (platform, object.place()))
}

/// The line by which the Corefile imports the server blocks of `coredns-custom`.
pub fn import_of_custom(objects: &Objects) -> Option<&str> {
    let (_, corefile) = texts(objects.get(&Object::CoreDns)?).find(|(key, _)| *key == "Corefile")?;
    corefile.lines().map(str::trim).find(|line| line.starts_with("import ") && line.ends_with("custom/*.server"))
}

impl Platform {
    pub fn name(self) -> &'static str {
        match self {
            Self::Kubeadm => "kubeadm",
            Self::Aks => "aks",
            Self::K3s => "k3s",
            Self::Eks => "eks",
            Self::Rke2 => "rke2",
            Self::Openshift => "openshift",
            Self::Gke => "gke",
        }
    }

    /// The page that describes the change.
    pub fn page(self) -> &'static str {
        match self {
            Self::Kubeadm => "https://kubernetes.io/docs/tasks/administer-cluster/dns-custom-nameservers/",
            Self::Aks => "https://learn.microsoft.com/azure/aks/coredns-custom",
            Self::K3s => "https://docs.k3s.io/advanced#configuring-dns-resolution",
            Self::Eks => "https://docs.aws.amazon.com/eks/latest/userguide/managing-coredns.html",
            Self::Rke2 => "https://docs.rke2.io/networking/networking_services#coredns",
            Self::Openshift => {
                "https://docs.redhat.com/en/documentation/openshift_container_platform/latest/html/networking_operators/dns-operator"
            }
            Self::Gke => "https://cloud.google.com/kubernetes-engine/docs/how-to/kube-dns",
        }
    }

    /// What to do with the printed object, a sentence on each line.
    pub fn next(self, object: &Value, exists: bool, wanted: &Wanted, objects: &Objects) -> Vec<String> {
        let verb = if exists { "replace" } else { "create" };
        let has_version = object.pointer("/metadata/resourceVersion").is_some();
        let refused = if has_version { " It is refused where the object has changed since." } else { "" };
        let mut lines = vec![format!(
            "Save this as dns.yaml, read it (`kubectl diff -f dns.yaml`), then: `kubectl {verb} -f dns.yaml`.{refused}"
        )];
        let restart = "CoreDNS reads it when it restarts: `kubectl rollout restart deployment coredns -n kube-system`.";
        let reloads = matches!(ClusterDns::of(objects), Ok(Some(ClusterDns { zones: Zones::Corefile(read), .. })) if read.reloads());
        lines.push(match self {
            Self::Kubeadm | Self::Eks if reloads => {
                "CoreDNS reads it again within two minutes (its plugin reload): `kubectl logs -l k8s-app=kube-dns -n kube-system` says so.".to_owned()
            }
            Self::Kubeadm | Self::Eks | Self::Aks | Self::K3s => restart.to_owned(),
            Self::Rke2 => "RKE2 installs CoreDNS again with it: `kubectl rollout status deployment rke2-coredns-rke2-coredns -n kube-system`.".to_owned(),
            Self::Openshift => "The operator writes it into the Corefile: `kubectl get configmap dns-default -n openshift-dns -o yaml` shows it.".to_owned(),
            Self::Gke => "kube-dns reads it by itself.".to_owned(),
        });
        match self {
            Self::Eks => lines.push(
                "An update of the EKS add-on takes the zone out again where conflicts are overwritten: update with `--resolve-conflicts PRESERVE`.".to_owned(),
            ),
            Self::Gke => lines.push(format!(
                "With Cloud DNS for GKE nothing reads this ConfigMap: create a private zone instead that forwards {}. to {} (`gcloud dns managed-zones create`, \
                 `--forwarding-targets`).",
                wanted.domain,
                wanted.servers.join(",")
            )),
            _ => {}
        }
        lines.push("Then `kubectl gmsa doctor` shows where the domain goes, and `kubectl gmsa verify` tests it from a container.".to_owned());
        lines
    }
}
