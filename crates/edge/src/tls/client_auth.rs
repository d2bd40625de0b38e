//! Verifies clients: they need a certificate of a given CA and, where names are given, one of these names.
//!
//! The API server presents a client certificate to a webhook where its `AdmissionConfiguration` names a kubeconfig with one.
//!
//! Invariants: no handshake completes without a valid certificate; a connection ends when its client's certificate expires or is no
//! longer trusted; an invalid CA file changes nothing.

use std::{
    convert::Infallible,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    pki_types::{CertificateDer, UnixTime},
    server::{
        WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};
use tokio::{sync::watch, time::timeout};
use x509_parser::{
    extensions::GeneralName,
    prelude::{FromDer, X509Certificate},
};

use super::{
    CaBundle, CertificatesError, crypto_provider,
    files::{FileError, load_cas, log_invalid_cas},
    reload::Reload,
};
use crate::telemetry::LogOnce;

#[derive(Debug)]
pub struct ClientAuth {
    file: PathBuf,
    names: Vec<String>,
    trusted: watch::Sender<Trusted>,
}

#[derive(Debug)]
struct Trusted {
    bundle: CaBundle,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl ClientAuth {
    /// Trusts clients with a certificate of a CA in `file`; where there are `names`, only those whose common name is one of
    /// them, or one of whose DNS names is listed with `dns:` in front.
    ///
    /// # Errors
    /// Where the file cannot be read or holds no CA.
    pub fn load(file: PathBuf, names: Vec<String>) -> Result<Arc<Self>, FileError> {
        let trusted = watch::Sender::new(Trusted::load(&file)?);
        Ok(Arc::new(Self { file, names, trusted }))
    }

    /// Loads the file again after each change.
    pub async fn keep_loaded(self: Arc<Self>, interval: Duration) -> Infallible {
        let file = self.file.clone();
        let mut source = Reload::new(&[&self.file], interval, move || Trusted::load(&file));
        let mut problem = LogOnce::default();
        loop {
            if let Some(trusted) = problem.check(source.next().await, log_invalid_cas)
                && trusted.bundle != self.trusted.borrow().bundle
            {
                self.trusted.send_replace(trusted);
                tracing::info!(file = %self.file.display(), "trusting new certificate authorities of clients");
            }
        }
    }

    /// Waits until a new handshake with this certificate, and the intermediate ones behind it, would be refused: a certificate has
    /// expired, or the CA file has changed. `now` reads the clock.
    pub async fn revoked(&self, chain: &[CertificateDer<'_>], now: impl Fn() -> UnixTime) {
        let mut trusted = self.trusted.subscribe();
        let Some((end_entity, intermediates)) = chain.split_first() else { return };
        while self.verify_client_cert(end_entity, intermediates, now()).is_ok() {
            let next_check = until_expiry(chain, now()).map_or(CLOCK_CHECK, |expiry| expiry.min(CLOCK_CHECK));
            if let Ok(Err(_)) = timeout(next_check, trusted.changed()).await {
                return;
            }
        }
    }
}

impl Trusted {
    fn load(file: &Path) -> Result<Self, FileError> {
        let bundle = load_cas(file)?;
        let verifier = bundle.roots().and_then(|roots| {
            let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), crypto_provider());
            // It fails only without roots, and a bundle that is loaded has some.
            builder.build().map_err(|error| Error::General(error.to_string()))
        });
        let unusable = |error: Error| FileError::InvalidCas {
            path: file.to_owned(),
            source: CertificatesError::NotCa(error.to_string()),
        };
        Ok(Self { verifier: verifier.map_err(unusable)?, bundle })
    }
}

impl ClientCertVerifier for ClientAuth {
    // The CAs may have changed by the next handshake, and a client that gets no hint sends the certificate that it has.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.trusted.borrow().verifier.verify_client_cert(end_entity, intermediates, now)?;
        if self.names.is_empty() || is_one_of(&self.names, end_entity) {
            return Ok(verified);
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trusted.borrow().verifier.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trusted.borrow().verifier.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.trusted.borrow().verifier.supported_verify_schemes()
    }
}

/// The longest time between two verifications of a client on a kept connection: the system's clock may jump.
const CLOCK_CHECK: Duration = Duration::from_secs(60);

/// The time until the first certificate of the chain that is still valid expires. A certificate is valid through the second that its
/// `notAfter` names.
fn until_expiry(chain: &[CertificateDer<'_>], now: UnixTime) -> Option<Duration> {
    let expiry = |cert: &CertificateDer<'_>| {
        let (_, cert) = X509Certificate::from_der(cert).ok()?;
        let end = u64::try_from(cert.validity().not_after.timestamp()).ok()?.saturating_add(1);
        end.checked_sub(now.as_secs()).filter(|left| *left > 0).map(Duration::from_secs)
    };
    chain.iter().filter_map(expiry).min()
}

/// Prefix of a DNS name in the list.
const DNS: &str = "dns:";

/// Whether the certificate has one of `names`: as its common name, which identifies clients of an API server in
/// Kubernetes, or where `dns:` says so, as one of its DNS names. An authority may sign a DNS name that the client chose for
/// itself, so DNS names count only when listed.
fn is_one_of(names: &[String], cert: &CertificateDer<'_>) -> bool {
    let Ok((_, cert)) = X509Certificate::from_der(cert) else { return false };
    // The last of several counts, as in Go.
    let common = cert.subject().iter_common_name().last().and_then(|name| name.as_str().ok());
    let alternative = cert.subject_alternative_name().ok().flatten();
    let has_dns = |wanted: &str| {
        let names = alternative.iter().flat_map(|names| &names.value.general_names);
        names.into_iter().any(|name| matches!(name, GeneralName::DNSName(dns) if *dns == wanted))
    };
    names.iter().any(|name| match name.strip_prefix(DNS) {
        Some(dns) => has_dns(dns),
        None => common == Some(name),
    })
}

#[cfg(test)]
mod tests;
