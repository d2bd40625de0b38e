//! `dns`: what to add to the DNS of a cluster so that it forwards a domain to its own DNS servers, for each platform.
//!
//! Invariants: no cluster is asked, and nothing is changed.

use std::io::{self, Write as _};

use clap::{Args, ValueEnum as _};

use crate::shared::{Outcome, corefile::is_public, print};

mod platform;
mod wanted;

use platform::Platform;
use wanted::Wanted;

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
    /// Its address, such as 10.0.0.4, with its port where that is not 53. Two are advised
    #[arg(long, value_name = "IP", required = true)]
    server: Vec<String>,
    /// kubeadm, eks, aks, k3s, rke2, openshift or gke
    ///
    /// How the cluster was made, which decides what is printed [default: each]
    #[arg(long, value_enum, hide_possible_values = true)]
    platform: Option<Platform>,
}

pub fn run(options: &Options) -> anyhow::Result<Outcome> {
    let wanted = Wanted::parse(&options.domain, &options.server)?;
    for server in wanted.servers.iter().filter(|server| is_public(server)) {
        writeln!(io::stderr(), "note: {server} is a public resolver, which knows no domain of Active Directory")?;
    }
    if wanted.servers.len() == 1 {
        writeln!(io::stderr(), "note: with one server, no pod can log on while it restarts: give a second --server")?;
    }
    let all = Platform::value_variants().iter().copied();
    let platforms = all.filter(|platform| options.platform.is_none_or(|wanted| wanted == *platform));
    let parts: Vec<String> = platforms.map(|platform| platform.change(&wanted)).collect();
    print(format!(
        "{}\nThen `kubectl gmsa doctor` shows where the domain goes, and `kubectl gmsa verify` tests it from a container.\n",
        parts.join("\n")
    ))
}
