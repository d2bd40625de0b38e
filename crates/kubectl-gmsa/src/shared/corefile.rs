//! A Corefile, the configuration of CoreDNS: which zones it serves, and to which servers it forwards them.
//!
//! Invariants: pure and bounded for any text; imported files are passed in as values, and an import of an unknown file is
//! listed in [`Corefile::unread`]. The grammar is CoreDNS's, at `caddyfile/lexer.go` and `caddyfile/parse.go` of
//! <https://github.com/coredns/caddy>; `core/dnsserver/register.go` and `plugin/normalize.go` of <https://github.com/coredns/coredns> read
//! the keys of a server block. An environment variable (`{$NAME}`) stays as it is written: only CoreDNS knows its value.

mod lexer;
mod parse;
mod route;
#[cfg(test)]
mod tests;

pub use route::{Destination, Forward, is_of_node, is_public};

/// The longest text, in bytes, its imports included: an object of Kubernetes is not longer.
pub const MAX_BYTES: usize = 1024 * 1024;

/// How many times files and snippets are imported at most. CoreDNS stops after 10,000; three are usual.
pub const MAX_IMPORTS: usize = 200;

/// How many words there are at most, imported ones included.
pub const MAX_WORDS: usize = 100_000;

/// Why a text is not a Corefile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CorefileError {
    #[error("it is longer than {MAX_BYTES} bytes, or has more than {MAX_WORDS} words or {MAX_IMPORTS} imports")]
    TooLarge,
    /// CoreDNS does not start with it.
    #[error("line {line}: {problem}")]
    Syntax { line: usize, problem: &'static str },
}

/// A Corefile with what it imports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Corefile {
    pub servers: Vec<Server>,
    /// Imports of files that are not known, and keys that an environment variable completes.
    pub unread: Vec<String>,
}

/// A server block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub zones: Vec<Zone>,
    pub plugins: Vec<DnsPlugin>,
}

/// A key of a server block: `contoso.com:53`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// In lower case, without the dot at its end; `.` for the root.
    pub name: String,
    pub port: u16,
    /// `dns` by default.
    pub transport: &'static str,
}

/// A plugin of a server block, with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsPlugin {
    pub name: String,
    pub arguments: Vec<String>,
    /// The lines between its braces.
    pub block: Vec<Vec<String>>,
}

impl Corefile {
    /// The port that pods query: the Service of the DNS leads to the server block that answers for the cluster itself.
    /// It is 5353 on OpenShift and 8053 on Gardener. A zone on another port gets no question of a pod.
    pub fn port(&self) -> u16 {
        let port = |server: &Server| server.zones.iter().find(|zone| zone.transport == DNS).map(|zone| zone.port);
        let of_cluster = self.servers.iter().filter(|server| server.has("kubernetes")).find_map(port);
        let of_root = || self.servers.iter().filter(|server| server.zones.iter().any(Zone::is_root)).find_map(port);
        of_cluster.or_else(of_root).unwrap_or(DNS_PORT)
    }
}

impl Server {
    pub fn has(&self, plugin: &str) -> bool {
        self.plugins.iter().any(|found| found.name == plugin)
    }
}

impl Zone {
    pub fn is_root(&self) -> bool {
        self.name == "."
    }
}

const DNS: &str = "dns";
const DNS_PORT: u16 = 53;
