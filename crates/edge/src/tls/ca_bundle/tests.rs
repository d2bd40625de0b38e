//! What is read and printed, what is added and removed, how long CAs stay, and when they count as trusted.

use std::{slice, sync::LazyLock};

use tokio::time::Instant;

use super::*;
use crate::tls::issue::Ca;

fn cert(content: &'static [u8]) -> CertificateDer<'static> {
    CertificateDer::from(content)
}

fn bundle(contents: &[&'static [u8]]) -> CaBundle {
    contents.iter().map(|content| cert(content)).collect()
}

#[test]
fn what_is_printed_is_read_again() {
    let long = [7_u8; 100];
    let bundle: CaBundle = [cert(b"one"), CertificateDer::from(long.to_vec())].into_iter().collect();
    let pem = bundle.to_pem();
    assert!(pem.lines().all(|line| line.len() <= 64), "{pem}");
    assert_eq!(CaBundle::salvage(pem.as_bytes()), bundle);
}

#[test]
fn text_that_is_no_certificate_is_left_out() {
    let pem = bundle(&[b"one"]).to_pem();
    let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    let damaged = "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n";
    let mixed = format!("# a note\n{key}{damaged}{pem}{pem}-----BEGIN CERTIFICATE-----\nAAAA");
    assert_eq!(CaBundle::salvage(mixed.as_bytes()), bundle(&[b"one"]));
    assert_eq!(CaBundle::salvage(b"\n"), CaBundle::default());
    assert_eq!(CaBundle::from_pem(mixed.as_bytes()), Err(CertificatesError::Damaged));
    assert_eq!(CaBundle::from_pem(key.as_bytes()), Err(CertificatesError::Missing));
    assert_eq!(CaBundle::from_pem(pem.as_bytes()), Err(CertificatesError::NotX509(1)));
}

#[test]
fn what_is_there_stays_and_what_is_missing_is_appended() {
    let keep = |_: &CertificateDer<'static>| false;
    assert_eq!(bundle(&[b"a"]).revised(&bundle(&[b"b", b"c"]), keep), Some(bundle(&[b"a", b"b", b"c"])));
    assert_eq!(bundle(&[b"a", b"b"]).revised(&bundle(&[b"b", b"a"]), keep), None);
    assert_eq!(CaBundle::default().revised(&CaBundle::default(), keep), None);
}

#[test]
fn a_bundle_that_is_too_large_loses_its_first_certificates_and_none_that_is_desired() {
    let keep = |_: &CertificateDer<'static>| false;
    let certs = |number: u8, size: usize| -> CaBundle {
        (0..number).map(|at| CertificateDer::from([vec![at], vec![0; size]].concat())).collect()
    };
    let ours = bundle(&[b"ours"]);
    for (foreign, left) in [(certs(100, 10), 63), (certs(40, 10_000), 13)] {
        let revised = foreign.revised(&ours, keep).unwrap();
        let expected: CaBundle = foreign.iter().skip(foreign.len() - left).chain(ours.iter()).cloned().collect();
        assert_eq!(revised, expected);
        assert_eq!(revised.revised(&ours, keep), None);
    }
    assert_eq!(ours.revised(&certs(100, 10_000), |_| false), Some(certs(100, 10_000)));
}

#[test]
fn what_may_be_removed_is_removed_unless_it_is_desired() {
    let all = |_: &CertificateDer<'static>| true;
    assert_eq!(bundle(&[b"a", b"b"]).revised(&bundle(&[b"b"]), all), Some(bundle(&[b"b"])));
    let only_a = |found: &CertificateDer<'static>| *found == cert(b"a");
    assert_eq!(bundle(&[b"a", b"b"]).revised(&bundle(&[b"c"]), only_a), Some(bundle(&[b"b", b"c"])));
}

const HOUR: Duration = Duration::from_secs(3600);

fn start() -> Moment {
    static MONOTONIC: LazyLock<Instant> = LazyLock::new(Instant::now);
    Moment { wall: SystemTime::UNIX_EPOCH + 400_000 * HOUR, boot: Duration::ZERO, monotonic: *MONOTONIC }
}

/// The same moment after somebody has set the time of day a year ahead, and a year back.
fn set(moment: Moment) -> [Moment; 2] {
    let year = 365 * 24 * HOUR;
    [moment.wall + year, moment.wall - year].map(|wall| Moment { wall, ..moment })
}

fn ca(lifetime: Duration) -> CaBundle {
    CaBundle::salvage(Ca::generate("test", start().wall, lifetime).unwrap().cert_pem().as_bytes())
}

fn join(bundles: &[&CaBundle]) -> CaBundle {
    bundles.iter().flat_map(|bundle| bundle.iter().cloned()).collect()
}

#[test]
fn foreign_cas_stay_for_the_grace_period_and_are_then_removed() {
    let (ours, theirs) = (ca(100_000 * HOUR), ca(100_000 * HOUR));
    let policy = CaPolicy { desired: ours.clone(), ..CaPolicy::default() };
    let mut history = BundleHistory::new(2 * HOUR);
    let both = join(&[&theirs, &ours]);
    assert_eq!(history.revise(&theirs, &policy, start()), Some(both.clone()));
    assert_eq!(history.revise(&both, &policy, start() + HOUR), None);
    assert_eq!(set(start() + HOUR).map(|now| history.revise(&both, &policy, now)), [None, None]);
    let after = set(start() + 2 * HOUR).map(|now| history.revise(&both, &policy, now));
    assert_eq!(after, [Some(ours.clone()), Some(ours.clone())]);
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
    assert_eq!(set(start() + 3 * HOUR).map(|now| history.published_for(cert, now)), [Some(2 * HOUR); 2]);
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
