//! Who may connect: clients with a certificate of a given authority, and with one of given names if there are any.
//!
//! The API server presents a client certificate to a webhook where its `AdmissionConfiguration` names a kubeconfig with one.
//!
//! What always holds: without a valid certificate no handshake comes to its end; a file that cannot be used changes nothing.

use std::{
    convert::Infallible,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, UnixTime},
    server::{
        VerifierBuilderError, WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};
use thiserror::Error as ThisError;
use x509_parser::{
    extensions::GeneralName,
    prelude::{FromDer, X509Certificate},
};

use super::{
    CaBundle, CaBundleError, crypto_provider,
    files::{Folders, LoadError, read},
};
use crate::telemetry;

/// Verifies the certificates of clients.
#[derive(Debug)]
pub struct ClientAuth {
    file: PathBuf,
    names: Vec<String>,
    algorithms: WebPkiSupportedAlgorithms,
    trusted: ArcSwap<Trusted>,
}

#[derive(Debug)]
struct Trusted {
    bundle: CaBundle,
    verifier: Arc<dyn ClientCertVerifier>,
}

/// Why clients could not be verified.
#[derive(Debug, ThisError)]
pub enum ClientAuthError {
    /// The file cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The file is not a list of certificates.
    #[error("{} does not hold authorities", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Why.
        source: CaBundleError,
    },
    /// A certificate in it cannot be an authority.
    #[error("{} has a certificate that cannot be an authority", .path.display())]
    Authority {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Error,
    },
    /// The authorities cannot be verified with.
    #[error("the authorities in {} cannot be used", .path.display())]
    Verifier {
        /// The file.
        path: PathBuf,
        /// Why.
        source: VerifierBuilderError,
    },
}

impl ClientAuth {
    /// Trusts clients with a certificate from an authority in `file`; where `names` has any, only those whose common name is
    /// one of them, or one of whose DNS names is one that stands there with `dns:` in front.
    ///
    /// # Errors
    /// Where the file cannot be read or holds no authority.
    pub fn load(file: PathBuf, names: Vec<String>) -> Result<Arc<Self>, ClientAuthError> {
        let algorithms = crypto_provider().signature_verification_algorithms;
        let trusted = ArcSwap::from_pointee(Trusted::load(&file)?);
        Ok(Arc::new(Self { file, names, algorithms, trusted }))
    }

    /// Reads the file again whenever it changes, as serving certificates are. What cannot be used is logged, and the
    /// authorities stay as they are.
    pub async fn keep_fresh(self: Arc<Self>, interval: Duration) -> Infallible {
        let mut folders = Folders::of(&[&self.file], interval);
        let mut complaint = String::new();
        loop {
            let file = self.file.clone();
            match tokio::task::spawn_blocking(move || Trusted::load(&file)).await {
                Ok(Ok(trusted)) => {
                    complaint.clear();
                    if trusted.bundle != self.trusted.load().bundle {
                        self.trusted.store(Arc::new(trusted));
                        tracing::info!(file = %self.file.display(), "trusting new authorities of clients");
                    }
                }
                Ok(Err(error)) => {
                    let reason = telemetry::chain(&error);
                    if reason != complaint {
                        tracing::error!(reason, "cannot use the new authorities of clients; the current ones stay");
                        complaint = reason;
                    }
                }
                Err(error) => tracing::error!(%error, "reading the authorities of clients failed"),
            }
            folders.changed().await;
        }
    }
}

impl Trusted {
    fn load(file: &Path) -> Result<Self, ClientAuthError> {
        let invalid = |source| ClientAuthError::Invalid { path: file.to_owned(), source };
        let bundle = CaBundle::from_pem(&read(file)?).map_err(invalid)?;
        let mut roots = RootCertStore::empty();
        for authority in bundle.iter() {
            let added = roots.add(authority.clone());
            added.map_err(|source| ClientAuthError::Authority { path: file.to_owned(), source })?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), crypto_provider())
            .build()
            .map_err(|source| ClientAuthError::Verifier { path: file.to_owned(), source })?;
        Ok(Self { bundle, verifier })
    }
}

impl ClientCertVerifier for ClientAuth {
    // The authorities may be others by the next handshake, and a client that gets no hint shows what it has.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.trusted.load().verifier.verify_client_cert(end_entity, intermediates, now)?;
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
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// What a name begins with that means a DNS name.
const DNS: &str = "dns:";

/// Whether the certificate has one of `names`: as its common name, by which Kubernetes identifies the clients of an API
/// server, or where `dns:` says so, as one of its DNS names. An authority may sign a DNS name that the client chose for
/// itself, so none counts unasked.
fn is_one_of(names: &[String], cert: &CertificateDer<'_>) -> bool {
    let Ok((_, cert)) = X509Certificate::from_der(cert) else { return false };
    // Of several the last counts, as in Go.
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
