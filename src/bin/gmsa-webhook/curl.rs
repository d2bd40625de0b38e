//! The command that a person pastes to see that the server works.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
};

use gmsa_core::quote::shell;

/// A command that posts an example review, or asks for the version if there is no example. `ca` is the file of the CA that was made for this run.
pub fn line(folder: &Path, mut address: SocketAddr, ca: &Path) -> String {
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    let ca = quote(&ca.display().to_string());
    let example = folder.join("review-mutate.json");
    if !example.is_file() {
        return format!("curl --cacert {ca} {}", quote(&format!("https://{address}/info")));
    }
    let (data, url) = (quote(&format!("@{}", example.display())), quote(&format!("https://{address}/mutate")));
    format!("curl --cacert {ca} -H 'Content-Type: application/json' --data-binary {data} {url}")
}

/// An argument, quoted for a shell; where none can be, the reader has to type the name.
fn quote(word: &str) -> String {
    shell::posix(word).unwrap_or_else(|| "FILE".to_owned())
}
