//! A certificate chain with its private key, checked as a whole.
//!
//! What always holds: a [`KeyPair`] parses, its key is the key of its first certificate, it was valid when it was checked,
//! and it names at least one host. Must not: put a byte of the key into an error or a debug text.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
    time::{Duration, SystemTime},
};

use rustls::{
    pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject},
    sign::{CertifiedKey, SigningKey},
};
use thiserror::Error;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// How far the clock of whoever signed a certificate may be ahead of ours.
const CLOCK_SKEW: Duration = Duration::from_secs(300);
/// The longest chain that is read. Public ones have two to four certificates.
const MAX_CHAIN: usize = 16;

/// A certificate chain with its private key, checked as a whole.
#[derive(Clone)]
pub struct KeyPair {
    certified: Arc<CertifiedKey>,
    summary: Summary,
}

/// What a certificate says about itself. Nothing in it is secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The DNS names and IP addresses that the certificate is for.
    pub names: Vec<String>,
    /// Its serial number, in lower-case hexadecimal digits.
    pub serial: String,
    /// Who signed it, as a distinguished name.
    pub issuer: String,
    /// From when on it is valid.
    pub not_before: SystemTime,
    /// Until when it is valid.
    pub not_after: SystemTime,
}

/// Why a certificate and a key cannot be served. It never quotes the key.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum KeyPairError {
    /// The certificate's text is empty.
    #[error("the certificate is empty")]
    CertificateEmpty,
    /// The key's text is empty.
    #[error("the private key is empty")]
    KeyEmpty,
    /// There is text, but no certificate in it.
    #[error("there is no PEM section CERTIFICATE")]
    NoCertificate,
    /// The text ends within a section, or a section is not base64.
    #[error("the certificate is not valid PEM, or is not complete")]
    CertificatePem,
    /// The chain is longer than anything that a client would follow.
    #[error("the chain has more than {MAX_CHAIN} certificates")]
    ChainTooLong,
    /// A section is not an X.509 certificate.
    #[error("certificate {0} of the chain is not an X.509 certificate")]
    NotX509(usize),
    /// There is text, but no private key in it.
    #[error("there is no PEM section with a private key")]
    NoKey,
    /// The key is protected by a password.
    #[error("the private key is encrypted: store it without a password")]
    KeyEncrypted,
    /// The text ends within a section, or a section is not base64.
    #[error("the private key is not valid PEM, or is not complete")]
    KeyPem,
    /// The key is of a kind that cannot sign a handshake here.
    #[error("the private key is not an RSA (2048 to 4096 bits), ECDSA (P-256, P-384) or Ed25519 key")]
    KeyKind,
    /// The key belongs to another certificate.
    #[error("the private key is not the key of the certificate")]
    Mismatch,
    /// The key belongs to a later certificate of the chain.
    #[error("the private key is the key of certificate {0} of the chain: that one must come first")]
    Order(usize),
    /// The certificate is no longer valid.
    #[error("the certificate expired at {0}")]
    Expired(String),
    /// The certificate is not valid yet, by more than clocks may differ.
    #[error("the certificate is not valid before {0}")]
    NotYetValid(String),
    /// The certificate names no host, and a common name does not count.
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
        let chain = chain(cert_pem)?;
        let key = key(key_pem)?;
        let parsed = parse(&chain)?;
        let leaf = parsed.first().ok_or(KeyPairError::NoCertificate)?;
        match parsed.iter().position(|cert| is_key_of(cert, key.as_ref())) {
            Some(0) => {}
            Some(later) => return Err(KeyPairError::Order(later + 1)),
            None => return Err(KeyPairError::Mismatch),
        }
        let summary = Summary::of(leaf);
        if summary.names.is_empty() {
            return Err(KeyPairError::NoNames);
        }
        if summary.not_after <= now {
            return Err(KeyPairError::Expired(timestamp(summary.not_after)));
        }
        if summary.not_before > now + CLOCK_SKEW {
            return Err(KeyPairError::NotYetValid(timestamp(summary.not_before)));
        }
        Ok(Self { certified: Arc::new(CertifiedKey::new(chain, key)), summary })
    }

    /// What the certificate says about itself.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The DNS names and IP addresses that the certificate is for.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.summary.names
    }

    /// Until when the certificate is valid.
    #[must_use]
    pub fn not_after(&self) -> SystemTime {
        self.summary.not_after
    }

    /// The serial number, in lower-case hexadecimal digits.
    #[must_use]
    pub fn serial(&self) -> &str {
        &self.summary.serial
    }

    /// The chain, the server's own certificate first.
    #[must_use]
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

