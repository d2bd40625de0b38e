//! The requested change: a domain and its DNS servers, in the formats of the platforms.

use std::net::{IpAddr, SocketAddr};

use anyhow::bail;
use gmsa_core::credspec::is_dns_subdomain;

/// The port of DNS.
pub const PORT: u16 = 53;
/// The domain of the cluster itself.
const CLUSTER: &str = "cluster.local";

pub struct Wanted {
    /// In lower case, without the trailing dot.
    pub domain: String,
    /// In the format of CoreDNS and kube-dns, without duplicates.
    pub servers: Vec<String>,
}

impl Wanted {
    pub fn parse(domain: &str, servers: &[String]) -> anyhow::Result<Self> {
        let name = domain.strip_suffix('.').unwrap_or(domain).to_lowercase();
        if !is_dns_subdomain(&name) {
            bail!("--domain {domain:?} is not a DNS name, such as contoso.com: (Get-ADDomain).DNSRoot");
        }
        if name == CLUSTER || name.ends_with(&format!(".{CLUSTER}")) {
            bail!("--domain {name} is the domain of the cluster itself");
        }
        let mut parsed = Vec::new();
        for written in servers {
            let server = server(written)?;
            if !parsed.contains(&server) {
                parsed.push(server);
            }
        }
        Ok(Self { domain: name, servers: parsed })
    }

    /// The servers in double quotes.
    pub fn quoted(&self, between: &str) -> String {
        self.servers.iter().map(|server| format!("{server:?}")).collect::<Vec<_>>().join(between)
    }

    /// The server block of a Corefile, as <https://kubernetes.io/docs/tasks/administer-cluster/dns-custom-nameservers/> writes a stub domain.
    pub fn server_block(&self) -> String {
        let Self { domain, servers } = self;
        format!("{domain}:{PORT} {{\n    errors\n    cache 30\n    forward . {}\n}}", servers.join(" "))
    }
}

/// A name for a server. The operator requires a service name of RFC 6335: at most 15 letters, digits and hyphens, at least one letter.
pub fn service_name(domain: &str) -> String {
    const LONGEST: usize = 15;
    let name: String = format!("ad-{}", domain.replace('.', "-")).chars().take(LONGEST).collect();
    // Without adjacent or trailing hyphens.
    let words: Vec<&str> = name.split('-').filter(|word| !word.is_empty()).collect();
    words.join("-")
}

/// An address, with its port if that is not 53.
fn server(written: &str) -> anyhow::Result<String> {
    let (address, port) = match (written.parse::<IpAddr>(), written.parse::<SocketAddr>()) {
        (Ok(address), _) => (address, PORT),
        (_, Ok(socket)) => (socket.ip(), socket.port()),
        _ => bail!("--server {written:?} is not an address, such as 10.0.0.4, 10.0.0.4:5353 or [fd00::4]:5353"),
    };
    if address.is_loopback() || address.is_unspecified() || address.is_multicast() || port == 0 {
        bail!("--server {written} is not an address of another machine");
    }
    Ok(if port == PORT { address.to_string() } else { SocketAddr::new(address, port).to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::corefile::{Corefile, Destination, Forward};

    fn wanted(domain: &str, servers: &[&str]) -> Result<Wanted, String> {
        let servers: Vec<String> = servers.iter().map(|&server| server.to_owned()).collect();
        Wanted::parse(domain, &servers).map_err(|error| error.to_string())
    }

    #[test]
    fn names_and_addresses_are_written_in_one_way() {
        let wanted = wanted("Contoso.COM.", &["10.0.0.4:53", "10.0.0.4", "FD00::4", "[fd00::5]:5353"]).unwrap();
        assert_eq!(wanted.domain, "contoso.com");
        assert_eq!(wanted.servers, ["10.0.0.4", "fd00::4", "[fd00::5]:5353"]);
        assert_eq!(
            wanted.server_block(),
            "contoso.com:53 {\n    errors\n    cache 30\n    forward . 10.0.0.4 fd00::4 [fd00::5]:5353\n}"
        );
        // The check in `doctor` then passes.
        let read = Corefile::parse(&wanted.server_block(), &|_| None).unwrap();
        let forward = Forward { zone: "contoso.com".to_owned(), servers: wanted.servers.clone(), is_sequential: false };
        assert_eq!(read.answer("contoso.com"), Destination::Forwarded(forward));
    }

    #[test]
    fn what_is_no_name_or_address_is_refused() {
        let is_no_address = "is not an address, such as 10.0.0.4, 10.0.0.4:5353 or [fd00::4]:5353";
        for (domain, server, error) in [
            (
                "contoso_com",
                "10.0.0.4",
                "--domain \"contoso_com\" is not a DNS name, such as contoso.com: (Get-ADDomain).DNSRoot".to_owned(),
            ),
            (
                "x; reboot",
                "10.0.0.4",
                "--domain \"x; reboot\" is not a DNS name, such as contoso.com: (Get-ADDomain).DNSRoot".to_owned(),
            ),
            (
                "ad.cluster.local",
                "10.0.0.4",
                "--domain ad.cluster.local is the domain of the cluster itself".to_owned(),
            ),
            ("contoso.com", "dc1.contoso.com", format!("--server \"dc1.contoso.com\" {is_no_address}")),
            ("contoso.com", "10.0.0.4:99999", format!("--server \"10.0.0.4:99999\" {is_no_address}")),
            ("contoso.com", "https://10.0.0.4", format!("--server \"https://10.0.0.4\" {is_no_address}")),
            ("contoso.com", "127.0.0.1", "--server 127.0.0.1 is not an address of another machine".to_owned()),
            ("contoso.com", "10.0.0.4:0", "--server 10.0.0.4:0 is not an address of another machine".to_owned()),
        ] {
            assert_eq!(wanted(domain, &[server]).map(drop), Err(error));
        }
    }

    #[test]
    fn the_name_of_a_server_is_one_of_a_service() {
        for (domain, name) in [
            ("contoso.com", "ad-contoso-com"),
            ("emea.corp.contoso.com", "ad-emea-corp-co"),
            ("xn--bcher-kva.example", "ad-xn-bcher-kv"),
        ] {
            assert_eq!(service_name(domain), name);
        }
    }
}
