//! The certificate that handshakes get.
//!
//! Invariants: only a validated [`KeyPair`] is served; once there is one, there always is one, also when
//! its source fails; a pair that is refused is counted and logged once while it lasts.

use std::{error::Error, sync::Arc};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use super::{KeyPair, Summary};
use crate::{metrics::Metrics, telemetry::LogOnce};

/// The certificate that handshakes get. Clones are handles to the same certificate.
#[derive(Clone, Default, Debug)]
pub struct Served(Arc<ServedState>);

#[derive(Debug, Default)]
struct ServedState {
    pair: ArcSwapOption<KeyPair>,
    status: Mutex<ServingStatus>,
}

/// What has been offered so far.
#[derive(Clone, Debug, Default)]
pub struct ServingStatus {
    pub published: u64,
    pub refused: u64,
    /// Why the certificate that was offered last is refused, where it is.
    pub refusal: LogOnce,
}

impl Served {
    /// Handshakes fail until a certificate is published.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Every handshake from now on gets this certificate. Open connections stay as they are.
    pub fn publish(&self, pair: KeyPair) {
        self.0.pair.store(Some(Arc::new(pair)));
        let mut status = self.0.status.lock();
        status.published += 1;
        status.refusal.resolve();
    }

    /// Publishes a pair if it is new, or refuses it: then the current one stays.
    pub fn offer(&self, offered: Result<KeyPair, impl Error>) {
        match offered {
            Ok(pair) if self.serves(&pair) => _ = self.0.status.lock().refusal.resolve(),
            Ok(pair) => {
                tracing::info!(certificate = %pair.summary(), "serving a new certificate");
                self.publish(pair);
            }
            Err(error) => {
                let mut status = self.0.status.lock();
                let is_new = status.refusal.fail(&error, |reason| {
                    let current = self.current().map_or_else(|| "none".to_owned(), |current| current.to_string());
                    tracing::error!(reason, current, "cannot serve the new certificate; the current one stays in use");
                });
                status.refused += u64::from(is_new);
            }
        }
    }

    #[must_use]
    pub fn current(&self) -> Option<Summary> {
        self.0.pair.load().as_ref().map(|pair| pair.summary().clone())
    }

    #[must_use]
    pub fn status(&self) -> ServingStatus {
        self.0.status.lock().clone()
    }

    /// Brings the metrics of the serving certificate up to date.
    pub fn record(&self, metrics: &Metrics) {
        let ServingStatus { published, refused, refusal } = self.status();
        let not_after = self.current().map(|current| current.not_after);
        metrics.certificate(not_after, published, refused, refusal.reason().is_some());
    }

    /// Whether this is the pair that is served.
    pub(super) fn serves(&self, pair: &KeyPair) -> bool {
        self.0.pair.load().as_ref().is_some_and(|current| current.chain() == pair.chain())
    }

    pub(super) fn resolver(&self) -> Arc<dyn ResolvesServerCert> {
        self.0.clone()
    }
}

impl ResolvesServerCert for ServedState {
    // The name that the client asks for does not matter: there is one certificate.
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.pair.load().as_ref().map(|pair| pair.certified())
    }
}
