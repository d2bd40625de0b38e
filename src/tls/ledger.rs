//! What has been seen in the `caBundle`s of webhook configurations, and since when.
//!
//! Pure: the time is a value. What always holds: a certificate that this process knows nothing about stays for the whole
//! grace; API servers learn of a change by watching, so only a certificate that has stood for a while counts as known to
//! them. All of it is this process's own observation: after a restart the times begin anew, which only makes them longer.

use std::{
    collections::HashMap,
    time::{Duration, SystemTime},
};

use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{CaBundle, key_pair::CLOCK_SKEW};

/// What this webhook wants of the bundles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// What must be in them.
    pub needed: CaBundle,
    /// What may stay in them, but need not.
    pub spare: CaBundle,
    /// What must go from them.
    pub gone: CaBundle,
}

/// What has been seen, and since when.
#[derive(Debug)]
pub struct Ledger {
    grace: Duration,
    /// Certificates of others, by when they were first seen.
    foreign: HashMap<CertificateDer<'static>, SystemTime>,
    /// Certificates that are in every bundle, by since when.
    standing: HashMap<CertificateDer<'static>, SystemTime>,
}

impl Ledger {
    /// Keeps certificates that are not this webhook's own for `grace`: until the pods that serve with them have been
    /// replaced.
    #[must_use]
    pub fn new(grace: Duration) -> Self {
        Self { grace, foreign: HashMap::new(), standing: HashMap::new() }
    }

    /// What a bundle should become, if it is to change.
    pub fn revise(&mut self, bundle: &CaBundle, wishes: &Wishes, now: SystemTime) -> Option<CaBundle> {
        bundle.revised(&wishes.needed, |cert| {
            if wishes.spare.contains(cert) {
                return false;
            }
            if wishes.gone.contains(cert) || has_expired(cert, now) {
                return true;
            }
            let seen = *self.foreign.entry(cert.clone()).or_insert(now);
            elapsed(seen, now) >= self.grace
        })
    }

    /// Takes down what stands in all bundles now.
    pub fn observe(&mut self, bundles: &[&CaBundle], wishes: &Wishes, now: SystemTime) {
        self.foreign.retain(|cert, _| bundles.iter().any(|bundle| bundle.contains(cert)));
        let stands = |cert: &CertificateDer<'static>| bundles.iter().all(|bundle| bundle.contains(cert));
        self.standing.retain(|cert, _| stands(cert));
        for cert in wishes.needed.iter().filter(|cert| stands(cert)) {
            self.standing.entry(cert.clone()).or_insert(now);
        }
    }

    /// For how long a certificate has stood in all bundles; `None` where it does not.
    #[must_use]
    pub fn standing(&self, cert: &CertificateDer<'static>, now: SystemTime) -> Option<Duration> {
        self.standing.get(cert).map(|since| elapsed(*since, now))
    }
}

/// A clock that was set back shortens nothing and lengthens what it must.
fn elapsed(since: SystemTime, now: SystemTime) -> Duration {
    now.duration_since(since).unwrap_or_default()
}

/// A certificate that is no longer valid convinces nobody; one that cannot be read is somebody else's affair.
fn has_expired(cert: &CertificateDer<'_>, now: SystemTime) -> bool {
    let Ok((_, cert)) = X509Certificate::from_der(cert) else { return false };
    super::unix_time(cert.validity().not_after.timestamp()) + CLOCK_SKEW <= now
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::issue::Ca;

    const HOUR: Duration = Duration::from_secs(3600);

    fn start() -> SystemTime {
        SystemTime::UNIX_EPOCH + 400_000 * HOUR
    }

    fn authority(lifetime: Duration) -> CaBundle {
        CaBundle::salvage(Ca::generate("test", start(), lifetime).unwrap().cert_pem().as_bytes())
    }

    fn join(bundles: &[&CaBundle]) -> CaBundle {
        bundles.iter().flat_map(|bundle| bundle.iter().cloned()).collect()
    }

    #[test]
    fn certificates_of_others_stay_for_the_grace_and_then_go() {
        let (ours, theirs) = (authority(1000 * HOUR), authority(1000 * HOUR));
        let wishes = Wishes { needed: ours.clone(), ..Wishes::default() };
        let mut ledger = Ledger::new(2 * HOUR);
        let both = join(&[&theirs, &ours]);
        assert_eq!(ledger.revise(&theirs, &wishes, start()), Some(both.clone()));
        assert_eq!(ledger.revise(&both, &wishes, start() + HOUR), None);
        assert_eq!(ledger.revise(&both, &wishes, start() + 2 * HOUR), Some(ours.clone()));
        // Once gone it is forgotten: should it come back, its time begins anew.
        ledger.observe(&[&ours], &wishes, start() + 2 * HOUR);
        assert_eq!(ledger.revise(&both, &wishes, start() + 3 * HOUR), None);
    }

    #[test]
    fn what_is_gone_or_has_expired_goes_at_once_and_what_is_spare_stays() {
        let [ours, gone, spare] = [authority(1000 * HOUR), authority(1000 * HOUR), authority(1000 * HOUR)];
        let expired = authority(HOUR);
        let wishes = Wishes { needed: ours.clone(), spare: spare.clone(), gone: gone.clone() };
        let mut ledger = Ledger::new(2 * HOUR);
        let all = join(&[&ours, &gone, &spare, &expired]);
        assert_eq!(ledger.revise(&all, &wishes, start() + HOUR), Some(join(&[&ours, &spare, &expired])));
        assert_eq!(ledger.revise(&all, &wishes, start() + 2 * HOUR), Some(join(&[&ours, &spare])));
    }

    #[test]
    fn a_certificate_stands_from_when_it_is_in_every_bundle() {
        let (ours, other) = (authority(1000 * HOUR), authority(1000 * HOUR));
        let cert = ours.iter().next().unwrap();
        let wishes = Wishes { needed: ours.clone(), ..Wishes::default() };
        let mut ledger = Ledger::new(HOUR);
        ledger.observe(&[&ours, &other], &wishes, start());
        assert_eq!(ledger.standing(cert, start()), None);
        ledger.observe(&[&ours, &ours], &wishes, start() + HOUR);
        ledger.observe(&[&ours, &ours], &wishes, start() + 3 * HOUR);
        assert_eq!(ledger.standing(cert, start() + 3 * HOUR), Some(2 * HOUR));
        assert_eq!(ledger.standing(cert, start()), Some(Duration::ZERO), "a clock that was set back");
        ledger.observe(&[&other], &wishes, start() + 4 * HOUR);
        assert_eq!(ledger.standing(cert, start() + 4 * HOUR), None);
    }

    #[test]
    fn with_no_bundles_at_all_nothing_is_waited_for() {
        let ours = authority(1000 * HOUR);
        let wishes = Wishes { needed: ours.clone(), ..Wishes::default() };
        let mut ledger = Ledger::new(HOUR);
        ledger.observe(&[], &wishes, start());
        assert_eq!(ledger.standing(ours.iter().next().unwrap(), start() + HOUR), Some(HOUR));
    }
}
