//! Chooses the proxy for an API server as client-go does: the kubeconfig's `proxy-url` always; otherwise `HTTPS_PROXY` or
//! `HTTP_PROXY`, unless `NO_PROXY` names the server.
//!
//! The environment is read by the rules of Go's `golang.org/x/net/http/httpproxy`, which client-go uses. kube reads `HTTPS_PROXY`
//! itself, but compares `NO_PROXY` with the address of the proxy, and with a `proxy-url` too: so its answer is not used.
//!
//! The connections through a proxy are hyper-util's. Its `Matcher` could decide as well, but by curl's rules: an entry of `NO_PROXY` has no
//! port there, `.example.com` names `example.com` too, `*.example.com` names nothing, this machine is not excepted, and a proxy that cannot
//! be used is skipped silently.

use std::net::IpAddr;

use http::{Uri, uri::Scheme};
use ipnet::IpNet;

/// A proxy that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the proxy of {0} cannot be used: expected http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT")]
pub struct InvalidProxy(String);

/// The default port of a SOCKS proxy.
const SOCKS_PORT: u16 = 1080;

/// The proxy to a server: from its kubeconfig, or else from the environment, whose variables `variable` reads.
///
/// # Errors
/// If it is not a proxy's address, or of a kind that client-go refuses.
pub fn to(
    server: &Uri,
    of_kubeconfig: Option<&str>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<Uri>, InvalidProxy> {
    if let Some(proxy) = of_kubeconfig.filter(|proxy| !proxy.is_empty()) {
        return address(proxy, "proxy-url in the kubeconfig").map(Some);
    }
    let first = |names: [&str; 2]| names.iter().find_map(|name| variable(name).filter(|value| !value.is_empty()));
    let names = match server.scheme_str() {
        Some("http") => ["HTTP_PROXY", "http_proxy"],
        _ => ["HTTPS_PROXY", "https_proxy"],
    };
    let Some(proxy) = first(names) else { return Ok(None) };
    if is_excluded(server, &first(["NO_PROXY", "no_proxy"]).unwrap_or_default()) {
        return Ok(None);
    }
    // As in Go, `proxy:3128` is an address of an HTTP proxy.
    let proxy = if proxy.contains("://") { proxy } else { format!("http://{proxy}") };
    address(&proxy, names[0]).map(Some)
}

/// The address of a proxy, with its port where the default depends on the scheme. The error does not repeat it: it can hold a password.
fn address(proxy: &str, source: &str) -> Result<Uri, InvalidProxy> {
    let invalid = || InvalidProxy(source.to_owned());
    let uri: Uri = proxy.trim().parse().map_err(|_| invalid())?;
    let authority = uri.authority().filter(|authority| !authority.host().is_empty()).ok_or_else(invalid)?;
    match uri.scheme_str() {
        Some(scheme @ ("socks5" | "socks5h")) if uri.port().is_none() => {
            format!("{scheme}://{authority}:{SOCKS_PORT}").parse().map_err(|_| invalid())
        }
        Some("http" | "https" | "socks5" | "socks5h") => Ok(uri),
        _ => Err(invalid()),
    }
}

/// Whether a server is reached without the environment's proxy: this machine always, and what the list names.
fn is_excluded(server: &Uri, list: &str) -> bool {
    let host = server.host().unwrap_or_default().to_ascii_lowercase();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let default = if server.scheme() == Some(&Scheme::HTTP) { 80 } else { 443 };
    let port = server.port_u16().unwrap_or(default).to_string();
    let ip: Option<IpAddr> = host.parse().ok();
    if host == "localhost" || ip.is_some_and(|ip| ip.is_loopback()) {
        return true;
    }
    list.split(',').map(|entry| entry.trim().to_ascii_lowercase()).any(|entry| entry_matches(&entry, host, ip, &port))
}

/// Whether an entry of `NO_PROXY` names the server: `*`, a CIDR, an IP address or a domain, the last two with or without a port.
fn entry_matches(entry: &str, host: &str, ip: Option<IpAddr>, port: &str) -> bool {
    if entry == "*" {
        return true;
    }
    if let Ok(network) = entry.parse::<IpNet>() {
        return ip.is_some_and(|ip| network.contains(&ip));
    }
    // An IPv6 address without brackets has no port.
    let (name, wanted) = match entry.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, Some(port)),
        _ => (entry, None),
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    if name.is_empty() || wanted.is_some_and(|wanted| wanted != port) {
        return false;
    }
    if let Ok(address) = name.parse::<IpAddr>() {
        return ip == Some(address);
    }
    // `example.com` is the domain and its subdomains, `.example.com` and `*.example.com` only the subdomains.
    let below = name.strip_prefix('*').unwrap_or(name);
    match below.strip_prefix('.') {
        Some(_) => host.ends_with(below),
        None => host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.')),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

    use super::*;

    fn environment<'e>(set: &'e [(&'e str, &'e str)]) -> impl Fn(&str) -> Option<String> + 'e {
        |name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    }

    fn chosen(server: &str, set: &[(&str, &str)]) -> Option<String> {
        to(&server.parse().unwrap(), None, environment(set)).unwrap().map(|proxy| proxy.to_string())
    }

    #[test]
    fn the_variable_is_that_of_the_scheme_in_either_case() {
        let all = [("HTTPS_PROXY", "http://s:1"), ("http_proxy", "http://p:2"), ("https_proxy", "http://other:3")];
        assert_eq!(chosen("https://k8s.example:6443", &all).as_deref(), Some("http://s:1/"));
        assert_eq!(chosen("http://k8s.example:8080", &all).as_deref(), Some("http://p:2/"));
        assert_eq!(
            chosen("https://k8s.example", &[("HTTPS_PROXY", ""), ("https_proxy", "p:3128")]).as_deref(),
            Some("http://p:3128/")
        );
        assert_eq!(chosen("https://k8s.example", &[("HTTP_PROXY", "http://p:2")]), None);
        assert_eq!(
            chosen("https://k8s.example", &[("HTTPS_PROXY", "socks5://p")]).as_deref(),
            Some("socks5://p:1080/")
        );
    }

    #[test]
    fn no_proxy_excludes_what_it_excludes_in_go() {
        let is_proxied =
            |server: &str, list: &str| chosen(server, &[("HTTPS_PROXY", "http://p:1"), ("no_proxy", list)]).is_some();
        let cases = [
            ("https://k8s.example.com:6443", "", true),
            ("https://k8s.example.com:6443", "*", false),
            ("https://k8s.example.com:6443", "example.com", false),
            ("https://example.com:6443", "example.com", false),
            ("https://k8s.EXAMPLE.com:6443", "Example.com", false),
            ("https://notexample.com:6443", "example.com", true),
            ("https://k8s.example.com:6443", "a,, .example.com ", false),
            ("https://example.com:6443", ".example.com", true),
            ("https://k8s.example.com:6443", "*.example.com", false),
            ("https://example.com:6443", "*.example.com", true),
            ("https://k8s.example.com:6443", "example.com:6443", false),
            ("https://k8s.example.com:6443", "example.com:443", true),
            ("https://k8s.example.com", "example.com:443", false),
            ("https://10.1.2.3:6443", "10.0.0.0/8", false),
            ("https://11.1.2.3:6443", "10.0.0.0/8", true),
            ("https://10.1.2.3:6443", "10.1.2.3", false),
            ("https://10.1.2.3:6443", "10.1.2.3:443", true),
            ("https://[fd00::1]:6443", "fd00::/8", false),
            ("https://[fd00::1]:6443", "fd00::1", false),
            ("https://[fd00::1]:6443", "[fd00::1]:6443", false),
            ("https://[fd00::1]:6443", "[fd00::1]:1", true),
            // The address of the proxy says nothing about the server.
            ("https://k8s.example.com:6443", "p", true),
            // Loopback is always excluded.
            ("https://localhost:6443", "", false),
            ("https://127.0.0.1:6443", "", false),
            ("https://[::1]:6443", "", false),
        ];
        for (server, list, proxied) in cases {
            assert_eq!(is_proxied(server, list), proxied, "{server} with NO_PROXY={list}");
        }
    }

    #[test]
    fn the_proxy_of_the_kubeconfig_is_always_used() {
        let set = environment(&[("HTTPS_PROXY", "http://env:1"), ("NO_PROXY", "*")]);
        let proxy = to(&"https://localhost:6443".parse().unwrap(), Some("socks5://p:1"), &set).unwrap();
        assert_eq!(proxy.unwrap().to_string(), "socks5://p:1/");
        assert!(to(&"https://localhost:6443".parse().unwrap(), Some(""), &set).unwrap().is_none());
    }

    #[test]
    fn an_address_that_is_no_proxy_is_refused_without_its_password() {
        let server = "https://k8s.example:6443".parse().unwrap();
        for proxy in ["ftp://p:1", "http://", "http://u:s3cret@ p", "p"] {
            assert_eq!(
                to(&server, Some(proxy), environment(&[])).unwrap_err().to_string(),
                "the proxy of proxy-url in the kubeconfig cannot be used: expected http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT"
            );
        }
    }
}
