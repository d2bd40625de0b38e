//! The order of rotation: single decisions first, then years of it at a time.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use k8s_openapi::ByteString;

use crate::object::ObjectName;
use crate::program::TESTED;
use crate::tls::self_managed::contents::{CA_CERT, Data, TLS_CERT, TLS_KEY, read, write};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

fn start() -> SystemTime {
    SystemTime::UNIX_EPOCH + 20_000 * DAY
}

fn policy() -> SelfManagedSettings {
    SelfManagedSettings {
        secret: ObjectName::secret("gmsa/tls").unwrap(),
        configurations: Vec::new(),
        foreign_grace: DAY,
        check_interval: HOUR,
        program: TESTED,
        names: vec!["gmsa-webhook.gmsa.svc".to_owned()],
        ca_lifetime: 1000 * DAY,
        leaf_lifetime: 90 * DAY,
        renewal_point: 66,
        bundle_standing: Duration::from_secs(60),
    }
}

fn at(now: SystemTime) -> Observed<'static> {
    Observed { now, next_published_for: None, present: None, rotation: "" }
}

fn published(now: SystemTime, time: Duration) -> Observed<'static> {
    Observed { next_published_for: Some(time), ..at(now) }
}

fn after(change: Change, content: SecretContents, view: &Observed<'_>) -> SecretContents {
    complete(apply(change, content, view, &policy()).unwrap())
}

fn complete((cas, leaf): (Cas, Leaf)) -> SecretContents {
    SecretContents { cas: Some(cas), leaf: Some(leaf), damage: None }
}

fn whole(content: &SecretContents) -> (&Cas, &Leaf) {
    assert!(content.damage.is_none());
    (content.cas.as_ref().unwrap(), content.leaf.as_ref().unwrap())
}

fn values(content: &SecretContents) -> Data {
    let (cas, leaf) = whole(content);
    let mut values = Data::new();
    write(cas, leaf, &mut values).unwrap();
    values
}

fn filled() -> SecretContents {
    after(Change::Fill, SecretContents::default(), &at(start()))
}

#[test]
fn an_empty_secret_is_filled_and_then_there_is_nothing_to_do() {
    assert_eq!(next_change(&SecretContents::default(), &at(start()), &policy()), Some(Change::Fill));
    let content = filled();
    let (cas, leaf) = whole(&content);
    assert_eq!(leaf.pair.summary.names, policy().names);
    assert_eq!(leaf.pair.summary.not_after, start() + 90 * DAY);
    assert_eq!(cas.signing.summary.not_after, start() + 1000 * DAY);
    assert_eq!(cas.signing.leaves_until, Some(start() + 90 * DAY));
    assert_eq!(next_change(&content, &at(start()), &policy()), None);
    assert_eq!(next_change(&content, &at(start() + 59 * DAY), &policy()), None);
}

#[test]
fn what_cannot_be_written_overwrites_nothing() {
    let (mut cas, leaf) = apply(Change::Fill, SecretContents::default(), &at(start()), &policy()).unwrap();
    // RFC 3339 begins with the year 0.
    cas.signing.leaves_until = Some(SystemTime::UNIX_EPOCH - 800_000 * DAY);
    let mut values = values(&filled());
    let before = values.clone();
    write(&cas, &leaf, &mut values).unwrap_err();
    assert_eq!(values, before);
}

#[test]
fn what_a_clock_that_is_ahead_made_is_served_or_replaced() {
    // 30 minutes ahead: what it made is already valid.
    let content = after(Change::Fill, SecretContents::default(), &at(start() + HOUR / 2));
    assert_eq!(whole(&content).1.pair.check_time(start()), Ok(()));
    assert_eq!(next_change(&content, &at(start()), &policy()), None);
    // A day ahead: a leaf from the future is replaced, an authority from the future with all that it signed.
    let leaf = after(Change::Reissue, filled(), &at(start() + DAY));
    assert_eq!(next_change(&leaf, &at(start()), &policy()), Some(Change::Reissue));
    let content = after(Change::Fill, SecretContents::default(), &at(start() + DAY));
    let ahead = whole(&content).0.signing.cert_pem().to_owned();
    assert_eq!(next_change(&content, &at(start()), &policy()), Some(Change::Rebuild));
    let content = after(Change::Rebuild, content, &at(start()));
    assert_ne!(whole(&content).0.signing.cert_pem(), ahead);
    assert_eq!(whole(&content).1.pair.check_time(start()), Ok(()));
    // Neither clock finds fault with the result.
    for clock in [start(), start() + DAY] {
        assert_eq!(next_change(&content, &at(clock), &policy()), None);
    }
}

