//! Certificates: which one is served, who trusts it, and which clients may connect.
//!
//! ```text
//!  What is served:
//!    files::Files: the pair in two files ────────────────────────┐
//!    the Secret ► SecretContents ────────────────────────────────┼► KeyPair ► Served ► handshakes
//!        └──◄── apply ◄── next_change ◄──┘                       │
//!    issue::Ca, where nothing is kept ────────────────────────────┘
//!
//!  Who trusts it:
//!    SecretContents, or a file of CAs ► CaPolicy ► Publication ► BundleHistory ► CaBundle ► each webhook configuration
//!                                                     └─ published_for ► whether a new CA may sign, and its pair be served
//! ```
//!
//! | file | its types, and what they decide |
//! |---|---|
//! | `key_pair`, `summary` | [`KeyPair`]: a chain and its key that can be served; [`Summary`]: what is printed of it |
//! | `served` | [`Served`]: the pair that handshakes get, and what was refused |
//! | [`files`], `reload` | [`files::Files`]: the pair in two files, read again after each change |
//! | [`issue`] | [`issue::Ca`] and what it signs |
//! | [`self_managed`], its `contents` and `plan` | the Secret that all replicas share: its contents; its next change, so when a CA or a pair rotates; when a new pair is served |
//! | `ca_bundle` | [`CaBundle`], [`CaPolicy`] and their history: which CAs belong in a `caBundle`, and since when each is there |
//! | `publication` | [`Publication`]: the `caBundle`s in the webhook configurations, read and written |
//! | [`client_auth`] | [`client_auth::ClientAuth`]: whose client certificates are accepted |
//!
//! Invariants: only a [`KeyPair`] can be served, and only complete validation makes one; once [`Served`] holds a
//! pair it always holds one; the crypto provider is named here and never taken from the process. Must not: print, store
//! or quote key material.

use std::{sync::Arc, time::Duration};

use rustls::{ServerConfig, crypto::CryptoProvider, server::NoServerSessionStorage};

mod ca_bundle;
pub mod client_auth;
pub mod files;
pub mod issue;
mod key_pair;
mod publication;
mod reload;
pub mod self_managed;
mod served;
mod summary;

pub use ca_bundle::{CaBundle, CaPolicy, CertificatesError, MAX_BYTES, MAX_CERTIFICATES};
use client_auth::ClientAuth;
pub use key_pair::{KeyPair, KeyPairError, NO_NAMES};
pub use publication::{ConfiguredWebhook, Publication, Published, WebhookConfiguration};
pub use reload::Reload;
pub use served::Served;
pub use summary::{Summary, Timestamp};

/// How far the clocks of two machines may differ.
const CLOCK_SKEW: Duration = Duration::from_secs(300);

/// The protocol that a server offers (ALPN): API servers speak it to webhooks.
const ALPN: &[u8] = b"http/1.1";

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
