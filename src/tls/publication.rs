//! Writes certificates of authorities into the `caBundle` of webhook configurations, and keeps them there.
//!
//! What always holds: what others have put into a bundle is appended to, and let go of only as the [`Ledger`] says; one
//! configuration that cannot be written keeps no other from being written.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use rustls::pki_types::CertificateDer;

use super::{
    CaBundle, Wishes,
    configurations::{Configuration, ConfigurationError, Found, read, write},
    ledger::Ledger,
};
use crate::{apiserver::ApiServer, telemetry};

/// How many times to begin anew in one pass where somebody else writes the same configuration.
const ATTEMPTS: usize = 5;

/// The configurations that are to carry the certificates.
pub struct Publication {
    api: Arc<ApiServer>,
    configurations: Vec<Configuration>,
    ledger: Ledger,
    /// What was last said of a configuration, so that it is said once.
    said: BTreeMap<Configuration, String>,
}

/// What a pass has come to.
#[derive(Debug, Default)]
pub struct Pass {
    /// Every configuration exists and carries everything that is needed.
    pub complete: bool,
    /// How many configurations were written.
    pub written: u64,
    /// How many configurations could not be read or written.
    pub failed: u64,
    /// Everything that is in any bundle; `None` where not all of them could be read.
    pub carried: Option<CaBundle>,
}

impl Publication {
    /// `grace` is how long certificates of others are kept.
    #[must_use]
    pub fn new(api: Arc<ApiServer>, configurations: Vec<Configuration>, grace: Duration) -> Self {
        Self { api, configurations, ledger: Ledger::new(grace), said: BTreeMap::new() }
    }

    /// Looks at every configuration, and writes those that do not carry what is needed.
    pub async fn pass(&mut self, wishes: &Wishes, now: SystemTime) -> Pass {
        let mut pass = Pass { complete: true, ..Pass::default() };
        let mut founds = Vec::new();
        for configuration in self.configurations.clone() {
            match self.bring(&configuration, wishes, now, &mut pass.written).await {
                Ok(Some(found)) => {
                    self.said.remove(&configuration);
                    founds.push(found);
                }
                Ok(None) => {
                    pass.complete = false;
                    self.say(&configuration, "the webhook configuration does not exist".to_owned());
                }
                Err(error) => {
                    pass.failed += 1;
                    self.say(&configuration, telemetry::chain(&error));
                }
            }
        }
        if pass.failed > 0 {
            pass.complete = false;
            return pass;
        }
        let bundles: Vec<_> = founds.iter().flat_map(Found::bundles).collect();
        self.ledger.observe(&bundles, wishes, now);
        pass.carried = Some(bundles.into_iter().flat_map(CaBundle::iter).cloned().collect());
        pass
    }

    /// For how long a certificate has stood in every configuration; `None` where it does not.
    #[must_use]
    pub fn standing(&self, cert: &CertificateDer<'static>, now: SystemTime) -> Option<Duration> {
        self.ledger.standing(cert, now)
    }

    /// Brings one configuration to what it should be, and gives back what it then is.
    async fn bring(
        &mut self,
        configuration: &Configuration,
        wishes: &Wishes,
        now: SystemTime,
        written: &mut u64,
    ) -> Result<Option<Found>, ConfigurationError> {
        let mut attempt = 1;
        loop {
            let Some(found) = read(&self.api, configuration).await? else { return Ok(None) };
            let revised: Vec<_> = found.bundles().map(|bundle| self.ledger.revise(bundle, wishes, now)).collect();
            if revised.iter().all(Option::is_none) {
                return Ok(Some(found));
            }
            match write(&self.api, configuration, &found, &revised).await {
                Ok(found) => {
                    *written += 1;
                    tracing::info!(%configuration, "wrote the certificate authorities into the webhook configuration");
                    return Ok(Some(found));
                }
                Err(ConfigurationError::Conflict(_)) if attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn say(&mut self, configuration: &Configuration, what: String) {
        if self.said.get(configuration) != Some(&what) {
            tracing::warn!(%configuration, reason = what, "the webhook configuration does not carry this webhook's certificate authority yet");
            self.said.insert(configuration.clone(), what);
        }
    }
}
