//! A certificate chain with its private key, validated as a whole.
//!
//! Invariants: a [`KeyPair`] parses, its key is the key of its first certificate, it names at
//! least one host, and, unless read without its dates, it was valid when it was checked. Must not: put a byte of the key
//! into an error or a debug text.

use std::{fmt, sync::Arc, time::SystemTime};

use rustls::{
    pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject},
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

/// The longest chain that is read. Public ones have two to four certificates.
const MAX_CHAIN: usize = 16;

#[derive(Clone)]
pub struct KeyPair {
    certified: Arc<CertifiedKey>,
    summary: Summary,
    /// The key identifiers of the authorities that signed the certificates of the chain, as far as these name them.
    pub(super) authorities: Vec<String>,
    /// The length of its key, where that is an RSA key.
    pub(super) rsa_bits: Option<usize>,
}

/// It never quotes the key.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum KeyPairError {
    #[error("the certificate is empty")]
    CertificateEmpty,
    #[error("the private key is empty")]
    KeyEmpty,
    #[error(transparent)]
    Certificates(#[from] CertificatesError),
    #[error("the chain has more than {MAX_CHAIN} certificates")]
    ChainTooLong,
    #[error("there is no PEM section with a private key")]
    NoKey,
    #[error("the private key is encrypted: store it without a password")]
    KeyEncrypted,
    #[error("the private key is not valid PEM, or is not complete")]
    KeyPem,
    #[error("the private key is not an RSA (2048 to 4096 bits), ECDSA (P-256, P-384) or Ed25519 key")]
    KeyKind,
    #[error("the private key is not the key of the certificate")]
    Mismatch,
    #[error("the private key is the key of certificate {0} of the chain: that one must come first")]
    Order(usize),
    #[error("the certificate expired at {0}")]
    Expired(Timestamp),
    #[error("the certificate is not valid before {0}")]
    NotYetValid(Timestamp),
    #[error("the certificate has no DNS name and no IP address among its subject alternative names")]
    NoNames,
}

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
        let chain = chain(cert_pem)?;
        let key = key(key_pem)?;
        let parsed: Vec<_> =
            chain.iter().flat_map(|der| X509Certificate::from_der(der)).map(|(_, cert)| cert).collect();
        let leaf = parsed.first().ok_or(CertificatesError::Missing)?;
        match parsed.iter().position(|cert| is_key_of(cert, key.as_ref())) {
            Some(0) => {}
            Some(later) => return Err(KeyPairError::Order(later + 1)),
            None => return Err(KeyPairError::Mismatch),
        }
        let summary = Summary::of(leaf);
        if summary.names.is_empty() {
            return Err(KeyPairError::NoNames);
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

    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The chain, the server's own certificate first.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.certified.cert
    }

    pub(super) fn certified(&self) -> Arc<CertifiedKey> {
        self.certified.clone()
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPair").field("summary", &self.summary).finish_non_exhaustive()
    }
}

fn chain(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, KeyPairError> {
    if text.trim_ascii().is_empty() {
        return Err(KeyPairError::CertificateEmpty);
    }
    let chain = read(text)?;
    if chain.len() > MAX_CHAIN { Err(KeyPairError::ChainTooLong) } else { Ok(chain) }
}

fn key(text: &[u8]) -> Result<Arc<dyn SigningKey>, KeyPairError> {
    if text.trim_ascii().is_empty() {
        return Err(KeyPairError::KeyEmpty);
    }
    let der = PrivateKeyDer::from_pem_slice(text).map_err(|error| match error {
        _ if is_encrypted(text) => KeyPairError::KeyEncrypted,
        pem::Error::NoItemsFound => KeyPairError::NoKey,
        // Without the cause: it may quote a line of the file.
        _ => KeyPairError::KeyPem,
    })?;
    rustls::crypto::ring::sign::any_supported_type(&der).map_err(|_| KeyPairError::KeyKind)
}

/// Whether the key is protected by a password: PKCS#8 says so in its label, OpenSSL's older form in a header.
fn is_encrypted(text: &[u8]) -> bool {
    text.windows(9).any(|window| window == b"ENCRYPTED")
}

fn is_key_of(cert: &X509Certificate<'_>, key: &dyn SigningKey) -> bool {
    key.public_key().is_some_and(|public| public.as_ref() == cert.public_key().raw)
}

/// The key identifier of the authority that signed a certificate.
fn authority(cert: &X509Certificate<'_>) -> Option<String> {
    cert.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::AuthorityKeyIdentifier(of) => of.key_identifier.as_ref().map(|key| format!("{key:x}")),
        _ => None,
    })
}
