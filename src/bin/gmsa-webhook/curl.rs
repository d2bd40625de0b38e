//! The command that a person pastes to see that the server works.

use std::{net::SocketAddr, path::Path};

use gmsa_core::quote::shell;
use gmsa_edge::tls::Served;

/// A command that posts an example review, or asks for the version if there is no example. `anchor` is a certificate that
/// verifies the served one.
pub fn line(folder: &Path, address: SocketAddr, served: &Served, anchor: &Path) -> String {
    let mut words = vec![format!("curl --cacert {}", quote(&anchor.display().to_string()))];
    let ip = if address.ip().is_unspecified() { "127.0.0.1".to_owned() } else { address.ip().to_string() };
    let port = address.port();
    let names = served.current().map(|current| current.names).unwrap_or_default();
    let host = match names.first() {
        Some(name) if !names.contains(&ip) => {
            words.push(format!("--resolve {}", quote(&format!("{name}:{port}:{ip}"))));
            name.clone()
        }
        _ if ip.contains(':') => format!("[{ip}]"),
        _ => ip,
    };
    let example = folder.join("review-mutate.json");
    let path = if example.is_file() {
        let data = quote(&format!("@{}", example.display()));
        words.push(format!("-H 'Content-Type: application/json' --data-binary {data}"));
        "mutate"
    } else {
        "info"
    };
    words.push(quote(&format!("https://{host}:{port}/{path}")));
    words.join(" ")
}

/// An argument, quoted for a shell; where none can be, the reader has to type the name.
fn quote(word: &str) -> String {
    shell::posix(word).unwrap_or_else(|| "FILE".to_owned())
}
