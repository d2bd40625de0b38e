//! `dns`: prints the DNS configuration that makes a cluster forward a domain to its DNS servers, for each platform.
//!
//! Invariants: this command never connects to a cluster.

use std::io::{self, Write as _};

use clap::{Args, ValueEnum};

use crate::shared::{Outcome, corefile::is_public, print_clean};

mod wanted;

use wanted::{PORT, Wanted, service_name};

const EXAMPLES: &str = "Examples:
  # For AKS
  kubectl gmsa dns --domain contoso.com --server 10.0.0.4 --server 10.0.0.5 --platform aks

  # For every platform
  kubectl gmsa dns --domain contoso.com --server 10.0.0.4";

#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Options {
    /// DNS name: (Get-ADDomain).DNSRoot
    #[arg(long, value_name = "DNS")]
    domain: String,
    /// A DNS server of the domain; repeatable
    ///
    /// Its address, such as 10.0.0.4, with its port if that is not 53. Two servers are recommended
    #[arg(long, value_name = "IP", required = true)]
    server: Vec<String>,
    /// kubeadm, eks, aks, k3s, rke2, openshift or gke
    ///
    /// The platform of the cluster, which decides the output [default: each]
    #[arg(long, value_enum, hide_possible_values = true)]
    platform: Option<Platform>,
}

pub fn run(options: &Options) -> anyhow::Result<Outcome> {
    let wanted = Wanted::parse(&options.domain, &options.server)?;
    for server in wanted.servers.iter().filter(|server| is_public(server)) {
        writeln!(io::stderr(), "note: {server} is a public resolver, which knows no domain of Active Directory")?;
    }
    if !wanted.domain.contains('.') {
        let domain = &wanted.domain;
        writeln!(
            io::stderr(),
            "note: {domain} has no dot: DNS knows a domain by its DNS name, not by its NetBIOS name"
        )?;
    }
    if wanted.servers.len() == 1 {
        writeln!(io::stderr(), "note: with one server, no pod can log on while it restarts: give a second --server")?;
    }
    let all = Platform::value_variants().iter().copied();
    let platforms = all.filter(|platform| options.platform.is_none_or(|wanted| wanted == *platform));
    let parts: Vec<String> = platforms.map(|platform| platform.row(&wanted).change(platform)).collect();
    print_clean(format!(
        "{}\nThen `kubectl gmsa doctor` shows where the domain goes, and `kubectl gmsa verify` tests it from a container.\n",
        parts.join("\n")
    ))
}

/// The platform of a cluster: the object that configures its DNS, the text to add, and how to reload it.
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

/// The change on one platform.
struct Row {
    object: &'static str,
    /// The place in the object.
    place: String,
    block: String,
    reload: &'static str,
    /// Additional notes.
    notes: Option<String>,
    page: &'static str,
}

impl Row {
    /// The output for people.
    fn change(self, of: Platform) -> String {
        let Self { object, place, block, reload, notes, page } = self;
        let name = of.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let block = block.replace('\n', "\n    ");
        let notes = notes.map_or(String::new(), |notes| format!("  {notes}\n"));
        format!("{name}: {object}, {place}\n    {block}\n  {reload}\n{notes}  {page}\n")
    }

    fn rke2(wanted: &Wanted) -> Self {
        let Wanted { domain, servers } = wanted;
        Self {
            object: "HelmChartConfig kube-system/rke2-coredns",
            place: "in the list servers of spec.valuesContent".to_owned(),
            // A value of CoreDNS' own chart: `servers` of <https://github.com/coredns/helm>.
            block: format!(
                "- zones:\n  - zone: {domain}\n  port: {PORT}\n  plugins:\n  - name: errors\n  - name: cache\n    parameters: \"30\"\n  \
                 - name: forward\n    parameters: . {}",
                servers.join(" ")
            ),
            reload: "RKE2 installs CoreDNS again with it: `kubectl rollout status deployment rke2-coredns-rke2-coredns -n kube-system`.",
            notes: Some(
                "The list replaces the chart's list, so it must hold the chart's own server block too.".to_owned(),
            ),
            page: "https://docs.rke2.io/networking/networking_services#coredns",
        }
    }

    fn openshift(wanted: &Wanted) -> Self {
        let domain = &wanted.domain;
        Self {
            object: "dns.operator.openshift.io/default",
            place: "in the list spec.servers".to_owned(),
            block: format!(
                "- name: {}\n  zones:\n  - {domain}\n  forwardPlugin:\n    policy: Random\n    upstreams:\n    - {}",
                service_name(domain),
                wanted.quoted("\n    - ")
            ),
            reload: "The operator writes it into the Corefile: `kubectl get configmap dns-default -n openshift-dns -o yaml` shows it.",
            notes: None,
            page: "https://docs.redhat.com/en/documentation/openshift_container_platform/latest/html/networking_operators/dns-operator",
        }
    }

    fn gke(wanted: &Wanted) -> Self {
        let Wanted { domain, servers } = wanted;
        Self {
            object: "ConfigMap kube-system/kube-dns",
            place: "in the JSON of data.stubDomains".to_owned(),
            block: format!("\"{domain}\": [{}]", wanted.quoted(", ")),
            reload: "kube-dns reads it by itself.",
            notes: Some(format!(
                "With Cloud DNS for GKE nothing reads this ConfigMap: create a private zone instead that forwards {domain}. to {} \
                 (`gcloud dns managed-zones create`, `--forwarding-targets`).",
                servers.join(",")
            )),
            page: "https://cloud.google.com/kubernetes-engine/docs/how-to/kube-dns",
        }
    }
}

impl Platform {
    fn row(self, wanted: &Wanted) -> Row {
        let coredns = Row {
            object: "ConfigMap kube-system/coredns",
            place: "at the end of data.Corefile".to_owned(),
            block: wanted.server_block(),
            reload: RELOAD,
            notes: None,
            page: "https://kubernetes.io/docs/tasks/administer-cluster/dns-custom-nameservers/",
        };
        let custom = Row {
            object: "ConfigMap kube-system/coredns-custom",
            place: format!("as data.\"{}.server\"", wanted.domain),
            block: wanted.server_block(),
            reload: RESTART,
            notes: None,
            page: "https://docs.k3s.io/advanced#configuring-dns-resolution",
        };
        match self {
            Self::Kubeadm => coredns,
            Self::Eks => Row {
                notes: Some("An update of the EKS add-on that overwrites conflicts removes the zone: update with `--resolve-conflicts PRESERVE`.".to_owned()),
                page: "https://docs.aws.amazon.com/eks/latest/userguide/managing-coredns.html",
                ..coredns
            },
            Self::Aks => Row {
                notes: Some(
                    "`az aks update --enable-windows-gmsa --gmsa-root-domain-name` writes this zone too, and is refused while it is here: use one of both."
                        .to_owned(),
                ),
                page: "https://learn.microsoft.com/azure/aks/coredns-custom",
                ..custom
            },
            Self::K3s => custom,
            Self::Rke2 => Row::rke2(wanted),
            Self::Openshift => Row::openshift(wanted),
            Self::Gke => Row::gke(wanted),
        }
    }
}