#[test]
fn a_leaf_is_renewed_by_the_same_authority() {
    let content = filled();
    let due = start() + 90 * DAY * 66 / 100;
    assert_eq!(next_change(&content, &at(due - HOUR), &policy()), None);
    assert_eq!(next_change(&content, &at(due), &policy()), Some(Change::Reissue));
    let authority = whole(&content).0.signing.cert_pem().to_owned();
    let renewed = after(Change::Reissue, content, &at(due));
    let (cas, _) = whole(&renewed);
    assert_eq!(cas.signing.cert_pem(), authority);
    assert_eq!(cas.signing.leaves_until, Some(due + 90 * DAY));
    assert_eq!(next_change(&renewed, &at(due), &policy()), None);
}

#[test]
fn a_leaf_for_other_names_or_a_shorter_lifetime_is_renewed_at_once() {
    let content = filled();
    let mut named = policy();
    named.names.push("gmsa-webhook.elsewhere.svc".to_owned());
    assert_eq!(next_change(&content, &at(start()), &named), Some(Change::Reissue));
    let shorter = SelfManagedSettings { leaf_lifetime: DAY, ..policy() };
    assert_eq!(next_change(&content, &at(start() + DAY), &shorter), Some(Change::Reissue));
    // The one before lives longer, and must still be trusted.
    let renewed = apply(Change::Reissue, content, &at(start() + DAY), &shorter).unwrap();
    assert_eq!(renewed.0.signing.leaves_until, Some(start() + 90 * DAY));
}

#[test]
fn a_new_authority_signs_only_after_it_has_been_in_the_bundles_for_some_time() {
    let due = start() + 1000 * DAY * 66 / 100;
    let content = after(Change::Reissue, filled(), &at(due));
    assert_eq!(next_change(&content, &at(due), &policy()), Some(Change::Announce));
    let announced = after(Change::Announce, content, &at(due));
    assert_eq!(whole(&announced).0.policy(due).desired.len(), 2);
    let seconds = Duration::from_secs;
    for (view, expected) in [
        (at(due + HOUR), None),
        (published(due + HOUR, Duration::ZERO), None),
        (published(due + HOUR, seconds(59)), None),
        (published(due + HOUR, seconds(60)), Some(Change::Promote)),
    ] {
        assert_eq!(next_change(&announced, &view, &policy()), expected, "{view:?}");
    }
    let old = whole(&announced).0.signing.der.clone();
    let new = whole(&announced).0.next.as_ref().unwrap().der.clone();
    let promoted = after(Change::Promote, announced, &published(due + HOUR, seconds(60)));
    let (authorities, _) = whole(&promoted);
    assert_eq!(authorities.signing.der, new);
    assert_eq!(authorities.retired, [RetiredCa { cert: old, leaves_until: due + 90 * DAY }]);
    assert!(authorities.next.is_none());
}

