//! A program creates and renews its own CA and serving certificate, in a Secret that all replicas share.
//!
//! The Secret is the source of truth. The first replica fills it; each replica follows it, publishes its CAs into the webhook
//! configurations, and renews expiring certificates. Where two replicas write at the same time, the API
//! server refuses one because of its `resourceVersion`; that one reads the Secret again. The Secret is never created, because RBAC cannot
//! limit `create` to a name. Needs `get`, `update` and `watch` on it, by name.
//!
//! Replicas that disagree about what is right (their Service names, or their clocks by months) would replace each other's certificate without
//! end. So a replica that has just replaced what another one wrote waits for `REPLACE_PAUSE` before it does so again (`Dispute`).
//!
//! Invariants: while the API server does not answer or the Secret is missing, the current certificate stays in use; a certificate of
//! another CA is served only when that CA has been in every `caBundle` for `bundle_standing`, unless there is nothing else to serve. Without
//! configurations, the next CA signs only when it has been in the Secret for that time.

pub mod contents;
mod dispute;
mod plan;

use std::{convert::Infallible, sync::Arc, time::Duration};

use gmsa_cluster::apiserver::{ApiServer, CallError, jittered};
use gmsa_core::causes::chain;
use k8s_openapi::api::core::v1::Secret;
use rustls::pki_types::CertificateDer;
use serde_json::json;
use thiserror::Error;
use tokio::time::{sleep, timeout};

use super::{
    Publication, Served, Timestamp,
    issue::{BACKDATED, Ca, IssueError},
};
use crate::{
    Program,
    clock::{Clock, Moment},
    metrics::{CertificateStep, EdgeMetrics, mark},
    object::{KeptObject, ObjectError, ObjectName},
    telemetry::LogOnce,
};

pub use contents::{CA_CERT, TLS_CERT, TLS_KEY};
use contents::{Cas, Leaf, SecretContents, read, write};
use dispute::{Dispute, REPLACE_PAUSE};
use plan::{Change, Observed, apply, next_change};

/// The annotation of the Secret whose new value asks for a new CA.
pub fn rotate_annotation(program: &Program) -> String {
    format!("{}/rotate-ca", program.name)
}

/// How many rounds may follow each other without a pause.
const ROUNDS: usize = 8;
/// The longest pause after another replica was faster.
const CONFLICT_PAUSE: Duration = Duration::from_millis(200);

/// Where the certificates are kept, and how they are managed.
#[derive(Clone, Debug)]
pub struct SelfManagedSettings {
    /// The Secret. It must exist; it may be empty.
    pub secret: ObjectName,
    /// The webhook configurations whose `caBundle`s carry the CAs.
    pub configurations: Vec<ObjectName>,
    /// The program of the certificates: its name is in the authorities and in the serving certificates.
    pub program: Program,
    /// The names that the serving certificate is for: the names of the Service.
    pub names: Vec<String>,
    pub ca_lifetime: Duration,
    pub leaf_lifetime: Duration,
    /// A certificate is renewed when this percentage of its lifetime is over: 1 to 99.
    pub renewal_point: u8,
    /// How long the next CA must have been in every `caBundle`, or without configurations in the Secret, before it signs: clients learn of it
    /// meanwhile.
    pub bundle_standing: Duration,
    /// How long foreign CAs stay in the `caBundle`s: until the pods that serve with them are gone.
    pub foreign_grace: Duration,
    /// The longest time between two reads of the Secret and the configurations.
    pub check_interval: Duration,
}

/// The work of one replica.
pub struct SelfManaged {
    settings: SelfManagedSettings,
    publication: Publication,
    served: Served,
    /// The CA that signed the certificate that is served.
    issuer: Option<CertificateDer<'static>>,
    clock: Clock,
    metrics: EdgeMetrics,
    ready: Box<dyn Fn() + Send + Sync>,
    problem: LogOnce,
    secret: KeptObject,
    dispute: Dispute,
}

