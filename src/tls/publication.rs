//! Keeps the CAs of this webhook in the `caBundle`s of its webhook configurations.
//!
//! Invariants: a CA that this process does not know stays for the whole grace period, so that pods that still serve
//! with it stay trusted; only a CA that has been in every `caBundle` for some time counts as known to the API servers,
//! because they learn of a change by watching; one configuration that cannot be written does not keep the others from
//! being written. All times are observed by this process: after a restart they start again, which only makes them longer.

use std::{
    collections::HashMap,
    convert::Infallible,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use gmsa_cluster::apiserver::ApiServer;
use rustls::pki_types::CertificateDer;
use thiserror::Error;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{
    CaBundle, Clock,
    configurations::{Configuration, write},
    files::{load_cas, log_invalid_cas},
    key_pair::CLOCK_SKEW,
    object::{ObjectError, ObjectName, get},
    reload::Reload,
};
use crate::telemetry::LogOnce;

/// How often to try again in one run when others write the same configuration.
const ATTEMPTS: usize = 5;

/// Which CAs belong into every `caBundle`. All others are foreign: they stay for the grace period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaPolicy {
    /// Added where they are missing.
    pub desired: CaBundle,
    /// Neither added nor removed.
    pub tolerated: CaBundle,
    /// Removed at once.
    pub revoked: CaBundle,
}

pub struct Publication {
    api: Arc<ApiServer>,
    targets: Vec<(ObjectName, LogOnce)>,
    pub(super) history: BundleHistory,
}

/// The result of one run over all configurations.
#[derive(Debug, Default)]
pub struct Published {
    /// Every configuration exists and has all desired CAs.
    pub complete: bool,
    /// How many configurations were written.
    pub written: u64,
    /// How many configurations could not be read or written.
    pub failed: u64,
    /// Every CA that is in any `caBundle`; `None` where a configuration could not be read.
    pub present: Option<CaBundle>,
}

impl Publication {
    #[must_use]
    pub fn new(api: Arc<ApiServer>, configurations: Vec<ObjectName>, foreign_grace: Duration) -> Self {
        let targets = configurations.into_iter().map(|configuration| (configuration, LogOnce::default())).collect();
        Self { api, targets, history: BundleHistory::new(foreign_grace) }
    }

    /// Publishes the CAs in a file, for a serving certificate from a Secret that another tool fills: after each change of
    /// the file, and every `interval` in any case, because others may write the configurations too. While the file is
    /// invalid, the CAs that it held before are published.
    ///
    /// A tool that replaces a CA must add the new one beside the old one first: `caBundle` and serving certificate do not
    /// change at the same time.
    pub async fn follow(mut self, file: PathBuf, interval: Duration, clock: Clock) -> Infallible {
        let path = file.clone();
        let mut bundles = Reload::new(&[&file], interval, move || load_cas(&path));
        let (mut policy, mut problem) = (None, LogOnce::default());
        loop {
            if let Some(desired) = problem.check(bundles.next().await, log_invalid_cas) {
                policy = Some(CaPolicy { desired, ..CaPolicy::default() });
            }
            if let Some(policy) = &policy {
                self.publish(policy, clock()).await;
            }
        }
    }

    /// Reads every configuration, and writes those that differ from the policy.
    pub async fn publish(&mut self, policy: &CaPolicy, now: SystemTime) -> Published {
        let mut published = Published::default();
        let mut all_found = Vec::new();
        for (configuration, problem) in &mut self.targets {
            match reconcile(&self.api, configuration, &mut self.history, policy, now).await {
                Ok((found, written)) => {
                    problem.resolve();
                    published.written += u64::from(written);
                    all_found.push(found);
                }
                Err(error) => {
                    published.failed += u64::from(!matches!(error, ReconcileError::Missing));
                    problem.fail(&error, |reason| {
                        tracing::warn!(%configuration, reason, "the webhook configuration does not have this webhook's certificate authority yet");
                    });
                }
            }
        }
        if published.failed == 0 {
            published.complete = all_found.len() == self.targets.len();
            let bundles: Vec<_> = all_found.iter().flat_map(Configuration::bundles).collect();
            self.history.observe(&bundles, policy, now);
            published.present = Some(bundles.iter().flat_map(CaBundle::iter).cloned().collect());
        }
        published
    }
}

