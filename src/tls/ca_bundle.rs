//! The certificates that a `caBundle` holds, and how they change: appended to, and let go of one by one.
//!
//! Pure. What always holds: a certificate that nobody said may go stays; text that is not a certificate is no part of a
//! bundle.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustls::pki_types::{CertificateDer, pem::PemObject};

/// Characters of base64 on a line of PEM (RFC 7468).
const LINE: usize = 64;

/// A list of certificates without repetitions.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CaBundle(Vec<CertificateDer<'static>>);

impl CaBundle {
    /// Reads PEM. Sections that are damaged or are not certificates are left out, as API servers do.
    #[must_use]
    pub fn parse(pem: &[u8]) -> Self {
        let mut bundle = Self::default();
        for cert in CertificateDer::pem_slice_iter(pem).flatten() {
            bundle.push(cert);
        }
        bundle
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
        assert_eq!(CaBundle::parse(pem.as_bytes()), bundle);
    }

    #[test]
    fn text_that_is_no_certificate_is_left_out() {
        let pem = bundle(&[b"one"]).to_pem();
        let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        let damaged = "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n";
        let mixed = format!("# a note\n{key}{damaged}{pem}{pem}-----BEGIN CERTIFICATE-----\nAAAA");
        assert_eq!(CaBundle::parse(mixed.as_bytes()), bundle(&[b"one"]));
        assert_eq!(CaBundle::parse(b"\n"), CaBundle::default());
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
