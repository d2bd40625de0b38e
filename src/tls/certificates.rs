//! Certificates in PEM that must be complete: a damaged section may mean that the file is still being written.

use rustls::pki_types::{CertificateDer, pem::PemObject};
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

/// Reads at least one certificate. Sections that are not certificates are skipped.
pub(super) fn read(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, CertificatesError> {
    let certs: Vec<_> =
        CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|_| CertificatesError::Damaged)?;
    if certs.is_empty() {
        return Err(CertificatesError::Missing);
    }
    let invalid = certs.iter().position(|cert| !matches!(X509Certificate::from_der(cert), Ok(([], _))));
    invalid.map_or(Ok(certs), |index| Err(CertificatesError::NotX509(index + 1)))
}
