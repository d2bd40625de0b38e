//! How a cluster was made: where its DNS is configured, what to add there, and how it is read again.

use clap::ValueEnum;

use super::wanted::Wanted;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Platform {
    /// ConfigMap coredns
    Kubeadm,
    /// ConfigMap coredns
    Eks,
    /// ConfigMap coredns-custom
    Aks,
    /// ConfigMap coredns-custom
    K3s,
    /// HelmChartConfig rke2-coredns
    Rke2,
    /// dns.operator.openshift.io/default
    Openshift,
    /// ConfigMap kube-dns
    Gke,
}

const RESTART: &str = "CoreDNS reads it when it restarts: `kubectl rollout restart deployment coredns -n kube-system`.";
const RELOAD: &str = "With the plugin reload, CoreDNS reads it again within two minutes: `kubectl logs -l k8s-app=kube-dns -n kube-system` \
    says so. Without it: `kubectl rollout restart deployment coredns -n kube-system`.";

/// A row of the table: what changes, and how.
struct Row {
    object: &'static str,
    /// Where in the object.
    place: String,
    block: String,
    reload: &'static str,
    /// What else has to be known.
    notes: Option<String>,
    page: &'static str,
}

impl Platform {
    /// What to change, for people.
    pub fn change(self, wanted: &Wanted) -> String {
        let Row { object, place, block, reload, notes, page } = self.row(wanted);
        let name = self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let block = block.replace('\n', "\n    ");
        let notes = notes.map_or(String::new(), |notes| format!("  {notes}\n"));
        format!("{name}: {object}, {place}\n    {block}\n  {reload}\n{notes}  {page}\n")
    }

    fn row(self, wanted: &Wanted) -> Row {
        let Wanted { domain, servers } = wanted;
        let coredns = |notes: Option<&str>, page| Row {
            object: "ConfigMap kube-system/coredns",
            place: "at the end of data.Corefile".to_owned(),
            block: wanted.server_block(),
            reload: RELOAD,
            notes: notes.map(str::to_owned),
            page,
        };
        let custom = |page| Row {
            object: "ConfigMap kube-system/coredns-custom",
            place: format!("as data.\"{domain}.server\""),
            block: wanted.server_block(),
            reload: RESTART,
            notes: None,
            page,
        };
        match self {
            Self::Kubeadm => {
                coredns(None, "https://kubernetes.io/docs/tasks/administer-cluster/dns-custom-nameservers/")
            }
            Self::Eks => coredns(
                Some(
                    "An update of the EKS add-on takes it out again where conflicts are overwritten: update with `--resolve-conflicts PRESERVE`.",
                ),
                "https://docs.aws.amazon.com/eks/latest/userguide/managing-coredns.html",
            ),
            Self::Aks => custom("https://learn.microsoft.com/azure/aks/coredns-custom"),
            Self::K3s => custom("https://docs.k3s.io/advanced#configuring-dns-resolution"),
            Self::Rke2 => Row {
                object: "HelmChartConfig kube-system/rke2-coredns",
                place: "in the list servers of spec.valuesContent".to_owned(),
                block: wanted.chart_server(),
                reload: "RKE2 installs CoreDNS again with it: `kubectl rollout status deployment rke2-coredns-rke2-coredns -n kube-system`.",
                notes: Some(
                    "The list replaces that of the chart, so it must hold the chart's own server block too.".to_owned(),
                ),
                page: "https://docs.rke2.io/networking/networking_services#coredns",
            },
            Self::Openshift => Row {
                object: "dns.operator.openshift.io/default",
                place: "in the list spec.servers".to_owned(),
                block: wanted.operator_server(),
                reload: "The operator writes it into the Corefile: `kubectl get configmap dns-default -n openshift-dns -o yaml` shows it.",
                notes: None,
                page: "https://docs.redhat.com/en/documentation/openshift_container_platform/latest/html/networking_operators/dns-operator",
            },
            Self::Gke => Row {
                object: "ConfigMap kube-system/kube-dns",
                place: "in the JSON of data.stubDomains".to_owned(),
                block: wanted.stub_domain(),
                reload: "kube-dns reads it by itself.",
                notes: Some(format!(
                    "With Cloud DNS for GKE nothing reads this ConfigMap: create a private zone instead that forwards {domain}. to {} \
                     (`gcloud dns managed-zones create`, `--forwarding-targets`).",
                    servers.join(",")
                )),
                page: "https://cloud.google.com/kubernetes-engine/docs/how-to/kube-dns",
            },
        }
    }
}
