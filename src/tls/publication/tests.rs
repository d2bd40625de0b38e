//! How long CAs stay in a `caBundle`, and when they count as trusted.

use std::slice;

use super::*;
use crate::tls::issue::Ca;

const HOUR: Duration = Duration::from_secs(3600);

fn start() -> SystemTime {
    SystemTime::UNIX_EPOCH + 400_000 * HOUR
}

fn ca(lifetime: Duration) -> CaBundle {
    CaBundle::salvage(Ca::generate("test", start(), lifetime).unwrap().cert_pem().as_bytes())
}

fn join(bundles: &[&CaBundle]) -> CaBundle {
    bundles.iter().flat_map(|bundle| bundle.iter().cloned()).collect()
}

#[test]
fn foreign_cas_stay_for_the_grace_period_and_are_then_removed() {
    let (ours, theirs) = (ca(1000 * HOUR), ca(1000 * HOUR));
    let policy = CaPolicy { desired: ours.clone(), ..CaPolicy::default() };
    let mut history = BundleHistory::new(2 * HOUR);
    let both = join(&[&theirs, &ours]);
    assert_eq!(history.revise(&theirs, &policy, start()), Some(both.clone()));
    assert_eq!(history.revise(&both, &policy, start() + HOUR), None);
    assert_eq!(history.revise(&both, &policy, start() + 2 * HOUR), Some(ours.clone()));
    // After its removal it is forgotten: if it comes back, its grace period starts again.
    history.observe(slice::from_ref(&ours), &policy, start() + 2 * HOUR);
    assert_eq!(history.revise(&both, &policy, start() + 3 * HOUR), None);
}

#[test]
fn revoked_and_expired_cas_are_removed_at_once_and_tolerated_ones_stay() {
    let [ours, revoked, tolerated] = [ca(1000 * HOUR), ca(1000 * HOUR), ca(1000 * HOUR)];
    let expired = ca(HOUR);
    let policy = CaPolicy { desired: ours.clone(), tolerated: tolerated.clone(), revoked: revoked.clone() };
    let mut history = BundleHistory::new(2 * HOUR);
    let all = join(&[&ours, &revoked, &tolerated, &expired]);
    assert_eq!(history.revise(&all, &policy, start() + HOUR), Some(join(&[&ours, &tolerated, &expired])));
    assert_eq!(history.revise(&all, &policy, start() + 2 * HOUR), Some(join(&[&ours, &tolerated])));
}

#[test]
fn a_ca_is_published_from_the_time_when_every_bundle_has_it() {
    let (ours, other) = (ca(1000 * HOUR), ca(1000 * HOUR));
    let cert = ours.iter().next().unwrap();
    let policy = CaPolicy { desired: ours.clone(), ..CaPolicy::default() };
    let mut history = BundleHistory::new(HOUR);
    history.observe(&[ours.clone(), other.clone()], &policy, start());
    assert_eq!(history.published_for(cert, start()), None);
    history.observe(&[ours.clone(), ours.clone()], &policy, start() + HOUR);
    history.observe(&[ours.clone(), ours.clone()], &policy, start() + 3 * HOUR);
    assert_eq!(history.published_for(cert, start() + 3 * HOUR), Some(2 * HOUR));
    assert_eq!(history.published_for(cert, start()), Some(Duration::ZERO), "a clock that was set back");
    history.observe(slice::from_ref(&other), &policy, start() + 4 * HOUR);
    assert_eq!(history.published_for(cert, start() + 4 * HOUR), None);
}

#[test]
fn without_bundles_there_is_nothing_to_wait_for() {
    let ours = ca(1000 * HOUR);
    let policy = CaPolicy { desired: ours.clone(), ..CaPolicy::default() };
    let mut history = BundleHistory::new(HOUR);
    history.observe(&[], &policy, start());
    assert_eq!(history.published_for(ours.iter().next().unwrap(), start() + HOUR), Some(HOUR));
}
