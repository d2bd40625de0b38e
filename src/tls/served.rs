//! The certificate that handshakes get, and what became of the ones that were to follow it.
//!
//! What always holds: only a checked [`KeyPair`] is served; once there is one, there always is one, whatever happens to
//! its source.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwapOption;
use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::sync::watch;

use super::{KeyPair, Summary};

/// The certificate that handshakes get, shared between the one that publishes and the listener. Clones are handles to
/// the same certificate.
#[derive(Clone, Default, Debug)]
pub struct Served(Arc<Slot>);

#[derive(Default)]
struct Slot {
    pair: ArcSwapOption<KeyPair>,
    serving: watch::Sender<bool>,
    published: AtomicU64,
    refused: AtomicU64,
    refusal: ArcSwapOption<String>,
}

/// What is served, and how it came to be.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Status {
    /// What is served, if anything is.
    pub current: Option<Summary>,
    /// How many certificates were published so far.
    pub published: u64,
    /// How many times a certificate was to be served and could not be.
    pub refused: u64,
    /// Why the last one could not; `None` once one was published since.
    pub refusal: Option<String>,
}

impl Served {
    /// Nothing served yet: handshakes fail until something is published.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on every new handshake gets this certificate. Connections that stand are not touched.
    pub fn publish(&self, pair: KeyPair) {
        self.0.pair.store(Some(Arc::new(pair)));
        self.0.refusal.store(None);
        self.0.published.fetch_add(1, Ordering::Relaxed);
        self.0.serving.send_replace(true);
    }

    /// Counts a certificate that cannot be served; what is served stays. Gives back whether that is news: the same reason
    /// again, with nothing published in between, is counted once.
    #[must_use]
    pub fn refuse(&self, reason: &str) -> bool {
        if self.0.refusal.load().as_deref().is_some_and(|known| known == reason) {
            return false;
        }
        self.0.refusal.store(Some(Arc::new(reason.to_owned())));
        self.0.refused.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// What was refused has gone: the source holds again what is served.
    pub fn settle(&self) {
        self.0.refusal.store(None);
    }

    /// What is served, if anything is.
    #[must_use]
    pub fn current(&self) -> Option<Summary> {
        self.0.pair.load().as_ref().map(|pair| pair.summary().clone())
    }

    /// Everything about it at once, for metrics.
    #[must_use]
    pub fn status(&self) -> Status {
        Status {
            current: self.current(),
            published: self.0.published.load(Ordering::Relaxed),
            refused: self.0.refused.load(Ordering::Relaxed),
            refusal: self.0.refusal.load().as_deref().cloned(),
        }
    }

    /// Whether a certificate is being served. Once true it stays true.
    #[must_use]
    pub fn is_serving(&self) -> bool {
        *self.0.serving.borrow()
    }

    /// Waits until a certificate is being served.
    pub async fn until_serving(&self) {
        // The sender lives in here: waiting cannot fail.
        let _ = self.0.serving.subscribe().wait_for(|serving| *serving).await;
    }

    /// The pair that is served, if any is.
    pub(super) fn pair(&self) -> Option<Arc<KeyPair>> {
        self.0.pair.load_full()
    }

    pub(super) fn resolver(&self) -> Arc<dyn ResolvesServerCert> {
        self.0.clone()
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot")
            .field("pair", &self.pair.load())
            .field("refusal", &self.refusal.load())
            .finish_non_exhaustive()
    }
}

impl ResolvesServerCert for Slot {
    // The name that the client asks for does not matter: there is one certificate.
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.pair.load().as_ref().map(|pair| pair.certified())
    }
}
