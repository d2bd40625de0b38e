//! Where a directory is: `ldaps://dc1.contoso.com`, `ldap://dc1.contoso.com` (with `StartTLS`), or a domain.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr, SocketAddr},
};

use crate::{Error, NameServers};

/// The value of `--directory`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Controller(Controller),
    /// A domain, whose controllers are found by their SRV records.
    Domain(String),
}

/// How TLS begins. Every connection uses TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Tls,
    StartTls,
}

impl Transport {
    /// The scheme of its addresses, and its port.
    fn facts(self) -> (&'static str, u16) {
        match self {
            Self::Tls => ("ldaps", 636),
            Self::StartTls => ("ldap", 389),
        }
    }
}

/// A domain controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// Its DNS name, or its IP address: its certificate must be for that.
    pub host: String,
    pub port: u16,
    pub transport: Transport,
}

impl Address {
    /// # Errors
    /// If it is neither an address of LDAP nor the name of a domain.
    pub fn parse(text: &str) -> Result<Self, String> {
        const EXPECTED: &str =
            "expected ldaps://HOST[:PORT], ldap://HOST[:PORT], the DNS name of a domain, or a file of LDIF";
        let (transport, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("ldaps") => (Transport::Tls, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("ldap") => (Transport::StartTls, rest),
            None => return Self::bare(text).ok_or_else(|| with_scheme(text).unwrap_or_else(|| EXPECTED.to_owned())),
            _ => return Err(EXPECTED.to_owned()),
        };
        let rest = rest.trim_end_matches('/');
        let (host, port) = match rest.strip_prefix('[') {
            // An IPv6 address.
            Some(rest) => rest.split_once(']').ok_or(EXPECTED)?,
            None => rest.split_at(rest.find(':').unwrap_or(rest.len())),
        };
        let port = match port {
            "" | ":" => transport.facts().1,
            port => port.strip_prefix(':').and_then(|port| port.parse().ok()).ok_or(EXPECTED)?,
        };
        if !is_host(host) && host.parse::<Ipv6Addr>().is_err() {
            return Err(EXPECTED.to_owned());
        }
        Ok(Self::Controller(Controller { host: host.to_owned(), port, transport }))
    }

    /// A domain, which alone has no scheme.
    fn bare(text: &str) -> Option<Self> {
        let is_domain = is_host(text) && text.contains('.') && text.parse::<IpAddr>().is_err();
        is_domain.then(|| Self::Domain(text.trim_end_matches('.').to_ascii_lowercase()))
    }
}

/// The intended address, if only the scheme is missing.
fn with_scheme(text: &str) -> Option<String> {
    let url = match text.rsplit_once(':') {
        _ if text.parse::<Ipv6Addr>().is_ok() => format!("ldaps://[{text}]"),
        Some((host, "389")) => format!("ldap://{host}"),
        Some((host, "636")) => format!("ldaps://{host}"),
        _ => format!("ldaps://{text}"),
    };
    matches!(Address::parse(&url), Ok(Address::Controller(_)))
        .then(|| format!("a domain controller is named as {url}, a domain by its DNS name"))
}

fn is_host(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() < 64
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    text.len() < 254 && text.trim_end_matches('.').split('.').all(is_label)
}

impl Controller {
    /// On the port of its transport.
    pub fn new(host: String, transport: Transport) -> Self {
        Self { host, port: transport.facts().1, transport }
    }

    /// Its addresses.
    pub(crate) async fn endpoints(&self, resolver: Option<&NameServers>) -> Result<Vec<SocketAddr>, Error> {
        let unreachable = |error| Error::Unreachable(self.to_string(), error);
        if let Some(resolver) = resolver
            && self.host.parse::<IpAddr>().is_err()
        {
            let addresses =
                resolver.addresses(&self.host).await.map_err(|why| unreachable(std::io::Error::other(why)))?;
            return Ok(addresses.into_iter().map(|address| SocketAddr::new(address, self.port)).collect());
        }
        Ok(tokio::net::lookup_host((self.host.as_str(), self.port)).await.map_err(unreachable)?.collect())
    }
}

/// As it is typed.
impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, port) = self.transport.facts();
        if self.host.contains(':') {
            write!(f, "{scheme}://[{}]", self.host)
        } else {
            write!(f, "{scheme}://{}", self.host)
        }?;
        if self.port == port { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_printed_as_it_was_typed() {
        for text in [
            "ldaps://dc1.contoso.com",
            "ldap://dc1.contoso.com:3890",
            "ldaps://[::1]",
            "ldaps://10.0.0.1:1636",
            "ldap://dc1",
        ] {
            let Address::Controller(controller) = Address::parse(text).unwrap() else { panic!("{text}") };
            assert_eq!(controller.to_string(), text);
        }
        assert_eq!(Address::parse("LDAPS://dc1/"), Address::parse("ldaps://dc1:636"));
        assert_eq!(Address::parse("Contoso.com."), Ok(Address::Domain("contoso.com".to_owned())));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "http://dc1",
            "ldaps://",
            "ldaps://dc1:x",
            "ldaps://dc1:65536",
            "ldaps://[::1",
            "ldaps://[::1]1",
            "ldaps://a b",
            "ldaps://user@dc1",
            "a/b.com",
        ] {
            let expected =
                "expected ldaps://HOST[:PORT], ldap://HOST[:PORT], the DNS name of a domain, or a file of LDIF";
            assert_eq!(Address::parse(text), Err(expected.to_owned()), "{text}");
        }
        for (text, url) in [
            ("dc1", "ldaps://dc1"),
            ("10.0.0.1", "ldaps://10.0.0.1"),
            ("10.0.0.1:636", "ldaps://10.0.0.1"),
            ("10.0.0.1:1636", "ldaps://10.0.0.1:1636"),
            ("dc1.contoso.com:389", "ldap://dc1.contoso.com"),
            ("dc1.contoso.com:636", "ldaps://dc1.contoso.com"),
            ("::1", "ldaps://[::1]"),
            ("[fd00::1]:636", "ldaps://[fd00::1]"),
        ] {
            let wanted = format!("a domain controller is named as {url}, a domain by its DNS name");
            assert_eq!(Address::parse(text), Err(wanted), "{text}");
        }
    }
}