impl Summary {
    /// Reads a certificate.
    #[must_use]
    pub fn of(cert: &X509Certificate<'_>) -> Self {
        Self {
            names: names(cert),
            serial: serial(cert),
            issuer: cert.issuer().to_string(),
            not_before: super::unix_time(cert.validity().not_before.timestamp()),
            not_after: super::unix_time(cert.validity().not_after.timestamp()),
        }
    }
}

fn chain(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, KeyPairError> {
    if text.trim_ascii().is_empty() {
        return Err(KeyPairError::CertificateEmpty);
    }
    let chain: Vec<_> = CertificateDer::pem_slice_iter(text)
        .take(MAX_CHAIN + 1)
        .collect::<Result<_, _>>()
        .map_err(|_| KeyPairError::CertificatePem)?;
    match chain.len() {
        0 => Err(KeyPairError::NoCertificate),
        1..=MAX_CHAIN => Ok(chain),
        _ => Err(KeyPairError::ChainTooLong),
    }
}

fn parse<'a>(chain: &'a [CertificateDer<'static>]) -> Result<Vec<X509Certificate<'a>>, KeyPairError> {
    let parse = |(index, der): (usize, &'a CertificateDer<'static>)| match X509Certificate::from_der(der) {
        Ok(([], cert)) => Ok(cert),
        _ => Err(KeyPairError::NotX509(index + 1)),
    };
    chain.iter().enumerate().map(parse).collect()
}

fn key(text: &[u8]) -> Result<Arc<dyn SigningKey>, KeyPairError> {
    if text.trim_ascii().is_empty() {
        return Err(KeyPairError::KeyEmpty);
    }
    let der = PrivateKeyDer::from_pem_slice(text).map_err(|error| match error {
        pem::Error::NoItemsFound if is_encrypted(text) => KeyPairError::KeyEncrypted,
        pem::Error::NoItemsFound => KeyPairError::NoKey,
        // The cause may quote a line of the file.
        _ if is_encrypted(text) => KeyPairError::KeyEncrypted,
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

fn names(cert: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(extension)) = cert.subject_alternative_name() else { return Vec::new() };
    let name = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(dns) => Some((*dns).to_owned()),
        GeneralName::IPAddress(octets) => ip(octets).map(|ip| ip.to_string()),
        _ => None,
    };
    extension.value.general_names.iter().filter_map(name).collect()
}

fn ip(octets: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(octets).map(|octets| Ipv4Addr::from(octets).into());
    v4.or_else(|_| <[u8; 16]>::try_from(octets).map(|octets| Ipv6Addr::from(octets).into())).ok()
}

fn serial(cert: &X509Certificate<'_>) -> String {
    // DER puts a zero before a first byte that would read as negative.
    let bytes = cert.raw_serial();
    let digits = bytes.strip_prefix(&[0]).filter(|rest| !rest.is_empty()).unwrap_or(bytes);
    digits.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// A time as people and logs read it: RFC 3339, to the second, UTC.
pub(crate) fn timestamp(time: SystemTime) -> String {
    let time = OffsetDateTime::from(time);
    time.replace_nanosecond(0).unwrap_or(time).format(&Rfc3339).unwrap_or_else(|_| time.to_string())
}
