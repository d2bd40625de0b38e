//! Certificates: from PEM to a checked key pair, and from there into the TLS handshakes.
//!
//! What always holds: only a [`KeyPair`] can be served, and only a check of the whole pair makes one, so nobody ever sees
//! half of a new certificate; once [`Served`] holds a pair it always holds one; the crypto provider is named here and
//! never taken from the process. Must not: print, keep or quote key material; read a clock (`now` is a value).

use std::{fmt, sync::Arc, time::SystemTime};

use arc_swap::ArcSwapOption;
use rustls::{
    ServerConfig,
    crypto::CryptoProvider,
    server::{ClientHello, NoServerSessionStorage, ResolvesServerCert, danger::ClientCertVerifier},
    sign::CertifiedKey,
};

pub mod files;
pub mod issue;
mod key_pair;
pub mod self_signed;

pub use key_pair::{KeyPair, KeyPairError, Summary};

/// What a server offers, in the order of its preference.
const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The crypto provider of every TLS connection and signature in this process.
#[must_use]
pub fn crypto_provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The certificate that handshakes get, shared between the one that publishes and the listener. Clones are handles to
/// the same certificate.
#[derive(Clone, Default)]
pub struct Served(Arc<Slot>);

#[derive(Default)]
struct Slot(ArcSwapOption<KeyPair>);

impl Served {
    /// Nothing served yet: handshakes fail until something is published.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on every new handshake gets this certificate. Connections that stand are not touched.
    pub fn publish(&self, pair: KeyPair) {
        self.0.0.store(Some(Arc::new(pair)));
    }

    /// What is served, if anything is.
    #[must_use]
    pub fn current(&self) -> Option<Summary> {
        self.0.0.load().as_ref().map(|pair| pair.summary().clone())
    }

    /// Whether a certificate is being served. Once true it stays true.
    #[must_use]
    pub fn is_serving(&self) -> bool {
        self.0.0.load().is_some()
    }
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Served").field(&self.current()).finish()
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Slot").field(&self.0.load().as_ref().map(|pair| pair.summary().clone())).finish()
    }
}

impl ResolvesServerCert for Slot {
    // The name that the client asks for does not matter: there is one certificate.
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.load().as_ref().map(|pair| pair.certified())
    }
}

/// How a server speaks TLS: versions 1.2 and 1.3, HTTP/2 and HTTP/1.1, no early data.
///
/// Sessions resume by tickets that the process encrypts for itself: nothing is stored, and a swap of certificates leaves
/// them valid. `clients` says who may connect; without it anybody may.
///
/// # Errors
/// Where the crypto provider cannot do what is asked of it, or the system has no random bytes.
pub fn server_config(
    served: &Served,
    clients: Option<Arc<dyn ClientCertVerifier>>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let versions = ServerConfig::builder_with_provider(crypto_provider())
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?;
    let authenticated = match clients {
        Some(clients) => versions.with_client_cert_verifier(clients),
        None => versions.with_no_client_auth(),
    };
    let resolver: Arc<dyn ResolvesServerCert> = served.0.clone();
    let mut config = authenticated.with_cert_resolver(resolver);
    config.alpn_protocols = ALPN.iter().map(|protocol| protocol.to_vec()).collect();
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.ticketer = rustls::crypto::ring::Ticketer::new()?;
    // An API server keeps its connections; one ticket is enough for a client that resumes at all.
    config.send_tls13_tickets = 1;
    Ok(Arc::new(config))
}

/// The seconds since 1970, as certificates count, on the process's clock type.
fn unix_time(seconds: i64) -> SystemTime {
    let distance = std::time::Duration::from_secs(seconds.unsigned_abs());
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