#[derive(Debug, Error)]
enum ReconcileError {
    #[error("the webhook configuration does not exist")]
    Missing,
    #[error(transparent)]
    Object(#[from] ObjectError),
}

/// Reads one configuration and writes it where it differs. Returns it, and whether it was written.
async fn reconcile(
    api: &ApiServer,
    configuration: &ObjectName,
    history: &mut BundleHistory,
    policy: &CaPolicy,
    now: SystemTime,
) -> Result<(Configuration, bool), ReconcileError> {
    let mut attempt = 1;
    loop {
        let found: Configuration = get(api, configuration).await?.ok_or(ReconcileError::Missing)?;
        let revised: Vec<_> = found.bundles().map(|bundle| history.revise(&bundle, policy, now)).collect();
        if revised.iter().all(Option::is_none) {
            return Ok((found, false));
        }
        match write(api, configuration, &found, &revised).await {
            Ok(found) => {
                tracing::info!(%configuration, "wrote the certificate authorities into the webhook configuration");
                return Ok((found, true));
            }
            Err(error) if error.is_conflict() && attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Since when CAs have been in the `caBundle`s.
#[derive(Debug)]
pub(super) struct BundleHistory {
    foreign_grace: Duration,
    /// When each foreign CA was seen first.
    foreign: HashMap<CertificateDer<'static>, SystemTime>,
    /// Since when each desired CA has been in every bundle.
    published: HashMap<CertificateDer<'static>, SystemTime>,
}

impl BundleHistory {
    fn new(foreign_grace: Duration) -> Self {
        Self { foreign_grace, foreign: HashMap::new(), published: HashMap::new() }
    }

    /// The bundle that follows the policy; `None` where it already does.
    fn revise(&mut self, bundle: &CaBundle, policy: &CaPolicy, now: SystemTime) -> Option<CaBundle> {
        bundle.revised(&policy.desired, |ca| {
            if policy.tolerated.contains(ca) {
                return false;
            }
            if policy.revoked.contains(ca) || has_expired(ca, now) {
                return true;
            }
            let seen = *self.foreign.entry(ca.clone()).or_insert(now);
            elapsed(seen, now) >= self.foreign_grace
        })
    }

    /// Records what is in all bundles now.
    fn observe(&mut self, bundles: &[CaBundle], policy: &CaPolicy, now: SystemTime) {
        self.foreign.retain(|ca, _| bundles.iter().any(|bundle| bundle.contains(ca)));
        let in_all = |ca: &CertificateDer<'static>| bundles.iter().all(|bundle| bundle.contains(ca));
        self.published.retain(|ca, _| in_all(ca));
        for ca in policy.desired.iter().filter(|ca| in_all(ca)) {
            self.published.entry(ca.clone()).or_insert(now);
        }
    }

    /// For how long a CA has been in every `caBundle`; `None` where it is not.
    pub(super) fn published_for(&self, ca: &CertificateDer<'static>, now: SystemTime) -> Option<Duration> {
        self.published.get(ca).map(|since| elapsed(*since, now))
    }
}

/// Zero where the clock was set back: then a CA stays longer, and a new one waits longer.
fn elapsed(since: SystemTime, now: SystemTime) -> Duration {
    now.duration_since(since).unwrap_or_default()
}

/// A certificate that cannot be read has not expired: it is foreign.
fn has_expired(cert: &CertificateDer<'_>, now: SystemTime) -> bool {
    let Ok((_, cert)) = X509Certificate::from_der(cert) else { return false };
    SystemTime::from(cert.validity().not_after.to_datetime()) + CLOCK_SKEW <= now
}

#[cfg(test)]
mod tests;
