//! Certificates without anybody's help: an authority and a serving certificate in a Secret, which all replicas share.
//!
//! The Secret is the truth. Whichever replica comes first fills it; each follows it, publishes its authorities into the
//! webhook configurations, and renews what is due; of two writers the Secret's `resourceVersion` lets one through, and the
//! other looks again.
//!
//! What always holds: what is served goes on being served while the API server is away, or the Secret is; a certificate of
//! another authority than before is served only once that authority has stood in every configuration for a while, unless
//! there is nothing else to serve.

mod plan;
mod progress;
mod secret;
mod stored;

use std::{
    convert::Infallible,
    pin::pin,
    sync::Arc,
    time::{Duration, SystemTime},
};

use futures::StreamExt as _;
use rustls::pki_types::CertificateDer;
use thiserror::Error;
use tokio::time::{Instant, sleep, sleep_until};

use super::{Clock, Publication, Served, configurations::Configuration};
use crate::{
    apiserver::{ApiServer, backoff::jittered},
    telemetry,
};

pub use plan::{NotARenewalPoint, RenewalPoint, Step, StepError, Terms, View, next_step, take};
pub use progress::{Counts, Progress};
pub(super) use secret::get;
pub use secret::{NotASecretName, ROTATE_ANNOTATION, SecretError, SecretName};
pub use stored::{AUTHORITIES, CA_CERT, Content, Damage, Stored, TLS_CERT, TLS_KEY, Values, read};

/// How many rounds may follow each other without a pause, when each has something to do.
const ROUNDS: usize = 8;
/// The longest pause after another replica was first.
const CONFLICT_PAUSE: Duration = Duration::from_millis(200);

/// What is to be managed, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The Secret. It must be there; it may be empty.
    pub secret: SecretName,
    /// The webhook configurations that are to carry the authorities.
    pub configurations: Vec<Configuration>,
    /// How long certificates live, and when they are renewed.
    pub terms: Terms,
    /// How long authorities of others are kept in the configurations: until the pods that serve with them are gone.
    pub foreign_grace: Duration,
    /// How long at most until the Secret and the configurations are looked at again.
    pub check_interval: Duration,
}

/// The names by which the API server, and the cluster's pods, know a Service.
#[must_use]
pub fn service_names(service: &str, namespace: &str) -> Vec<String> {
    vec![format!("{service}.{namespace}.svc"), format!("{service}.{namespace}"), service.to_owned()]
}

/// One replica's part in it.
pub struct SelfManaged {
    api: Arc<ApiServer>,
    settings: Settings,
    publication: Publication,
    served: Served,
    /// Who signed what is served.
    signer: Option<CertificateDer<'static>>,
    clock: Clock,
    progress: Arc<Progress>,
    /// What last went wrong, so that it is said once.
    said: String,
}

/// Why a round came to no good end.
#[derive(Debug, Error)]
enum RoundError {
    #[error("the Secret {0} does not exist: install it again, empty; it is not created here")]
    NoSecret(SecretName),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Step(#[from] StepError),
}

/// Whether there is more to do at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Again,
    Rest,
}

impl SelfManaged {
    /// Nothing happens until it [runs](Self::run).
    #[must_use]
    pub fn new(api: Arc<ApiServer>, settings: Settings, served: Served, clock: Clock) -> Self {
        let publication = Publication::new(Arc::clone(&api), settings.configurations.clone(), settings.foreign_grace);
        Self { api, settings, publication, served, signer: None, clock, progress: Arc::default(), said: String::new() }
    }

    /// What has happened so far.
    #[must_use]
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// Manages the certificates for as long as the process lives.
    pub async fn run(mut self) -> Infallible {
        let mut changes = pin!(secret::changes(&self.api, &self.settings.secret));
        let mut watching = true;
        loop {
            self.rounds().await;
            let rest = Instant::now() + jittered(self.settings.check_interval);
            tokio::select! {
                () = sleep_until(rest) => {}
                change = changes.next() => match change {
                    Some(Ok(())) => watching = true,
                    Some(Err(error)) => {
                        if std::mem::take(&mut watching) {
                            let (secret, error) = (&self.settings.secret, telemetry::chain(&error));
                            tracing::warn!(%secret, error, "cannot watch the Secret: looking at it on a timer only");
                        }
                        sleep_until(rest).await;
                    }
                    // The watch begins anew on its own and has no end.
                    None => sleep_until(rest).await,
                },
            }
        }
    }

