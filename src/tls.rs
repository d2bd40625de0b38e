//! Certificates: from PEM to a checked key pair, and from there into the TLS handshakes.
//!
//! What always holds: only a [`KeyPair`] can be served, and only a check of the whole pair makes one, so nobody ever sees
//! half of a new certificate; once [`Served`] holds a pair it always holds one; the crypto provider is named here and
//! never taken from the process. Must not: print, keep or quote key material; read a clock (`now` is a value).

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use rustls::{
    ServerConfig,
    crypto::CryptoProvider,
    server::{NoServerSessionStorage, danger::ClientCertVerifier},
};

mod ca_bundle;
pub mod ca_file;
pub mod client_auth;
mod clock;
pub mod configurations;
pub mod files;
pub mod folder;
pub mod inspect;
pub mod issue;
mod key_pair;
mod ledger;
mod publication;
pub mod self_managed;
pub mod self_signed;
mod served;
mod summary;

pub use ca_bundle::{CaBundle, CaBundleError};
pub use clock::Clock;
pub use key_pair::{KeyPair, KeyPairError};
pub use ledger::Wishes;
pub use publication::{Pass, Publication};
pub use served::{Served, Status};
pub use summary::{Summary, Timestamp};

/// What a server offers: what API servers speak to webhooks.
const ALPN: &[u8] = b"http/1.1";

/// The crypto provider of every TLS connection and signature in this process.
#[must_use]
pub fn crypto_provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// How a server speaks TLS: versions 1.2 and 1.3, HTTP/1.1, no early data.
///
/// Sessions resume by tickets that the process encrypts for itself: nothing is stored, and a swap of certificates leaves
/// them valid. `clients` says who may connect; without it anybody may. With it there are no tickets: whoever connects
/// shows a certificate, every time.
///
/// # Errors
/// Where the crypto provider cannot do what is asked of it, or the system has no random bytes.
pub fn server_config(
    served: &Served,
    clients: Option<Arc<dyn ClientCertVerifier>>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let versions = ServerConfig::builder_with_provider(crypto_provider())
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?;
    let anonymous = clients.is_none();
    let authenticated = match clients {
        Some(clients) => versions.with_client_cert_verifier(clients),
        None => versions.with_no_client_auth(),
    };
    let mut config = authenticated.with_cert_resolver(served.resolver());
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    if anonymous {
        config.ticketer = rustls::crypto::ring::Ticketer::new()?;
        // An API server keeps its connections; one ticket is enough for a client that resumes at all.
        config.send_tls13_tickets = 1;
    }
    Ok(Arc::new(config))
}

/// The seconds since 1970, as certificates count, on the process's clock type.
fn unix_time(seconds: i64) -> SystemTime {
    let distance = Duration::from_secs(seconds.unsigned_abs());
    let moved = if seconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(distance)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(distance)
    };
    // A certificate's years have four digits, which every clock can hold.
    moved.unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests;
