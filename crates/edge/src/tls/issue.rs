//! X.509: a certificate authority (CA), and the serving certificates that it signs.
//!
//! Invariants: keys that are made here are ECDSA P-256 and new for every certificate; a serving certificate never outlives its CA; a CA
//! signs servers only and no other CA. Must not: read a clock, touch a file.

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyUsagePurpose, PublicKeyData,
};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use thiserror::Error;
use time::OffsetDateTime;
use x509_parser::prelude::{FromDer, ParsedExtension, X509Certificate};

use super::{
    Summary,
    key_pair::{KeyPair, KeyPairError},
};

/// How long before its creation a certificate is already valid: clocks differ.
pub(super) const BACKDATED: Duration = Duration::from_secs(3600);

/// Why there is no certificate.
#[derive(Debug, Error)]
pub enum IssueError {
    #[error("{0}")]
    Make(&'static str, #[source] rcgen::Error),
    #[error("the certificate's lifetime ends after the year 9999")]
    Lifetime,
    #[error("{0}")]
    Ca(&'static str),
    #[error("the new certificate cannot be served")]
    Unusable(#[source] KeyPairError),
}

const NO_KEY: &str = "cannot generate a key";
const NOT_SIGNED: &str = "the certificate could not be signed";
const WRONG_NAME: &str = "a name for the certificate is neither a DNS name nor an IP address";
pub(super) const UNREADABLE: IssueError = IssueError::Ca("the certificate authority's certificate cannot be read");

/// A certificate and its key, as PEM. The key is secret, so this cannot be printed.
#[derive(Clone)]
pub struct Issued {
    pub cert: String,
    pub key: String,
}

/// The key and the certificate of a CA: made here, and then self-signed, or read.
pub struct Ca {
    pem: String,
    pub der: CertificateDer<'static>,
    issuer: Issuer<'static, rcgen::KeyPair>,
    pub summary: Summary,
    /// When the last certificate that it signed expires, if it is known to have signed any.
    pub leaves_until: Option<SystemTime>,
}

impl Ca {
    /// Creates a CA that is valid from an hour before `now` until `lifetime` after it.
    ///
    /// # Errors
    /// Where there are no random bytes, or it would expire after the year 9999.
    pub fn generate(name: &str, now: SystemTime, lifetime: Duration) -> Result<Self, IssueError> {
        let key = rcgen::KeyPair::generate().map_err(|error| IssueError::Make(NO_KEY, error))?;
        let mut params = params(name, now - BACKDATED, end(now, lifetime)?);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let cert = params.self_signed(&key).map_err(|error| IssueError::Make(NOT_SIGNED, error))?;
        Self::from_pem(&cert.pem(), &key.serialize_pem())
    }

    /// Reads a CA, to sign with it again. The caller checks whether it has expired.
    ///
    /// # Errors
    /// Where certificate or key cannot be read, or do not belong together.
    pub fn from_pem(cert_pem: &str, key_pem: &str) -> Result<Self, IssueError> {
        let der = CertificateDer::from_pem_slice(cert_pem.as_bytes()).map_err(|_| UNREADABLE)?;
        let Ok(([], cert)) = X509Certificate::from_der(&der) else { return Err(UNREADABLE) };
        if !cert.is_ca() {
            return Err(IssueError::Ca("the certificate is not one of a certificate authority"));
        }
        let key = rcgen::KeyPair::from_pem(key_pem)
            .map_err(|_| IssueError::Ca("the certificate authority's private key cannot be read"))?;
        if key.subject_public_key_info() != cert.public_key().raw {
            return Err(IssueError::Ca("the private key is not the key of the certificate authority"));
        }
        let issuer = Issuer::from_ca_cert_der(&der, key).map_err(|_| UNREADABLE)?;
        let summary = Summary::of(&cert);
        Ok(Self { pem: cert_pem.to_owned(), der: der.clone(), issuer, summary, leaves_until: None })
    }

    /// Signs a serving certificate for DNS names and IP addresses, with a new key. It is valid from an hour before
    /// `now` until `lifetime` after it, but not longer than the CA. Clients check `names` and not the common name, which is `subject`.
    ///
    /// # Errors
    /// Where a name is not valid in a certificate, there are no random bytes, or the certificate cannot be served at `now`.
    pub fn issue(
        &self,
        subject: &str,
        names: &[String],
        now: SystemTime,
        lifetime: Duration,
    ) -> Result<(Issued, KeyPair), IssueError> {
        let key = rcgen::KeyPair::generate().map_err(|error| IssueError::Make(NO_KEY, error))?;
        let not_after = end(now, lifetime)?.min(self.summary.not_after);
        let mut params = params(subject, (now - BACKDATED).max(self.summary.not_before), not_after);
        params.subject_alt_names =
            CertificateParams::new(names).map_err(|error| IssueError::Make(WRONG_NAME, error))?.subject_alt_names;
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let cert = params.signed_by(&key, &self.issuer).map_err(|error| IssueError::Make(NOT_SIGNED, error))?.pem();
        let pem = Issued { cert, key: key.serialize_pem() };
        let pair = KeyPair::from_pem(pem.cert.as_bytes(), pem.key.as_bytes(), now).map_err(IssueError::Unusable)?;
        Ok((pem, pair))
    }

    /// The subject key identifier, in hexadecimal digits.
    pub(super) fn key_id(&self) -> Option<String> {
        let (_, cert) = X509Certificate::from_der(&self.der).ok()?;
        cert.extensions().iter().find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(key) => Some(format!("{key:x}")),
            _ => None,
        })
    }

    pub fn cert_pem(&self) -> &str {
        &self.pem
    }

    /// The private key, as PEM in PKCS#8: secret.
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }
}

/// The last second of the year 9999, which is the last that X.509 can express.
const MAX_TIME: Duration = Duration::from_secs(253_402_300_799);

fn end(now: SystemTime, lifetime: Duration) -> Result<SystemTime, IssueError> {
    let end = now.checked_add(lifetime).filter(|end| *end <= SystemTime::UNIX_EPOCH + MAX_TIME);
    end.ok_or(IssueError::Lifetime)
}

fn params(name: &str, not_before: SystemTime, not_after: SystemTime) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = OffsetDateTime::from(not_before);
    params.not_after = OffsetDateTime::from(not_after);
    params
}
