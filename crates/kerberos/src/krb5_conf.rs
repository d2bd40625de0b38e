//! `krb5.conf` of a client that has tickets in a file.

use std::fmt;

use crate::Realm;

/// `Display` writes the text of the file.
pub struct Krb5Conf<'c> {
    pub realm: &'c Realm,
    /// The path of the credential cache.
    pub ccache: &'c str,
    /// The KDCs: only a client that has a TGT asks one.
    pub kdcs: &'c [std::net::SocketAddr],
}

impl fmt::Display for Krb5Conf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { realm, ccache, kdcs } = self;
        // Heimdal compares the owner of the cache without the last line.
        writeln!(
            f,
            "[libdefaults]\n    default_realm = {realm}\n    default_ccache_name = FILE:{ccache}\n    dns_canonicalize_hostname = false\n    \
             rdns = false\n    udp_preference_limit = 1\n    fcache_strict_checking = false\n"
        )?;
        if !kdcs.is_empty() {
            writeln!(f, "[realms]\n    {realm} = {{")?;
            kdcs.iter().try_for_each(|kdc| writeln!(f, "        kdc = {kdc}"))?;
            writeln!(f, "    }}\n")?;
        }
        let domain = realm.as_str().to_lowercase();
        writeln!(f, "[domain_realm]\n    .{domain} = {realm}\n    {domain} = {realm}")
    }
}
