//! The certificate that handshakes get.
//!
//! What always holds: only a validated [`KeyPair`] is served; once there is one, there always is one, whatever happens to
//! its source; a pair that is refused is counted and logged once while it lasts.

use std::{
    error::Error,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use arc_swap::ArcSwapOption;
use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use super::{KeyPair, Summary};
use crate::{
    metrics::Metrics,
    telemetry::{LogOnce, chain},
};

/// The certificate that handshakes get. Clones are handles to the same certificate.
#[derive(Clone, Default, Debug)]
pub struct Served(Arc<Slot>);

#[derive(Default)]
struct Slot {
    pair: ArcSwapOption<KeyPair>,
    history: Mutex<History>,
}

#[derive(Default)]
struct History {
    published: u64,
    refused: u64,
    refusal: LogOnce,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Status {
    pub current: Option<Summary>,
    pub published: u64,
    pub refused: u64,
    /// Why the certificate that was offered last is refused; `None` where it is served.
    pub refusal: Option<String>,
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
        let mut history = self.history();
        history.published += 1;
        history.refusal.resolve();
    }

    /// Publishes a pair if it is new, or refuses it: then the current one stays.
    pub fn offer(&self, offered: Result<KeyPair, impl Error>) {
        match offered {
            Ok(pair) if self.serves(&pair) => _ = self.history().refusal.resolve(),
            Ok(pair) => {
                tracing::info!(certificate = %pair.summary(), "serving a new certificate");
                self.publish(pair);
            }
            Err(error) => {
                let reason = chain(&error);
                let mut history = self.history();
                if history.refusal.is_new(&reason) {
                    history.refused += 1;
                    let current = self.current().map_or_else(|| "none".to_owned(), |current| current.to_string());
                    tracing::error!(reason, current, "cannot serve the new certificate; the current one stays in use");
                }
            }
        }
    }

    #[must_use]
    pub fn current(&self) -> Option<Summary> {
        self.0.pair.load().as_ref().map(|pair| pair.summary().clone())
    }

    #[must_use]
    pub fn status(&self) -> Status {
        let history = self.history();
        Status {
            current: self.current(),
            published: history.published,
            refused: history.refused,
            refusal: history.refusal.reason().map(str::to_owned),
        }
    }

    /// Brings the metrics of the serving certificate up to date.
    pub fn record(&self, metrics: &Metrics) {
        let Status { current, published, refused, refusal } = self.status();
        metrics.certificate(current.map(|current| current.not_after), published, refused, refusal.is_some());
    }

    /// Whether this is the pair that is served.
    pub(super) fn serves(&self, pair: &KeyPair) -> bool {
        self.0.pair.load().as_ref().is_some_and(|current| current.chain() == pair.chain())
    }

    pub(super) fn resolver(&self) -> Arc<dyn ResolvesServerCert> {
        self.0.clone()
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.0.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("pair", &self.pair.load()).finish_non_exhaustive()
    }
}

impl ResolvesServerCert for Slot {
    // The name that the client asks for does not matter: there is one certificate.
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.pair.load().as_ref().map(|pair| pair.certified())
    }
}
