//! The certificate that handshakes get.
//!
//! Invariants: only a validated [`KeyPair`] is served; once there is one, there always is one, also when
//! its source fails; a pair that is not valid yet replaces none that is; a pair that is refused is counted and logged once while it lasts.

use std::{error::Error, sync::Arc, time::SystemTime};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use super::{KeyPair, KeyPairError, Summary, Timestamp};
use crate::{metrics::EdgeMetrics, telemetry::LogOnce};

/// The certificate that handshakes get. Clones are handles to the same certificate.
#[derive(Clone, Debug)]
pub struct Served(Arc<ServedState>);

#[derive(Debug)]
struct ServedState {
    pair: ArcSwapOption<KeyPair>,
    /// Why the certificate that was offered last is refused, where it is.
    refusal: Mutex<LogOnce>,
    metrics: EdgeMetrics,
}

impl Served {
    /// Handshakes fail until a certificate is published.
    pub fn new(metrics: EdgeMetrics) -> Self {
        Self(Arc::new(ServedState { pair: ArcSwapOption::default(), refusal: Mutex::default(), metrics }))
    }

    /// Every handshake from now on gets this certificate. Open connections stay as they are.
    pub fn publish(&self, pair: KeyPair) {
        let expires = pair.summary.not_after;
        if let Some(bits) = pair.rsa_bits.filter(|bits| *bits > 2048) {
            tracing::warn!(
                bits,
                "the serving certificate has a long RSA key, which makes each new connection cost milliseconds: use ECDSA P-256"
            );
        }
        self.0.metrics.certificate_served(expires, &pair.authorities);
        self.0.pair.store(Some(Arc::new(pair)));
        self.accept();
    }

    /// Publishes a pair if it is new, or refuses it: then the current one stays. Returns whether the pair is served.
    pub fn offer(&self, offered: Result<KeyPair, impl Error>, now: SystemTime) -> bool {
        match offered {
            Ok(pair) if self.serves(&pair) => self.accept(),
            Ok(pair) => {
                let not_before = pair.summary.not_before;
                if not_before > now && self.current().is_some_and(|current| current.is_valid_at(now)) {
                    self.refuse(&KeyPairError::NotYetValid(Timestamp(not_before)));
                    return false;
                }
                tracing::info!(certificate = %pair.summary, "serving a new certificate");
                self.publish(pair);
            }
            Err(error) => {
                self.refuse(&error);
                return false;
            }
        }
        true
    }

    fn refuse(&self, error: &impl Error) {
        let is_new = self.0.refusal.lock().fail(error, |reason| {
            let current = self.current().map_or_else(|| "none".to_owned(), |current| current.to_string());
            tracing::error!(reason, current, "cannot serve the new certificate; the current one stays in use");
        });
        if is_new {
            self.0.metrics.certificate_refused();
        }
    }

    /// Clears the last refusal.
    fn accept(&self) {
        self.0.refusal.lock().resolve();
        self.0.metrics.certificate_refused.set(0);
    }

    pub fn current(&self) -> Option<Summary> {
        self.0.pair.load().as_ref().map(|pair| pair.summary.clone())
    }

    /// Why the certificate that was offered last is refused, where it is.
    pub fn refusal(&self) -> Option<String> {
        self.0.refusal.lock().reason().map(str::to_owned)
    }

    /// Whether this is the pair that is served.
    pub(super) fn serves(&self, pair: &KeyPair) -> bool {
        self.0.pair.load().as_ref().is_some_and(|current| current.certified.cert == pair.certified.cert)
    }

    pub(super) fn resolver(&self) -> Arc<dyn ResolvesServerCert> {
        self.0.clone()
    }
}

impl ResolvesServerCert for ServedState {
    // The name that the client asks for does not matter: there is one certificate.
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.pair.load().as_ref().map(|pair| Arc::clone(&pair.certified))
    }
}
