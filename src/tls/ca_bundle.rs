//! Certificates in PEM; those in a `caBundle`, and which are added and removed. `publication.rs` says when, and `configurations.rs`
//! writes it.
//!
//! Pure. Invariants: only certificates that may be removed are removed; text that is not a certificate is no part of a
//! bundle.

use std::fmt;

use pem::{EncodeConfig, LineEnding, Pem};
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use thiserror::Error;
use x509_parser::prelude::{FromDer, X509Certificate};

#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum CertificatesError {
    #[error("there is no PEM section CERTIFICATE")]
    Missing,
    #[error("the certificate is not valid PEM, or is not complete")]
    Damaged,
    #[error("certificate {0} is not an X.509 certificate")]
    NotX509(usize),
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

/// The most certificates that are written into a `caBundle` besides those that are desired, and their bytes.
const MAX_CERTIFICATES: usize = 64;
const MAX_BYTES: usize = 128 * 1024;

/// A list of certificates without repetitions.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CaBundle(Vec<CertificateDer<'static>>);

impl CaBundle {
    /// Reads PEM that must be complete.
    ///
    /// # Errors
    /// Where it has no certificate, or a section is damaged.
    pub fn from_pem(pem: &[u8]) -> Result<Self, CertificatesError> {
        Ok(read(pem)?.into_iter().collect())
    }

    /// Reads the certificates that can be read and skips the rest, as API servers do.
    #[must_use]
    pub fn salvage(pem: &[u8]) -> Self {
        CertificateDer::pem_slice_iter(pem).flatten().collect()
    }

    #[must_use]
    pub fn to_pem(&self) -> String {
        let config = EncodeConfig::new().set_line_ending(LineEnding::LF);
        self.0.iter().map(|cert| pem::encode_config(&Pem::new("CERTIFICATE", cert.as_ref()), config)).collect()
    }

    /// As trust anchors.
    pub(super) fn roots(&self) -> Result<RootCertStore, rustls::Error> {
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

    #[must_use]
    pub fn contains(&self, cert: &CertificateDer<'_>) -> bool {
        self.0.iter().any(|ours| ours == cert)
    }

    pub fn iter(&self) -> impl Iterator<Item = &CertificateDer<'static>> {
        self.0.iter()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes the certificates for which `may_remove` is true, and appends those that are desired and missing. Of a bundle that
    /// is too large then, the first that are not desired go. `None` where nothing changes.
    #[must_use]
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

impl FromIterator<CertificateDer<'static>> for CaBundle {
    fn from_iter<I: IntoIterator<Item = CertificateDer<'static>>>(certs: I) -> Self {
        let mut bundle = Self::default();
        certs.into_iter().for_each(|cert| bundle.push(cert));
        bundle
    }
}

impl fmt::Debug for CaBundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CaBundle({} certificates)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cert(content: &'static [u8]) -> CertificateDer<'static> {
        CertificateDer::from(content)
    }

    fn bundle(contents: &[&'static [u8]]) -> CaBundle {
        contents.iter().map(|content| cert(content)).collect()
    }

    #[test]
    fn what_is_printed_is_read_again() {
        let long = [7_u8; 100];
        let bundle: CaBundle = [cert(b"one"), CertificateDer::from(long.to_vec())].into_iter().collect();
        let pem = bundle.to_pem();
        assert!(pem.lines().all(|line| line.len() <= 64), "{pem}");
        assert_eq!(CaBundle::salvage(pem.as_bytes()), bundle);
    }

    #[test]
    fn text_that_is_no_certificate_is_left_out() {
        let pem = bundle(&[b"one"]).to_pem();
        let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        let damaged = "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n";
        let mixed = format!("# a note\n{key}{damaged}{pem}{pem}-----BEGIN CERTIFICATE-----\nAAAA");
        assert_eq!(CaBundle::salvage(mixed.as_bytes()), bundle(&[b"one"]));
        assert_eq!(CaBundle::salvage(b"\n"), CaBundle::default());
        assert_eq!(CaBundle::from_pem(mixed.as_bytes()), Err(CertificatesError::Damaged));
        assert_eq!(CaBundle::from_pem(key.as_bytes()), Err(CertificatesError::Missing));
        assert_eq!(CaBundle::from_pem(pem.as_bytes()), Err(CertificatesError::NotX509(1)));
    }

    #[test]
    fn what_is_there_stays_and_what_is_missing_is_appended() {
        let keep = |_: &CertificateDer<'static>| false;
        assert_eq!(bundle(&[b"a"]).revised(&bundle(&[b"b", b"c"]), keep), Some(bundle(&[b"a", b"b", b"c"])));
        assert_eq!(bundle(&[b"a", b"b"]).revised(&bundle(&[b"b", b"a"]), keep), None);
        assert_eq!(CaBundle::default().revised(&CaBundle::default(), keep), None);
    }

    #[test]
    fn a_bundle_that_is_too_large_loses_its_first_certificates_and_none_that_is_desired() {
        let keep = |_: &CertificateDer<'static>| false;
        let certs = |number: u8, size: usize| -> CaBundle {
            (0..number).map(|at| CertificateDer::from([vec![at], vec![0; size]].concat())).collect()
        };
        let ours = bundle(&[b"ours"]);
        for (foreign, left) in [(certs(100, 10), 63), (certs(40, 10_000), 13)] {
            let revised = foreign.revised(&ours, keep).unwrap();
            let expected: CaBundle = foreign.iter().skip(foreign.len() - left).chain(ours.iter()).cloned().collect();
            assert_eq!(revised, expected);
            assert_eq!(revised.revised(&ours, keep), None);
        }
        assert_eq!(ours.revised(&certs(100, 10_000), |_| false), Some(certs(100, 10_000)));
    }

    #[test]
    fn what_may_be_removed_is_removed_unless_it_is_desired() {
        let all = |_: &CertificateDer<'static>| true;
        assert_eq!(bundle(&[b"a", b"b"]).revised(&bundle(&[b"b"]), all), Some(bundle(&[b"b"])));
        let only_a = |found: &CertificateDer<'static>| *found == cert(b"a");
        assert_eq!(bundle(&[b"a", b"b"]).revised(&bundle(&[b"c"]), only_a), Some(bundle(&[b"b", b"c"])));
    }
}
