//! What is known of a server that questions are forwarded to, from how it is written.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Whether a server of `forward` (`10.0.0.4`, `tls://9.9.9.9%dns.quad9.net`) is a resolver of the public Internet, which knows no domain of
/// Active Directory.
pub fn is_public(written: &str) -> bool {
    address(written).is_some_and(|address| PUBLIC.contains(&address))
}

/// Whether it is the file of the resolvers of the node that the DNS of the cluster runs on: `/etc/resolv.conf`.
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