#[derive(Debug, Error)]
enum RoundError {
    #[error("the Secret {0} does not exist: install it again, empty; the {1} does not create it")]
    NoSecret(ObjectName, &'static str),
    #[error(transparent)]
    Secret(#[from] ObjectError),
    #[error("cannot create a certificate")]
    Issue(#[from] IssueError),
    #[error("cannot write the certificate authorities")]
    Write(#[from] serde_json::Error),
}

impl SelfManaged {
    /// `ready` is called when a certificate is served that every configuration trusts, and may be called again.
    pub fn new(
        api: Arc<ApiServer>,
        settings: SelfManagedSettings,
        served: Served,
        clock: Clock,
        metrics: EdgeMetrics,
        ready: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let program = settings.program;
        let publication = Publication::new(
            Arc::clone(&api),
            program,
            settings.configurations.clone(),
            settings.foreign_grace,
            metrics.clone(),
        );
        let (ready, problem, issuer) = (Box::new(ready), LogOnce::default(), None);
        let (secret, dispute) = (KeptObject::new(api, program, settings.secret.clone()), Dispute::default());
        Self { settings, publication, served, issuer, clock, metrics, ready, problem, secret, dispute }
    }

    /// Manages the certificates until the process ends.
    pub async fn run(mut self) -> Infallible {
        loop {
            self.reconcile().await;
            let changed = async {
                tokio::select! {
                    () = self.secret.changed() => {}
                    () = self.publication.changed() => {}
                }
            };
            // In time or not: the next look is due.
            let _ = timeout(jittered(self.settings.check_interval), changed).await;
        }
    }

    async fn reconcile(&mut self) {
        for _ in 0..ROUNDS {
            match self.round((self.clock)()).await {
                Ok(true) => {}
                Ok(false) => {
                    if self.problem.resolve() {
                        tracing::info!("the certificates can be managed again");
                    }
                    return;
                }
                Err(RoundError::Secret(error)) if error.is_conflict() => sleep(jittered(CONFLICT_PAUSE)).await,
                Err(error) => {
                    self.metrics.certificate_step(CertificateStep::Failed, 1);
                    self.problem.fail(&error, |reason| {
                        tracing::error!(reason, "cannot manage the certificates; the current one stays in use");
                    });
                    return;
                }
            }
        }
    }

    /// Reads the Secret and all configurations, publishes the CAs, serves the certificate, and makes at most one change.
    /// Returns whether it made one: another may follow.
    async fn round(&mut self, now: Moment) -> Result<bool, RoundError> {
        let (name, program) = (self.settings.secret.clone(), self.settings.program);
        let found: Option<Secret> = self.secret.get().await?;
        self.secret.seen = None;
        let mut secret = found.ok_or_else(|| RoundError::NoSecret(name.clone(), program.noun))?;
        let version = secret.metadata.resource_version.clone().unwrap_or_default();
        self.secret.seen = Some(version.clone());
        let contents = read(secret.data.get_or_insert_default(), &program);
        let annotations = secret.metadata.annotations.as_ref();
        let rotation = annotations.and_then(|all| all.get(&rotate_annotation(&program))).cloned().unwrap_or_default();
        let mut observed = Observed { now: now.wall, next_published_for: None, present: None, rotation: &rotation };
        let published;
        if let SecretContents { cas: Some(cas), leaf: Some(leaf), damage: None } = &contents {
            let mut policy = cas.policy(now.wall);
            // The served certificate stays trusted, also where a Secret that was lost and filled again does not know its CA.
            if let Some(issuer) = self.issuer.as_ref().filter(|issuer| !policy.revoked.contains(issuer)) {
                policy.desired.push(issuer.clone());
            }
            published = self.publication.publish(&policy, &self.clock).await;
            self.serve(cas, leaf, now);
            mark(&self.metrics.certificate_next_authority, cas.next.as_ref().and_then(Ca::key_id));
            if published.complete && self.served.serves(&leaf.pair) {
                (self.ready)();
            }
            observed.present = published.present.as_ref();
            // A configuration that cannot be read may have any caBundle.
            let next = cas.next.as_ref().filter(|_| published.present.is_some());
            observed.next_published_for = next.and_then(|next| self.known_for(next, now));
        }
        let change = next_change(&contents, &observed, &self.settings);
        let is_held_back = self.dispute.holds_back(&version, change, now);
        let Some(change) = change.filter(|_| !is_held_back) else {
            if is_held_back && self.dispute.is_new() {
                self.report_dispute(&contents, now);
            }
            return Ok(false);
        };
        let damage = contents.damage.as_ref().map(|damage| chain(damage));
        let (cas, leaf) = apply(change, contents, &observed, &self.settings)?;
        write(&cas, &leaf, secret.data.get_or_insert_default())?;
        // Without a version, the update would overwrite what another writer has written.
        if secret.metadata.resource_version.as_ref().is_none_or(String::is_empty) {
            return Err(ObjectError::new("update", &name, CallError::Unreadable("an object with a version")).into());
        }
        let updated: Secret = self.secret.update(&json!(secret)).await?;
        self.dispute.wrote(&version, updated.metadata.resource_version.unwrap_or_default(), now);
        if let Some(counter) = counter(change) {
            self.metrics.certificate_step(counter, 1);
        }
        let certificate = leaf.pair.summary;
        if let Some(reason) = damage {
            tracing::warn!(secret = %name, reason, %certificate, "rebuilt the Secret: it was damaged or edited");
        } else {
            tracing::info!(secret = %name, step = ?change, %certificate, "wrote the Secret");
        }
        Ok(true)
    }

    /// How long clients could have trusted this CA. Without configurations they take it from the Secret, where it is since it was made.
    fn known_for(&self, ca: &Ca, now: Moment) -> Option<Duration> {
        if self.settings.configurations.is_empty() {
            return now.wall.duration_since(ca.summary.not_before + BACKDATED).ok();
        }
        self.publication.history.published_for(&ca.der, now)
    }

    /// Serves the certificate in the Secret, as soon as that is safe.
    fn serve(&mut self, cas: &Cas, Leaf { pair, .. }: &Leaf, now: Moment) {
        let is_served = self.served.serves(pair);
        let issuer = &cas.signing.der;
        let published_for = self.publication.history.published_for(issuer, now);
        // Without configurations nothing here says who trusts it: the plan alone waits.
        let is_trusted = self.settings.configurations.is_empty()
            || published_for.is_some_and(|time| time >= self.settings.bundle_standing);
        let is_as_trusted_as_before = self.issuer.as_ref() == Some(issuer);
        let is_better_than_none = self.served.current().is_none_or(|current| !current.is_valid_at(now.wall));
        let may_be_served = is_served || is_trusted || is_as_trusted_as_before || is_better_than_none;
        // An expired certificate is served on: there is nothing better.
        let checked = if is_served { Ok(()) } else { pair.check_time(now.wall) };
        if (may_be_served || checked.is_err()) && self.served.offer(checked.map(|()| pair.clone()), now.wall) {
            self.issuer = Some(issuer.clone());
        }
    }

    /// Logs and counts that another replica has what this one would replace.
    fn report_dispute(&self, contents: &SecretContents, now: Moment) {
        let leaf = || contents.leaf.as_ref().map(|leaf| leaf.pair.summary.to_string());
        let Some(other) = contents.damage.as_ref().map(|damage| chain(damage)).or_else(leaf) else { return };
        let (secret, names, time) = (&self.settings.secret, self.settings.names.join(", "), Timestamp(now.wall));
        tracing::warn!(
            %secret, other, names, %time, pause = ?REPLACE_PAUSE,
            "another replica replaces what this one writes into the Secret, and this one waits before it does so again: give all replicas the same version, Service and time"
        );
        self.metrics.certificate_step(CertificateStep::HeldBack, 1);
    }
}

fn counter(change: Change) -> Option<CertificateStep> {
    match change {
        Change::Fill => Some(CertificateStep::Filled),
        Change::Rebuild => Some(CertificateStep::Rebuilt),
        Change::Reissue => Some(CertificateStep::Renewed),
        Change::Promote => Some(CertificateStep::Rotated),
        Change::Announce | Change::Forget => None,
    }
}