#[test]
fn an_old_authority_goes_only_when_everything_that_it_signed_has_expired() {
    let now = start() + DAY;
    let rotation = Observed { rotation: "please", ..at(now) };
    let announced = after(Change::Announce, filled(), &rotation);
    let old = whole(&announced).0.signing.der.clone();
    let promoted = after(Change::Promote, announced, &published(now, DAY));
    let until = start() + 90 * DAY;
    let (authorities, _) = whole(&promoted);
    assert!(authorities.policy(until - HOUR).desired.contains(&old));
    assert!(authorities.policy(until).tolerated.contains(&old), "clocks differ");
    assert!(authorities.policy(until + HOUR).revoked.contains(&old));

    let renewed = after(Change::Reissue, promoted, &at(until));
    let carrying: CaBundle = [old.clone()].into_iter().collect();
    let (nothing, later) = (CaBundle::default(), until + HOUR);
    for (present, now, expected) in [
        (Some(&nothing), until, None),
        (Some(&carrying), later, None),
        (None, later, None),
        (Some(&nothing), later, Some(Change::Forget)),
    ] {
        assert_eq!(next_change(&renewed, &Observed { present, ..at(now) }, &policy()), expected, "{present:?} {now:?}");
    }
    let view = Observed { present: Some(&nothing), ..at(later) };
    assert_eq!(whole(&after(Change::Forget, renewed, &view)).0.retired, []);
}

#[test]
fn a_rotation_that_is_asked_for_happens_once() {
    let asked = Observed { rotation: "monday", ..at(start() + HOUR) };
    let content = filled();
    assert_eq!(next_change(&content, &asked, &policy()), Some(Change::Announce));
    let announced = after(Change::Announce, content, &asked);
    assert_eq!(next_change(&announced, &asked, &policy()), None);
    let promoted = after(Change::Promote, announced, &Observed { next_published_for: Some(DAY), ..asked.clone() });
    assert_eq!(next_change(&promoted, &asked, &policy()), None);
    let again = Observed { rotation: "tuesday", ..asked };
    assert_eq!(next_change(&promoted, &again, &policy()), Some(Change::Announce));
    let refilled = after(Change::Fill, SecretContents::default(), &again);
    assert_eq!(next_change(&refilled, &again, &policy()), None, "a new authority is what was asked for");
}

#[test]
fn a_secret_never_holds_more_authorities_than_are_taken_from_it() {
    let mut content = filled();
    let mut view = at(start());
    // As many as there is room for beside the one that signs and the next one.
    let rotations: Vec<String> = (1..=14).map(|number| number.to_string()).collect();
    for rotation in &rotations {
        view = Observed { rotation, ..at(view.now + HOUR) };
        assert_eq!(next_change(&content, &view, &policy()), Some(Change::Announce), "{rotation}");
        content = after(Change::Promote, after(Change::Announce, content, &view), &view);
    }
    whole(&read(&values(&content), &TESTED));
    let more = Observed { rotation: "more", ..view.clone() };
    assert_eq!(next_change(&content, &more, &policy()), None, "the request waits");
    let content = after(Change::Promote, after(Change::Announce, content, &more), &more);
    let content = after(Change::Announce, content, &more);
    let mut long = values(&filled());
    long.insert("authorities.json".to_owned(), ByteString(vec![b' '; 64 * 1024 + 1]));
    for values in [values(&content), long] {
        let content = read(&values, &TESTED);
        assert_eq!(next_change(&content, &view, &policy()), Some(Change::Rebuild));
        let SecretContents { damage, cas: None, leaf: None } = content else { panic!("it is taken") };
        let expected = "authorities.json holds more than 16 certificate authorities, or more than 65536 bytes";
        assert_eq!(damage.unwrap().to_string(), expected);
    }
}

#[test]
fn a_leaf_is_renewed_even_while_a_rotation_cannot_go_on() {
    let rotation = Observed { rotation: "please", ..at(start()) };
    let announced = after(Change::Announce, filled(), &rotation);
    assert_eq!(next_change(&announced, &at(start() + 60 * DAY), &policy()), Some(Change::Reissue));
    let reissued = after(Change::Reissue, announced, &at(start() + 60 * DAY));
    assert!(whole(&reissued).0.next.is_some());
    // The configurations could not be written until the new authority had expired as well.
    let late = start() + 1001 * DAY;
    assert_eq!(next_change(&reissued, &at(late), &policy()), Some(Change::Rebuild));
    let rebuilt = after(Change::Rebuild, reissued, &at(late));
    assert!(whole(&rebuilt).0.next.is_none());
    assert_eq!(whole(&rebuilt).1.pair.summary.not_after, late + 90 * DAY);
}

