//! The certificates that a `caBundle` holds, and how they change: appended to, and let go of one by one.
//!
//! Pure. What always holds: a certificate that nobody said may go stays; text that is not a certificate is no part of a
//! bundle.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use thiserror::Error;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Characters of base64 on a line of PEM (RFC 7468).
const LINE: usize = 64;

/// Why a text is no bundle.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum CaBundleError {
    #[error("there is no PEM section CERTIFICATE")]
    NoCertificate,
    #[error("a certificate is not valid PEM, or is not complete")]
    Damaged,
    #[error("certificate {0} is not an X.509 certificate")]
    NotX509(usize),
}

/// A list of certificates without repetitions.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CaBundle(Vec<CertificateDer<'static>>);

impl CaBundle {
    /// Reads PEM that somebody means to be whole.
    ///
    /// # Errors
    /// Where there is no certificate in it, or a section is damaged: the file may still be being written.
    pub fn from_pem(pem: &[u8]) -> Result<Self, CaBundleError> {
        let certs: Result<Self, _> = CertificateDer::pem_slice_iter(pem).collect();
        match certs {
            Ok(bundle) if bundle.is_empty() => Err(CaBundleError::NoCertificate),
            Ok(bundle) => bundle.checked(),
            Err(_) => Err(CaBundleError::Damaged),
        }
    }

    /// Reads the certificates that can be read. Everything else is left out, as API servers do.
    #[must_use]
    pub fn salvage(pem: &[u8]) -> Self {
        CertificateDer::pem_slice_iter(pem).flatten().collect()
    }

    fn checked(self) -> Result<Self, CaBundleError> {
        let broken = self.0.iter().position(|cert| !matches!(X509Certificate::from_der(cert), Ok(([], _))));
        broken.map_or(Ok(self), |index| Err(CaBundleError::NotX509(index + 1)))
    }

    /// As PEM.
    #[must_use]
    pub fn to_pem(&self) -> String {
        let mut pem = String::new();
        for cert in &self.0 {
            pem.push_str("-----BEGIN CERTIFICATE-----\n");
            for (position, character) in STANDARD.encode(cert).chars().enumerate() {
                if position > 0 && position % LINE == 0 {
                    pem.push('\n');
                }
                pem.push(character);
            }
            pem.push_str("\n-----END CERTIFICATE-----\n");
        }
        pem
    }

    /// Adds a certificate, if it is not there yet.
    pub fn push(&mut self, cert: CertificateDer<'static>) {
        if !self.0.contains(&cert) {
            self.0.push(cert);
        }
    }

    /// Whether a certificate is in it.
    #[must_use]
    pub fn contains(&self, cert: &CertificateDer<'_>) -> bool {
        self.0.iter().any(|ours| ours == cert)
    }

    /// The certificates, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &CertificateDer<'static>> {
        self.0.iter()
    }

    /// How many certificates it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What this bundle should become: what may go goes, what is missing is appended. `None` where it can stay as it is.
    #[must_use]
    pub fn revised(&self, wanted: &Self, mut may_go: impl FnMut(&CertificateDer<'static>) -> bool) -> Option<Self> {
        let mut revised = Self::default();
        for cert in &self.0 {
            if wanted.contains(cert) || !may_go(cert) {
                revised.push(cert.clone());
            }
        }
        for cert in &wanted.0 {
            revised.push(cert.clone());
        }
        (revised != *self).then_some(revised)
    }
}

impl FromIterator<CertificateDer<'static>> for CaBundle {
    fn from_iter<I: IntoIterator<Item = CertificateDer<'static>>>(certs: I) -> Self {
        let mut bundle = Self::default();
        for cert in certs {
            bundle.push(cert);
        }
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
        assert!(pem.lines().all(|line| line.len() <= LINE), "{pem}");
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
        assert_eq!(CaBundle::from_pem(mixed.as_bytes()), Err(CaBundleError::Damaged));
        assert_eq!(CaBundle::from_pem(key.as_bytes()), Err(CaBundleError::NoCertificate));
        assert_eq!(CaBundle::from_pem(pem.as_bytes()), Err(CaBundleError::NotX509(1)));
    }

    #[test]
    fn what_is_there_stays_and_what_is_missing_is_appended() {
        let keep = |_: &CertificateDer<'static>| false;
        assert_eq!(bundle(&[b"a"]).revised(&bundle(&[b"b", b"c"]), keep), Some(bundle(&[b"a", b"b", b"c"])));
        assert_eq!(bundle(&[b"a", b"b"]).revised(&bundle(&[b"b", b"a"]), keep), None);
        assert_eq!(CaBundle::default().revised(&CaBundle::default(), keep), None);
    }

    #[test]
    fn what_may_go_goes_unless_it_is_wanted() {
        let all = |_: &CertificateDer<'static>| true;
        assert_eq!(bundle(&[b"a", b"b"]).revised(&bundle(&[b"b"]), all), Some(bundle(&[b"b"])));
        let only_a = |found: &CertificateDer<'static>| *found == cert(b"a");
        assert_eq!(bundle(&[b"a", b"b"]).revised(&bundle(&[b"c"]), only_a), Some(bundle(&[b"b", b"c"])));
    }
}
