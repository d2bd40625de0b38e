//! A certificate chain with its private key, validated as a whole.
//!
//! Invariants: a [`KeyPair`] parses, its key is the key of its first certificate, it names at
//! least one host, and, unless read without its dates, it was valid when it was checked. Must not: put a byte of the key
//! into an error or a debug text.

use std::{fmt, sync::Arc, time::SystemTime};

use rustls::{
    pki_types::{PrivateKeyDer, pem, pem::PemObject},
    sign::{CertifiedKey, SigningKey},
};
use thiserror::Error;
use x509_parser::{
    prelude::{FromDer, ParsedExtension, X509Certificate},
    public_key::PublicKey,
};

use super::{
    CLOCK_SKEW,
    ca_bundle::{CertificatesError, read},
    summary::{Summary, Timestamp},
};
use KeyPairError::Unusable;

/// The longest chain that is read, in certificates. Public ones have two to four.
const MAX_CHAIN: usize = 16;

#[derive(Clone)]
pub struct KeyPair {
    /// The chain, the server's own certificate first, and its key.
    pub(super) certified: Arc<CertifiedKey>,
    pub summary: Summary,
    /// The key identifiers of the authorities that signed the certificates of the chain, as far as these name them.
    pub(super) authorities: Vec<String>,
    /// The length of its key, where that is an RSA key.
    pub(super) rsa_bits: Option<usize>,
}

/// It never quotes the key.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum KeyPairError {
    #[error("{0}")]
    Unusable(&'static str),
    #[error(transparent)]
    Certificates(#[from] CertificatesError),
    #[error("the private key is the key of certificate {0} of the chain: that one must come first")]
    Order(usize),
    #[error("the certificate expired at {0}")]
    Expired(Timestamp),
    #[error("the certificate is not valid before {0}")]
    NotYetValid(Timestamp),
}

/// Said of a certificate that is for no host.
pub const NO_NAMES: &str = "the certificate has no DNS name and no IP address among its subject alternative names";

impl KeyPair {
    /// Reads a certificate chain (the server's own certificate first) and its key (PKCS#1, PKCS#8 or SEC1), and checks
    /// that they can be served at `now`.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn from_pem(cert_pem: &[u8], key_pem: &[u8], now: SystemTime) -> Result<Self, KeyPairError> {
        let pair = Self::at_any_time(cert_pem, key_pem)?;
        pair.check_time(now)?;
        Ok(pair)
    }

    /// As [`KeyPair::from_pem`], without checking the dates.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn at_any_time(cert_pem: &[u8], key_pem: &[u8]) -> Result<Self, KeyPairError> {
        if cert_pem.trim_ascii().is_empty() {
            return Err(Unusable("the certificate is empty"));
        }
        let chain = read(cert_pem)?;
        if chain.len() > MAX_CHAIN {
            return Err(Unusable("the chain has more than 16 certificates"));
        }
        let key = key(key_pem)?;
        let public = key.public_key();
        let parsed: Vec<_> =
            chain.iter().flat_map(|der| X509Certificate::from_der(der)).map(|(_, cert)| cert).collect();
        let leaf = parsed.first().ok_or(CertificatesError::Missing)?;
        let is_its_key = |cert: &X509Certificate<'_>| public.as_deref() == Some(cert.public_key().raw);
        match parsed.iter().position(is_its_key) {
            Some(0) => {}
            Some(later) => return Err(KeyPairError::Order(later + 1)),
            None => return Err(Unusable("the private key is not the key of the certificate")),
        }
        let summary = Summary::of(leaf);
        if summary.names.is_empty() {
            return Err(Unusable(NO_NAMES));
        }
        let rsa_bits = match leaf.public_key().parsed() {
            Ok(PublicKey::RSA(key)) => Some(key.key_size()),
            _ => None,
        };
        let authorities = parsed.iter().filter_map(authority).collect();
        Ok(Self { certified: Arc::new(CertifiedKey::new(chain, key)), summary, authorities, rsa_bits })
    }

    pub(super) fn check_time(&self, now: SystemTime) -> Result<(), KeyPairError> {
        let Summary { not_before, not_after, .. } = self.summary;
        if not_after <= now {
            return Err(KeyPairError::Expired(Timestamp(not_after)));
        }
        if not_before > now + CLOCK_SKEW {
            return Err(KeyPairError::NotYetValid(Timestamp(not_before)));
        }
        Ok(())
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPair").field("summary", &self.summary).finish_non_exhaustive()
    }
}

fn key(text: &[u8]) -> Result<Arc<dyn SigningKey>, KeyPairError> {
    if text.trim_ascii().is_empty() {
        return Err(Unusable("the private key is empty"));
    }
    let der = PrivateKeyDer::from_pem_slice(text).map_err(|error| match error {
        _ if is_encrypted(text) => Unusable("the private key is encrypted: store it without a password"),
        pem::Error::NoItemsFound => Unusable("there is no PEM section with a private key"),
        // Without the cause: it may quote a line of the file.
        _ => Unusable("the private key is not valid PEM, or is not complete"),
    })?;
    rustls::crypto::ring::sign::any_supported_type(&der)
        .map_err(|_| Unusable("the private key is not an RSA (2048 to 4096 bits), ECDSA (P-256, P-384) or Ed25519 key"))
}

/// Whether the key is protected by a password: PKCS#8 says so in its label, OpenSSL's older form in a header.
fn is_encrypted(text: &[u8]) -> bool {
    text.windows(9).any(|window| window == b"ENCRYPTED")
}

/// The key identifier of the authority that signed a certificate.
fn authority(cert: &X509Certificate<'_>) -> Option<String> {
    cert.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::AuthorityKeyIdentifier(of) => of.key_identifier.as_ref().map(|key| format!("{key:x}")),
        _ => None,
    })
}