    async fn rounds(&mut self) {
        for _ in 0..ROUNDS {
            match self.round(self.clock.now()).await {
                Ok(Next::Again) => {}
                Ok(Next::Rest) => {
                    if !self.said.is_empty() {
                        tracing::info!("the certificates can be managed again");
                        self.said.clear();
                    }
                    return;
                }
                Err(RoundError::Secret(SecretError::Conflict(_))) => sleep(jittered(CONFLICT_PAUSE)).await,
                Err(error) => {
                    self.progress.failed();
                    let reason = telemetry::chain(&error);
                    if reason != self.said {
                        tracing::error!(reason, "cannot manage the certificates; what is served stays");
                        self.said = reason;
                    }
                    return;
                }
            }
        }
    }

    /// Looks at everything once, and takes at most one step.
    async fn round(&mut self, now: SystemTime) -> Result<Next, RoundError> {
        let name = &self.settings.secret;
        let found = secret::get(&self.api, name).await?.ok_or_else(|| RoundError::NoSecret(name.clone()))?;
        let content = read(&found.values);
        let mut carried = None;
        let mut next_standing = None;
        let mut reason = None;
        match &content {
            Content::Whole(stored) => {
                let pass = self.publication.pass(&stored.authorities.wishes(now), now).await;
                self.progress.passed(&pass);
                self.serve(stored, now);
                if pass.complete && self.serves(stored) {
                    self.progress.ready();
                }
                // A configuration that could not be looked at may carry anything.
                let next = stored.authorities.next.as_ref().filter(|_| pass.carried.is_some());
                next_standing = next.and_then(|next| self.publication.standing(next.ca.cert_der(), now));
                carried = pass.carried;
            }
            Content::Damaged { damage, .. } => reason = Some(telemetry::chain(damage)),
            Content::Empty => {}
        }
        let view = View { now, next_standing, carried: carried.as_ref(), rotation: &found.rotation };
        let Some(step) = next_step(&content, &view, &self.settings.terms) else { return Ok(Next::Rest) };
        let stored = take(step, content, &view, &self.settings.terms)?;
        let mut values = found.values.clone();
        stored.write(&mut values);
        secret::update(&self.api, &self.settings.secret, found, &values).await?;
        self.progress.count(step);
        let certificate = stored.leaf.pair.summary();
        if let Some(reason) = reason {
            tracing::warn!(secret = %self.settings.secret, reason, %certificate, "the Secret was damaged or edited; rebuilt it");
        } else {
            tracing::info!(secret = %self.settings.secret, ?step, %certificate, "wrote the Secret");
        }
        Ok(Next::Again)
    }

    fn serves(&self, stored: &Stored) -> bool {
        self.served.pair().is_some_and(|current| current.chain() == stored.leaf.pair.chain())
    }

    /// Serves what the Secret holds, as soon as that is safe.
    fn serve(&mut self, stored: &Stored, now: SystemTime) {
        let pair = &stored.leaf.pair;
        if self.serves(stored) {
            self.served.settle();
            return;
        }
        if let Err(error) = pair.check_time(now) {
            if self.served.refuse(&error.to_string()) {
                tracing::error!(reason = %error, "cannot serve the certificate in the Secret");
            }
            return;
        }
        let signer = stored.authorities.signing.ca.cert_der();
        let standing = self.publication.standing(signer, now);
        let trusted = standing.is_some_and(|standing| standing >= self.settings.terms.bundle_standing);
        let expired = self.served.current().is_none_or(|current| current.not_after <= now);
        if trusted || expired || self.signer.as_ref() == Some(signer) {
            self.served.publish(pair.clone());
            self.signer = Some(signer.clone());
            tracing::info!(certificate = %pair.summary(), "serving a new certificate");
        }
    }
}
