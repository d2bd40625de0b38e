//! The certificate of a server that speaks TLS.

use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// A certificate for the loopback address, valid for as long as a clock can be wrong, and its key.
pub struct Tls(CertifiedKey<rcgen::KeyPair>);

impl Tls {
    pub fn new() -> Self {
        Self(generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap())
    }

    /// The certificate in DER, which is its own authority.
    pub fn authority(&self) -> Vec<u8> {
        self.0.cert.der().to_vec()
    }

    pub fn pem(&self) -> String {
        self.0.cert.pem()
    }

    pub fn acceptor(&self) -> TlsAcceptor {
        let key = PrivateKeyDer::try_from(self.0.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth();
        let mut config = config.with_single_cert(vec![self.0.cert.der().clone()], key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }
}
