//! `krb5.conf` of a client that has tickets in a file.

use std::net::SocketAddr;

use crate::Realm;

/// The text of the file. `ccache` is the path of the credential cache; only a client that has a TGT asks one of the `kdcs`.
pub fn krb5_conf(realm: &Realm, ccache: &str, kdcs: &[SocketAddr]) -> String {
    let kdcs = kdcs.iter().map(|kdc| format!("        kdc = {kdc}\n")).collect::<Vec<_>>().concat();
    let realms = if kdcs.is_empty() { kdcs } else { format!("[realms]\n    {realm} = {{\n{kdcs}    }}\n\n") };
    let domain = realm.as_str().to_lowercase();
    // Heimdal compares the owner of the cache without `fcache_strict_checking`.
    format!(
        "[libdefaults]\n    default_realm = {realm}\n    default_ccache_name = FILE:{ccache}\n    dns_canonicalize_hostname = false\n    \
         rdns = false\n    udp_preference_limit = 1\n    fcache_strict_checking = false\n\n{realms}\
         [domain_realm]\n    .{domain} = {realm}\n    {domain} = {realm}\n"
    )
}
