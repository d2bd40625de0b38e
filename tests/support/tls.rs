//! The certificate of a server that speaks TLS.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use gmsa_webhook::tls::{
    KeyPair, Served,
    issue::{Ca, Issued},
    server_config,
};
use tokio_rustls::TlsAcceptor;

const LIFETIME: Duration = Duration::from_secs(3600);

pub(super) struct Tls {
    ca: Ca,
    certificate: Issued,
}

impl Tls {
    pub fn new() -> Self {
        let now = SystemTime::now();
        let ca = Ca::generate("simulated", now, LIFETIME).unwrap();
        let certificate = ca.issue(&["127.0.0.1".to_owned()], now, LIFETIME).unwrap();
        Self { ca, certificate }
    }

    /// The authority's certificate in DER, for clients.
    pub fn authority(&self) -> Vec<u8> {
        self.ca.cert_der().to_vec()
    }

    pub fn acceptor(&self) -> TlsAcceptor {
        let Issued { cert, key, .. } = &self.certificate;
        let served = Served::new();
        served.publish(KeyPair::from_pem(cert.as_bytes(), key.as_bytes(), SystemTime::now()).unwrap());
        TlsAcceptor::from(Arc::clone(&server_config(&served, None).unwrap()))
    }
}
