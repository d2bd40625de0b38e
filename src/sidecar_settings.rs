//! Tickets for Linux pods: what the sidecar needs that can change while the webhook runs.
//!
//! Invariants: a pod gets the sidecar only once the CAs of the broker are read and, where there is a cluster, it is known to have native
//! sidecars; a file that cannot be used changes nothing once another one was.

use std::{convert::Infallible, path::PathBuf, sync::Arc, time::Duration};

use gmsa_cluster::{
    apiserver::ApiServer,
    kubernetes_version::{NATIVE_SIDECARS, is_at_least, read},
};
use gmsa_core::{
    admission::{Failure, Sidecar, TicketSettings},
    causes::chain,
};
use gmsa_edge::{
    telemetry::LogOnce,
    tls::{
        Reload,
        files::{FileError, load_cas, log_invalid_cas},
    },
};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

/// How long a read of the cluster's version may take, and how long until the next one where it has no native sidecars or is not known.
pub const READ_INTERVAL: Duration = Duration::from_secs(10);

/// The operator's settings of the sidecar.
#[derive(Clone, Debug)]
pub struct TicketsConfig {
    /// The file with the CAs of the broker. They are injected as the file has them: the next CA belongs into it long before it signs.
    pub broker_ca: PathBuf,
    /// The sidecar, without these CAs.
    pub sidecar: Sidecar,
}

impl TicketsConfig {
    /// How pods get tickets in a cluster with native sidecars.
    ///
    /// # Errors
    /// Where the CAs cannot be read.
    pub fn read(&self) -> Result<TicketSettings, FileError> {
        let broker_ca = load_cas(&self.broker_ca)?.to_pem();
        Ok(TicketSettings::On(Arc::new(Sidecar { broker_ca, ..self.sidecar.clone() })))
    }

    /// Says how pods get tickets, now and after each change of the file, and logs why they get none. `api` names the version of the cluster,
    /// if there is one.
    pub async fn keep(
        self,
        api: Option<Arc<ApiServer>>,
        interval: Duration,
        settings: watch::Sender<TicketSettings>,
    ) -> Infallible {
        let (file, mut problem) = (self.broker_ca.clone(), LogOnce::default());
        while let Some(unusable) = unusable(api.as_deref()).await {
            refuse(&settings, unusable);
            sleep(READ_INTERVAL).await;
        }
        let mut source = Reload::new(&[&file], interval, move || self.read());
        loop {
            let (read, is_on) = (source.next().await, matches!(*settings.borrow(), TicketSettings::On(_)));
            match read {
                Err(error) if !is_on => refuse(&settings, TicketSettings::Unknown(Failure::new(chain(&error)))),
                read => drop(problem.check(read, log_invalid_cas).map(|on| settings.send_replace(on))),
            }
        }
    }
}

/// Why the cluster cannot run the sidecar, as far as is known.
async fn unusable(api: Option<&ApiServer>) -> Option<TicketSettings> {
    match read(api?, Instant::now() + READ_INTERVAL).await {
        Ok(version) => (!is_at_least(&version, NATIVE_SIDECARS)).then_some(TicketSettings::TooOld(version)),
        Err(failure) => Some(TicketSettings::Unknown(failure)),
    }
}

/// Says that no pod gets tickets, and logs each new cause.
fn refuse(settings: &watch::Sender<TicketSettings>, unusable: TicketSettings) {
    settings.send_if_modified(|known| {
        if *known == unusable {
            return false;
        }
        let reason = match &unusable {
            TicketSettings::TooOld(version) => &format!("{version} has no native sidecars"),
            TicketSettings::Unknown(failure) => &failure.cause,
            TicketSettings::Off | TicketSettings::On(_) => "",
        };
        tracing::error!(reason, "pods that ask for tickets are refused");
        *known = unusable;
        true
    });
}