/// What is damaged and how, what is said of it, and whether the authority and the leaf survive.
type Case<'a> = (&'a str, Option<&'a [u8]>, &'a str, bool, bool);

#[test]
fn whatever_is_damaged_is_rebuilt_and_what_is_whole_is_kept() {
    let content = filled();
    let other = values(&filled());
    let authority = whole(&content).0.signing.cert_pem().to_owned();
    let serial = whole(&content).1.pair.summary.serial.clone();
    let damaged = |key: &str, value: Option<&[u8]>| {
        let mut values = values(&content);
        match value {
            Some(value) => values.insert(key.to_owned(), ByteString(value.to_vec())),
            None => values.remove(key),
        };
        read(&values, &TESTED)
    };
    let cases: &[Case<'_>] = &[
        (TLS_CERT, None, "the Secret has no key tls.crt", true, false),
        (TLS_CERT, Some(b""), "tls.crt and tls.key are not a key pair: the certificate is empty", true, false),
        (
            TLS_CERT,
            Some(&other[TLS_CERT].0),
            "tls.crt and tls.key are not a key pair: the private key is not the key of the certificate",
            true,
            false,
        ),
        (
            TLS_KEY,
            Some(&[0xff, 0xfe]),
            "tls.crt and tls.key are not a key pair: there is no PEM section with a private key",
            true,
            false,
        ),
        (CA_CERT, None, "the Secret has no key ca.crt", true, true),
        (CA_CERT, Some(&other[CA_CERT].0), "ca.crt differs from authorities.json", true, true),
        ("authorities.json", None, "the Secret has no key authorities.json", false, false),
        ("authorities.json", Some(b"{}"), "authorities.json is not the JSON that this webhook writes", false, false),
        (
            "authorities.json",
            Some(&other["authorities.json"].0),
            "tls.crt is not signed by the certificate authority in authorities.json",
            false,
            false,
        ),
    ];
    for (key, value, expected, authority_kept, leaf_kept) in cases {
        let content = damaged(key, *value);
        assert_eq!(gmsa_core::causes::chain(content.damage.as_ref().unwrap()), *expected, "{key}");
        assert_eq!(next_change(&content, &at(start()), &policy()), Some(Change::Rebuild), "{key}");
        let rebuilt = after(Change::Rebuild, content, &at(start()));
        let (cas, leaf) = whole(&rebuilt);
        assert_eq!(cas.signing.cert_pem() == authority, *authority_kept, "{key}");
        assert_eq!(leaf.pair.summary.serial == serial, *leaf_kept, "{key}");
        whole(&read(&values(&rebuilt), &TESTED));
    }
}

#[test]
fn a_damaged_secret_with_an_expired_authority_gets_a_new_one() {
    let mut damaged = values(&filled());
    damaged.remove(TLS_CERT);
    let late = start() + 1001 * DAY;
    let rebuilt = after(Change::Rebuild, read(&damaged, &TESTED), &at(late));
    assert_eq!(whole(&rebuilt).1.pair.summary.not_after, late + 90 * DAY);
    assert_eq!(next_change(&rebuilt, &at(late), &policy()), None);
}

#[test]
fn the_key_of_another_authority_is_noticed_and_never_quoted() {
    let text = |content: &SecretContents| String::from_utf8(values(content)["authorities.json"].0.clone()).unwrap();
    let (one, other) = (filled(), filled());
    let [mut mixed, other]: [serde_json::Value; 2] =
        [text(&one), text(&other)].map(|text| serde_json::from_str(&text).unwrap());
    mixed["signing"]["key"] = other["signing"]["key"].clone();
    let mut values = values(&one);
    values.insert("authorities.json".to_owned(), ByteString(mixed.to_string().into_bytes()));
    assert_eq!(
        gmsa_core::causes::chain(&read(&values, &TESTED).damage.unwrap()),
        "a certificate authority in authorities.json cannot be used: \
         the private key is not the key of the certificate authority"
    );
}

