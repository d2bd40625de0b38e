//! Certificates: where the serving certificate comes from, how it is validated, and how handshakes get it.
//!
//! Invariants: only a [`KeyPair`] can be served, and only complete validation makes one; once [`Served`] holds a
//! pair it always holds one; the crypto provider is named here and never taken from the process. Must not: print, store
//! or quote key material.

use std::{sync::Arc, time::SystemTime};

use rustls::{ServerConfig, crypto::CryptoProvider, server::NoServerSessionStorage};

mod ca_bundle;
pub mod client_auth;
pub mod configurations;
pub mod files;
pub mod inspect;
pub mod issue;
mod key_pair;
mod object;
mod publication;
mod reload;
pub mod self_managed;
mod served;
mod summary;

pub use ca_bundle::{CaBundle, CertificatesError};
use client_auth::ClientAuth;
pub use key_pair::{KeyPair, KeyPairError};
pub use object::{ObjectError, ObjectName, get};
pub use publication::{CaPolicy, Publication, Published};
pub use served::{Served, ServingStatus};
pub use summary::{Summary, Timestamp};

/// The time of day. Certificates live for months, and tests let years pass in seconds.
pub type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// What a server offers: what API servers speak to webhooks.
const ALPN: &[u8] = b"http/1.1";

#[must_use]
pub fn crypto_provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// How a server speaks TLS: versions 1.2 and 1.3, HTTP/1.1, no early data.
///
/// Sessions resume by tickets, which the server does not store and which stay valid when the certificate changes.
/// `clients` verifies client certificates. With it there are no tickets: a client sends its certificate every time.
///
/// # Errors
/// Where the crypto provider has no such versions, or the system has no random bytes.
pub fn server_config(served: &Served, clients: Option<Arc<ClientAuth>>) -> Result<Arc<ServerConfig>, rustls::Error> {
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
        // An API server keeps its connections: one ticket is enough.
        config.send_tls13_tickets = 1;
    }
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests;
