//! The destination of a query for a domain: the most specific zone wins, as in CoreDNS (`ServeDNS` in `core/dnsserver/server.go`) and
//! in kube-dns. Also classifies a server by its notation.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{Corefile, DNS, DNS_PORT, DnsPlugin, Server, Zone};

/// The servers that get the queries of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The zone; `.` for every other name.
    pub zone: String,
    /// Addresses, or the file of the resolvers of the node: `/etc/resolv.conf`.
    pub servers: Vec<String>,
    /// Whether servers are asked in order rather than at random.
    pub is_sequential: bool,
}

/// The destination of a query for a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    Forwarded(Forward),
    /// The zone exists and does not forward it.
    NotForwarded(String),
    /// No zone matches, not even the root.
    Nowhere,
}

/// Whether a name is the zone, or below it.
fn is_within(name: &str, zone: &str) -> bool {
    zone == "." || name.strip_suffix(zone).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

impl Corefile {
    /// The Corefile of a DNS with one table of forwards: `stubDomains` of kube-dns, `spec.servers` of OpenShift.
    pub fn of_forwards(forwards: impl IntoIterator<Item = Forward>) -> Self {
        let server = |Forward { zone, servers, is_sequential }: Forward| {
            let arguments = std::iter::once(".".to_owned()).chain(servers).collect();
            let block =
                if is_sequential { vec![vec!["policy".to_owned(), "sequential".to_owned()]] } else { Vec::new() };
            let plugins = vec![DnsPlugin { name: "forward".to_owned(), arguments, block }];
            Server { zones: vec![Zone { name: normal(&zone), port: DNS_PORT, transport: DNS }], plugins }
        };
        Self { servers: forwards.into_iter().map(server).collect(), unread: Vec::new() }
    }

    /// The destination of a pod's query for the domain. The domain is in lower case, without a trailing dot.
    pub fn answer(&self, domain: &str) -> Destination {
        let of_pods = |zone: &&Zone| zone.transport == DNS && zone.port == self.port() && is_within(domain, &zone.name);
        let zones = self.servers.iter().flat_map(|server| server.zones.iter().map(move |zone| (server, zone)));
        // The first of the longest: among zones that contain the same name, the longer has more labels. The root is the shortest.
        let length = |zone: &Zone| if zone.is_root() { 0 } else { zone.name.len() };
        let most_specific = zones
            .filter(|(_, zone)| of_pods(zone))
            .reduce(|best, next| if length(next.1) > length(best.1) { next } else { best });
        let Some((server, zone)) = most_specific else { return Destination::Nowhere };
        server
            .forward(domain, zone)
            .map_or_else(|| Destination::NotForwarded(zone.name.clone()), Destination::Forwarded)
    }

    /// The port of a zone with exactly this name, if no such zone is on the port that pods use.
    pub fn other_port(&self, domain: &str) -> Option<u16> {
        let zones = self.servers.iter().flat_map(|server| &server.zones).filter(|zone| zone.name == domain);
        let is_of_pods = |zone: &Zone| zone.port == self.port() && zone.transport == DNS;
        if zones.clone().any(is_of_pods) {
            return None;
        }
        zones.map(|zone| zone.port).find(|port| *port != self.port())
    }
}

impl Server {
    /// The first `forward` for the domain: each has its own zone and exceptions (`match` in `plugin/forward/forward.go`).
    /// Before CoreDNS 1.7 the plugin was called `proxy`.
    fn forward(&self, domain: &str, zone: &Zone) -> Option<Forward> {
        let forwards = self.plugins.iter().filter(|plugin| matches!(plugin.name.as_str(), "forward" | "proxy"));
        forwards.into_iter().find_map(|plugin| {
            let (from, servers) = plugin.arguments.split_first()?;
            let from = normal(from);
            let except = plugin.lines("except").flatten();
            if !is_within(domain, &from) || except.map(|zone| normal(zone)).any(|zone| is_within(domain, &zone)) {
                return None;
            }
            let is_sequential = plugin.lines("policy").flatten().any(|policy| policy == "sequential");
            let zone = if from.len() > zone.name.len() { from } else { zone.name.clone() };
            Some(Forward { zone, servers: servers.to_vec(), is_sequential })
        })
    }
}

impl DnsPlugin {
    /// The arguments on the lines of the block that start with this word.
    fn lines(&self, word: &str) -> impl Iterator<Item = &[String]> {
        self.block
            .iter()
            .filter_map(move |line| line.split_first().filter(|(first, _)| *first == word).map(|(_, rest)| rest))
    }
}

/// A zone in lower case, without the trailing dot.
pub(super) fn normal(zone: &str) -> String {
    let name = zone.strip_suffix('.').unwrap_or(zone).to_lowercase();
    if name.is_empty() { ".".to_owned() } else { name }
}

/// Whether a server of `forward` (`10.0.0.4`, `tls://9.9.9.9%dns.quad9.net`) is a public resolver, which does not know domains of
/// Active Directory.
pub fn is_public(written: &str) -> bool {
    address(written).is_some_and(|address| PUBLIC.contains(&address))
}

/// Whether it is the resolver file of the node: `/etc/resolv.conf`.
pub fn is_of_node(written: &str) -> bool {
    written.starts_with('/')
}

/// The address of a server, without its transport, port and name.
fn address(written: &str) -> Option<IpAddr> {
    let rest = written.split_once("://").map_or(written, |(_, rest)| rest);
    let host = rest.rsplit_once('%').map_or(rest, |(host, _)| host);
    let host = host.parse::<SocketAddr>().map_or(host.to_owned(), |socket| socket.ip().to_string());
    host.trim_matches(['[', ']']).parse().ok()
}

/// Google, Cloudflare, Quad9 and OpenDNS, by the addresses that they publish.
const PUBLIC: [IpAddr; 14] = [
    IpAddr::V4(Ipv4Addr::new(8, 8, 8, 8)),
    IpAddr::V4(Ipv4Addr::new(8, 8, 4, 4)),
    IpAddr::V4(Ipv4Addr::new(1, 1, 1, 1)),
    IpAddr::V4(Ipv4Addr::new(1, 0, 0, 1)),
    IpAddr::V4(Ipv4Addr::new(9, 9, 9, 9)),
    IpAddr::V4(Ipv4Addr::new(149, 112, 112, 112)),
    IpAddr::V4(Ipv4Addr::new(208, 67, 222, 222)),
    IpAddr::V4(Ipv4Addr::new(208, 67, 220, 220)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0x4860, 0x4860, 0, 0, 0, 0, 0x8888)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0x4860, 0x4860, 0, 0, 0, 0, 0x8844)),
    IpAddr::V6(Ipv6Addr::new(0x2606, 0x4700, 0x4700, 0, 0, 0, 0, 0x1111)),
    IpAddr::V6(Ipv6Addr::new(0x2606, 0x4700, 0x4700, 0, 0, 0, 0, 0x1001)),
    IpAddr::V6(Ipv6Addr::new(0x2620, 0xfe, 0, 0, 0, 0, 0, 0xfe)),
    IpAddr::V6(Ipv6Addr::new(0x2620, 0xfe, 0, 0, 0, 0, 0, 0x9)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_known_by_how_they_are_written() {
        let all = [
            "10.0.0.4",
            "10.0.0.4:5353",
            "dns://[fd00::4]:53",
            "[fd00::4]",
            "8.8.8.8:53",
            "tls://9.9.9.9%dns.quad9.net",
            "tls://[2606:4700:4700::1111]:853",
            "/etc/resolv.conf",
            "{$DNS}",
            "",
        ];
        let those = |is: fn(&str) -> bool| all.into_iter().filter(|written| is(written)).collect::<Vec<_>>();
        assert_eq!(those(is_public), ["8.8.8.8:53", "tls://9.9.9.9%dns.quad9.net", "tls://[2606:4700:4700::1111]:853"]);
        assert_eq!(those(is_of_node), ["/etc/resolv.conf"]);
    }
}