#[test]
fn what_is_written_is_read_back_and_other_keys_are_left_alone() {
    let rotation = Observed { rotation: "please", ..at(start()) };
    let promoted = after(Change::Promote, after(Change::Announce, filled(), &rotation), &published(start(), DAY));
    let content = after(Change::Announce, promoted, &Observed { rotation: "again", ..at(start() + DAY) });
    let mut written = values(&content);
    written.insert("notes".to_owned(), ByteString(b"mine".to_vec()));
    let again = read(&written, &TESTED);
    let mut rewritten = written.clone();
    let (cas, leaf) = whole(&again);
    write(cas, leaf, &mut rewritten).unwrap();
    assert_eq!(rewritten, written);
    assert_eq!((&*cas.last_rotation, cas.retired.len()), ("again", 1));
}

/// What happens in a cluster within some time.
#[derive(Clone, Debug)]
enum Event {
    /// Time passes.
    Wait(Duration),
    /// A replica looks at everything, and does what there is to do.
    Round { configurations_fail: bool },
    /// A user requests a rotation.
    Ask,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => (1_u32..40).prop_map(|days| Event::Wait(days * DAY)),
        2 => (1_u32..120).prop_map(|seconds| Event::Wait(Duration::from_secs(seconds.into()))),
        8 => prop::bool::weighted(0.2).prop_map(|configurations_fail| Event::Round { configurations_fail }),
        1 => Just(Event::Ask),
    ];
    prop::collection::vec(event, 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// For any events in any order: every serving certificate that was ever given out and has not expired is trusted
    /// by the bundle of that moment, once its authority has been published at all.
    #[test]
    fn whatever_is_served_is_trusted(events in events()) {
        let policy = SelfManagedSettings { ca_lifetime: 400 * DAY, ..policy() };
        let mut now = start();
        let mut content = SecretContents::default();
        let mut bundle = CaBundle::default();
        let mut published_since: Option<(Vec<u8>, SystemTime)> = None;
        let mut given: VecDeque<(SystemTime, rustls::pki_types::CertificateDer<'static>)> = VecDeque::new();
        let mut rotation = String::new();
        for event in events {
            match event {
                Event::Wait(time) => now += time,
                Event::Ask => rotation.push('x'),
                Event::Round { configurations_fail } => {
                    if let (Some(cas), false) = (&content.cas, configurations_fail) {
                        let wanted = cas.policy(now);
                        let revoked = |cert: &_| wanted.revoked.contains(cert);
                        bundle = bundle.revised(&wanted.desired, revoked).unwrap_or(bundle);
                        let next = cas.next.as_ref().map(|next| next.der.to_vec());
                        if published_since.as_ref().map(|(cert, _)| cert) != next.as_ref() {
                            published_since = next.map(|cert| (cert, now));
                        }
                    }
                    let next_published_for = published_since.as_ref().filter(|_| !configurations_fail);
                    let next_published_for = next_published_for.and_then(|(_, since)| now.duration_since(*since).ok());
                    let present = Some(&bundle).filter(|_| !configurations_fail);
                    let view = Observed { now, next_published_for, present, rotation: &rotation };
                    if let Some(change) = next_change(&content, &view, &policy) {
                        let (cas, leaf) = apply(change, content, &view, &policy).unwrap();
                        // With the authority expired there is nothing left to trust.
                        if change == Change::Rebuild {
                            given.clear();
                            bundle = CaBundle::default();
                        }
                        given.push_back((leaf.pair.summary.not_after, cas.signing.der.clone()));
                        prop_assert!(leaf.pair.summary.not_after > now, "{change:?} leaves an expired certificate");
                        content = complete((cas, leaf));
                    }
                }
            }
            given.retain(|(not_after, _)| *not_after > now);
            let published = |cert: &_| bundle.contains(cert);
            // Before the first publication nothing is trusted, and no replica is ready.
            let untrusted = given.iter().skip_while(|_| bundle.is_empty()).find(|(_, signer)| !published(signer));
            prop_assert!(untrusted.is_none(), "a certificate is out that the bundle does not trust");
        }
    }
}
