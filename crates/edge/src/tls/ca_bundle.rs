//! The CAs that belong in a `caBundle`: its certificates, their policy, and for how long each has been there.
//! `publication.rs` reads and writes the `caBundle`s.
//!
//! Pure: the time is a value. Invariants: a CA that this process does not know stays for the whole grace period, so that pods
//! that still serve with it stay trusted, unless it has expired or the bundle is too large; text that is not a certificate is no
//! part of a bundle. How long a CA has been somewhere is the time that this process has run since it saw the CA first: setting the clock
//! changes nothing, and a restart or a suspended machine only makes it longer.

use std::{
    collections::HashMap,
    ops::Deref,
    time::{Duration, SystemTime},
};

use pem::{EncodeConfig, LineEnding, Pem};
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use thiserror::Error;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::CLOCK_SKEW;
use crate::clock::Moment;

/// Why a text is not a list of certificates.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CertificatesError {
    #[error("there is no PEM section CERTIFICATE")]
    Missing,
    #[error("the certificate is not valid PEM, or is not complete")]
    Damaged,
    #[error("certificate {0} is not an X.509 certificate")]
    NotX509(usize),
    #[error("a certificate cannot be a certificate authority: {0}")]
    NotCa(String),
}

/// Reads at least one certificate in PEM that must be complete: a damaged section may mean that the file is still being written.
/// Sections that are not certificates are skipped.
pub(super) fn read(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, CertificatesError> {
    let certs: Vec<_> =
        CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|_| CertificatesError::Damaged)?;
    if certs.is_empty() {
        return Err(CertificatesError::Missing);
    }
    let invalid = certs.iter().position(|cert| !matches!(X509Certificate::from_der(cert), Ok(([], _))));
    invalid.map_or(Ok(certs), |index| Err(CertificatesError::NotX509(index + 1)))
}

/// The most certificates in a `caBundle`, and their bytes. Only desired ones may exceed them.
pub const MAX_CERTIFICATES: usize = 64;
/// See [`MAX_CERTIFICATES`].
pub const MAX_BYTES: usize = 128 * 1024;

/// A list of certificates without repetitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaBundle(Vec<CertificateDer<'static>>);

impl CaBundle {
    /// Reads PEM that must be complete.
    ///
    /// # Errors
    /// If it has no certificate, or a section is damaged.
    pub fn from_pem(pem: &[u8]) -> Result<Self, CertificatesError> {
        Ok(read(pem)?.into_iter().collect())
    }

    /// Reads the certificates that can be read and skips the rest, as API servers do.
    pub fn salvage(pem: &[u8]) -> Self {
        CertificateDer::pem_slice_iter(pem).flatten().collect()
    }

    pub fn to_pem(&self) -> String {
        let config = EncodeConfig::new().set_line_ending(LineEnding::LF);
        self.0.iter().map(|cert| pem::encode_config(&Pem::new("CERTIFICATE", cert.as_ref()), config)).collect()
    }

    /// As trust anchors.
    ///
    /// # Errors
    /// Where a certificate cannot be one.
    pub fn roots(&self) -> Result<RootCertStore, rustls::Error> {
        let mut roots = RootCertStore::empty();
        self.0.iter().try_for_each(|ca| roots.add(ca.clone()))?;
        Ok(roots)
    }

    /// Adds a certificate that is not in the bundle yet.
    pub fn push(&mut self, cert: CertificateDer<'static>) {
        if !self.0.contains(&cert) {
            self.0.push(cert);
        }
    }

    /// Removes the certificates for which `may_remove` is true, and appends the desired ones that are missing. If the
    /// bundle is too large then, the first that are not desired go. `None` where nothing changes.
    pub fn revised(
        &self,
        desired: &Self,
        mut may_remove: impl FnMut(&CertificateDer<'static>) -> bool,
    ) -> Option<Self> {
        let kept = self.0.iter().filter(|cert| desired.contains(cert) || !may_remove(cert));
        let mut revised: Self = kept.chain(&desired.0).cloned().collect();
        while revised.len() > MAX_CERTIFICATES || revised.iter().map(|cert| cert.len()).sum::<usize>() > MAX_BYTES {
            let Some(first) = revised.iter().position(|cert| !desired.contains(cert)) else { break };
            revised.0.remove(first);
        }
        (revised != *self).then_some(revised)
    }
}

impl Deref for CaBundle {
    type Target = [CertificateDer<'static>];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl FromIterator<CertificateDer<'static>> for CaBundle {
    fn from_iter<I: IntoIterator<Item = CertificateDer<'static>>>(certs: I) -> Self {
        let mut bundle = Self::default();
        certs.into_iter().for_each(|cert| bundle.push(cert));
        bundle
    }
}

/// The CAs that belong in every `caBundle`. All others are foreign: they stay for the grace period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaPolicy {
    /// Added where they are missing.
    pub desired: CaBundle,
    /// Neither added nor removed.
    pub tolerated: CaBundle,
    /// Removed at once.
    pub revoked: CaBundle,
}

/// Since when CAs have been in the `caBundle`s.
#[derive(Debug)]
pub(super) struct BundleHistory {
    foreign_grace: Duration,
    /// When each foreign CA was seen first.
    foreign: HashMap<CertificateDer<'static>, Moment>,
    /// Since when each desired CA has been in every bundle.
    published: HashMap<CertificateDer<'static>, Moment>,
}

impl BundleHistory {
    pub(super) fn new(foreign_grace: Duration) -> Self {
        Self { foreign_grace, foreign: HashMap::new(), published: HashMap::new() }
    }

    /// The bundle that follows the policy; `None` where it already does.
    pub(super) fn revise(&mut self, bundle: &CaBundle, policy: &CaPolicy, now: Moment) -> Option<CaBundle> {
        bundle.revised(&policy.desired, |ca| {
            if policy.tolerated.contains(ca) {
                return false;
            }
            if policy.revoked.contains(ca) || has_expired(ca, now.wall) {
                return true;
            }
            let seen = *self.foreign.entry(ca.clone()).or_insert(now);
            now.running_since(&seen) >= self.foreign_grace
        })
    }

    /// Records the present contents of all bundles.
    pub(super) fn observe(&mut self, bundles: &[CaBundle], policy: &CaPolicy, now: Moment) {
        self.foreign.retain(|ca, _| bundles.iter().any(|bundle| bundle.contains(ca)));
        let in_all = |ca: &CertificateDer<'static>| bundles.iter().all(|bundle| bundle.contains(ca));
        self.published.retain(|ca, _| in_all(ca));
        for ca in policy.desired.iter().filter(|ca| in_all(ca)) {
            self.published.entry(ca.clone()).or_insert(now);
        }
    }

    /// For how long a CA has been in every `caBundle`; `None` where it is not.
    pub(super) fn published_for(&self, ca: &CertificateDer<'static>, now: Moment) -> Option<Duration> {
        self.published.get(ca).map(|since| now.running_since(since))
    }
}

/// A certificate that cannot be read has not expired: it is foreign.
fn has_expired(cert: &CertificateDer<'_>, now: SystemTime) -> bool {
    let Ok((_, cert)) = X509Certificate::from_der(cert) else { return false };
    SystemTime::from(cert.validity().not_after.to_datetime()) + CLOCK_SKEW <= now
}

#[cfg(test)]
mod tests;
