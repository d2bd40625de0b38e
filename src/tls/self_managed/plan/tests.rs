//! The order of rotation: single decisions first, then years of it at a time.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::tls::self_managed::stored::{CA_CERT, TLS_CERT, TLS_KEY, Values, read};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

fn start() -> SystemTime {
    SystemTime::UNIX_EPOCH + 20_000 * DAY
}

fn terms() -> Terms {
    Terms {
        names: vec!["gmsa-webhook.gmsa.svc".to_owned()],
        ca_lifetime: 1000 * DAY,
        leaf_lifetime: 90 * DAY,
        renewal: RenewalPoint::default(),
        bundle_standing: Duration::from_secs(60),
    }
}

fn at(now: SystemTime) -> View<'static> {
    View { now, next_standing: None, carried: None, rotation: "" }
}

fn stood(now: SystemTime, standing: Duration) -> View<'static> {
    View { next_standing: Some(standing), ..at(now) }
}

fn after(step: Step, content: Content, view: &View<'_>) -> Content {
    Content::Whole(take(step, content, view, &terms()).unwrap())
}

fn whole(content: &Content) -> &Stored {
    match content {
        Content::Whole(stored) => stored,
        other => panic!("{other:?}"),
    }
}

fn values(content: &Content) -> Values {
    let mut values = Values::new();
    whole(content).write(&mut values);
    values
}

fn filled() -> Content {
    after(Step::Fill, Content::Empty, &at(start()))
}

#[test]
fn an_empty_secret_is_filled_and_then_there_is_nothing_to_do() {
    assert_eq!(next_step(&Content::Empty, &at(start()), &terms()), Some(Step::Fill));
    let content = filled();
    let stored = whole(&content);
    assert_eq!(stored.leaf.pair.names(), terms().names);
    assert_eq!(stored.leaf.pair.not_after(), start() + 90 * DAY);
    assert_eq!(stored.authorities.signing.ca.not_after(), start() + 1000 * DAY);
    assert_eq!(stored.authorities.signing.leaves_until, Some(start() + 90 * DAY));
    assert_eq!(next_step(&content, &at(start()), &terms()), None);
    assert_eq!(next_step(&content, &at(start() + 59 * DAY), &terms()), None);
}

#[test]
fn a_leaf_is_renewed_by_the_same_authority() {
    let content = filled();
    let due = start() + 90 * DAY * 66 / 100;
    assert_eq!(next_step(&content, &at(due - HOUR), &terms()), None);
    assert_eq!(next_step(&content, &at(due), &terms()), Some(Step::Reissue));
    let authority = whole(&content).authorities.signing.ca.cert_pem().to_owned();
    let renewed = after(Step::Reissue, content, &at(due));
    let stored = whole(&renewed);
    assert_eq!(stored.authorities.signing.ca.cert_pem(), authority);
    assert_eq!(stored.authorities.signing.leaves_until, Some(due + 90 * DAY));
    assert_eq!(next_step(&renewed, &at(due), &terms()), None);
}

#[test]
fn a_leaf_for_other_names_or_a_shorter_lifetime_is_renewed_at_once() {
    let content = filled();
    let mut named = terms();
    named.names.push("gmsa-webhook.elsewhere.svc".to_owned());
    assert_eq!(next_step(&content, &at(start()), &named), Some(Step::Reissue));
    let shorter = Terms { leaf_lifetime: DAY, ..terms() };
    assert_eq!(next_step(&content, &at(start() + DAY), &shorter), Some(Step::Reissue));
    // The one before lives longer, and must still be trusted.
    let renewed = take(Step::Reissue, content, &at(start() + DAY), &shorter).unwrap();
    assert_eq!(renewed.authorities.signing.leaves_until, Some(start() + 90 * DAY));
}

#[test]
fn a_new_authority_signs_only_after_it_has_stood_in_the_bundles() {
    let due = start() + 1000 * DAY * 66 / 100;
    let content = after(Step::Reissue, filled(), &at(due));
    assert_eq!(next_step(&content, &at(due), &terms()), Some(Step::Announce));
    let announced = after(Step::Announce, content, &at(due));
    assert_eq!(whole(&announced).authorities.wishes(due).needed.len(), 2);
    let seconds = Duration::from_secs;
    for (view, expected) in [
        (at(due + HOUR), None),
        (stood(due + HOUR, Duration::ZERO), None),
        (stood(due + HOUR, seconds(59)), None),
        (stood(due + HOUR, seconds(60)), Some(Step::Promote)),
    ] {
        assert_eq!(next_step(&announced, &view, &terms()), expected, "{view:?}");
    }
    let old = whole(&announced).authorities.signing.ca.cert_der().clone();
    let new = whole(&announced).authorities.next.as_ref().unwrap().ca.cert_der().clone();
    let promoted = after(Step::Promote, announced, &stood(due + HOUR, seconds(60)));
    let authorities = &whole(&promoted).authorities;
    assert_eq!(authorities.signing.ca.cert_der(), &new);
    assert_eq!(authorities.retired, [Retired { cert: old, leaves_until: due + 90 * DAY }]);
    assert!(authorities.next.is_none());
}

#[test]
fn an_old_authority_goes_only_when_everything_that_it_signed_has_expired() {
    let now = start() + DAY;
    let rotation = View { rotation: "please", ..at(now) };
    let announced = after(Step::Announce, filled(), &rotation);
    let old = whole(&announced).authorities.signing.ca.cert_der().clone();
    let promoted = after(Step::Promote, announced, &stood(now, DAY));
    let until = start() + 90 * DAY;
    let authorities = &whole(&promoted).authorities;
    assert!(authorities.wishes(until - HOUR).needed.contains(&old));
    assert!(authorities.wishes(until).spare.contains(&old), "clocks differ");
    assert!(authorities.wishes(until + HOUR).gone.contains(&old));

    let renewed = after(Step::Reissue, promoted, &at(until));
    let carrying: CaBundle = [old.clone()].into_iter().collect();
    let (nothing, later) = (CaBundle::default(), until + HOUR);
    for (carried, now, expected) in [
        (Some(&nothing), until, None),
        (Some(&carrying), later, None),
        (None, later, None),
        (Some(&nothing), later, Some(Step::Forget)),
    ] {
        assert_eq!(next_step(&renewed, &View { carried, ..at(now) }, &terms()), expected, "{carried:?} {now:?}");
    }
    let view = View { carried: Some(&nothing), ..at(later) };
    assert_eq!(whole(&after(Step::Forget, renewed, &view)).authorities.retired, []);
}

#[test]
fn a_rotation_that_is_asked_for_happens_once() {
    let asked = View { rotation: "monday", ..at(start() + HOUR) };
    let content = filled();
    assert_eq!(next_step(&content, &asked, &terms()), Some(Step::Announce));
    let announced = after(Step::Announce, content, &asked);
    assert_eq!(next_step(&announced, &asked, &terms()), None);
    let promoted = after(Step::Promote, announced, &View { next_standing: Some(DAY), ..asked.clone() });
    assert_eq!(next_step(&promoted, &asked, &terms()), None);
    let again = View { rotation: "tuesday", ..asked };
    assert_eq!(next_step(&promoted, &again, &terms()), Some(Step::Announce));
    let refilled = after(Step::Fill, Content::Empty, &again);
    assert_eq!(next_step(&refilled, &again, &terms()), None, "a new authority is what was asked for");
}

#[test]
fn a_leaf_is_renewed_even_while_a_rotation_cannot_go_on() {
    let rotation = View { rotation: "please", ..at(start()) };
    let announced = after(Step::Announce, filled(), &rotation);
    assert_eq!(next_step(&announced, &at(start() + 60 * DAY), &terms()), Some(Step::Reissue));
    let reissued = after(Step::Reissue, announced, &at(start() + 60 * DAY));
    assert!(whole(&reissued).authorities.next.is_some());
    // Nobody could write the configurations until the new authority had expired as well.
    let late = start() + 1001 * DAY;
    assert_eq!(next_step(&reissued, &at(late), &terms()), Some(Step::Restart));
    let restarted = after(Step::Restart, reissued, &at(late));
    assert!(whole(&restarted).authorities.next.is_none());
    assert_eq!(whole(&restarted).leaf.pair.not_after(), late + 90 * DAY);
}

/// What is damaged and how, what is said of it, and whether the authority and the leaf survive.
type Case<'a> = (&'a str, Option<&'a [u8]>, &'a str, bool, bool);

#[test]
fn whatever_is_damaged_is_rebuilt_and_what_is_whole_is_kept() {
    let content = filled();
    let other = values(&filled());
    let authority = whole(&content).authorities.signing.ca.cert_pem().to_owned();
    let serial = whole(&content).leaf.pair.serial().to_owned();
    let damaged = |key: &str, value: Option<&[u8]>| {
        let mut values = values(&content);
        match value {
            Some(value) => values.insert(key.to_owned(), value.to_vec()),
            None => values.remove(key),
        };
        read(&values)
    };
    let cases: &[Case<'_>] = &[
        (TLS_CERT, None, "the Secret has no key tls.crt", true, false),
        (TLS_CERT, Some(b""), "tls.crt and tls.key are not a key pair: the certificate is empty", true, false),
        (
            TLS_CERT,
            Some(&other[TLS_CERT]),
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
        (CA_CERT, Some(&other[CA_CERT]), "ca.crt is not what authorities.json says", true, true),
        ("authorities.json", None, "the Secret has no key authorities.json", false, false),
        (
            "authorities.json",
            Some(b"{}"),
            "authorities.json is not a list of authorities: it is not the JSON that this webhook writes",
            false,
            false,
        ),
        (
            "authorities.json",
            Some(&other["authorities.json"]),
            "tls.crt is not signed by the certificate authority in authorities.json",
            false,
            false,
        ),
    ];
    for (key, value, expected, authority_kept, leaf_kept) in cases {
        let content = damaged(key, *value);
        let Content::Damaged { damage, .. } = &content else { panic!("{key}: {content:?}") };
        assert_eq!(crate::telemetry::chain(damage), *expected, "{key}");
        assert_eq!(next_step(&content, &at(start()), &terms()), Some(Step::Rebuild), "{key}");
        let rebuilt = after(Step::Rebuild, content, &at(start()));
        let stored = whole(&rebuilt);
        assert_eq!(stored.authorities.signing.ca.cert_pem() == authority, *authority_kept, "{key}");
        assert_eq!(stored.leaf.pair.serial() == serial, *leaf_kept, "{key}");
        assert!(matches!(read(&values(&rebuilt)), Content::Whole(_)), "{key}");
    }
}

#[test]
fn the_key_of_another_authority_is_noticed_and_never_quoted() {
    let text = |content: &Content| String::from_utf8(values(content)["authorities.json"].clone()).unwrap();
    let (one, other) = (filled(), filled());
    let [mut mixed, other]: [serde_json::Value; 2] =
        [text(&one), text(&other)].map(|text| serde_json::from_str(&text).unwrap());
    mixed["signing"]["key"] = other["signing"]["key"].clone();
    let mut values = values(&one);
    values.insert("authorities.json".to_owned(), mixed.to_string().into_bytes());
    let Content::Damaged { damage, .. } = read(&values) else { panic!("not noticed") };
    assert_eq!(
        crate::telemetry::chain(&damage),
        "authorities.json is not a list of authorities: an authority in it cannot be used: \
         the private key is not the key of the certificate authority"
    );
}

#[test]
fn what_is_written_is_read_back_and_other_keys_are_left_alone() {
    let rotation = View { rotation: "please", ..at(start()) };
    let promoted = after(Step::Promote, after(Step::Announce, filled(), &rotation), &stood(start(), DAY));
    let content = after(Step::Announce, promoted, &View { rotation: "again", ..at(start() + DAY) });
    let mut written = values(&content);
    written.insert("notes".to_owned(), b"mine".to_vec());
    let again = read(&written);
    let mut rewritten = written.clone();
    whole(&again).write(&mut rewritten);
    assert_eq!(rewritten, written);
    assert_eq!(whole(&again).authorities.heeded, "again");
    assert_eq!(whole(&again).authorities.retired.len(), 1);
    let secret = format!("{again:?}");
    assert!(!secret.contains("PRIVATE"), "{secret}");
}

#[test]
fn a_renewal_point_is_a_share_of_a_lifetime() {
    assert_eq!("66".parse(), Ok(RenewalPoint::default()));
    for text in ["0", "100", "-1", "", "66%"] {
        assert_eq!(text.parse::<RenewalPoint>(), Err(NotARenewalPoint), "{text}");
    }
}

/// What happens in a cluster within some time.
#[derive(Clone, Debug)]
enum Event {
    /// Time passes.
    Wait(Duration),
    /// A replica looks at everything, and does what there is to do.
    Round { configurations_fail: bool },
    /// Somebody asks for a rotation.
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

    /// Whatever comes in whatever order: every serving certificate that was ever given out and has not expired is trusted
    /// by the bundle of that moment, once its authority has been published at all.
    #[test]
    fn whatever_is_served_is_trusted(events in events()) {
        let terms = Terms { ca_lifetime: 400 * DAY, ..terms() };
        let mut now = start();
        let mut content = Content::Empty;
        let mut bundle = CaBundle::default();
        let mut standing: Option<(Vec<u8>, SystemTime)> = None;
        let mut given: VecDeque<(SystemTime, rustls::pki_types::CertificateDer<'static>)> = VecDeque::new();
        let mut rotation = String::new();
        for event in events {
            match event {
                Event::Wait(time) => now += time,
                Event::Ask => rotation.push('x'),
                Event::Round { configurations_fail } => {
                    if let (Content::Whole(stored), false) = (&content, configurations_fail) {
                        let wishes = stored.authorities.wishes(now);
                        let gone = |cert: &_| wishes.gone.contains(cert);
                        bundle = bundle.revised(&wishes.needed, gone).unwrap_or(bundle);
                        let next = stored.authorities.next.as_ref().map(|next| next.ca.cert_der().to_vec());
                        if standing.as_ref().map(|(cert, _)| cert) != next.as_ref() {
                            standing = next.map(|cert| (cert, now));
                        }
                    }
                    let next_standing = standing.as_ref().filter(|_| !configurations_fail);
                    let next_standing = next_standing.and_then(|(_, since)| now.duration_since(*since).ok());
                    let carried = Some(&bundle).filter(|_| !configurations_fail);
                    let view = View { now, next_standing, carried, rotation: &rotation };
                    if let Some(step) = next_step(&content, &view, &terms) {
                        let stored = take(step, content, &view, &terms).unwrap();
                        // With the authority expired there was nothing left that anybody could trust.
                        if step == Step::Restart {
                            given.clear();
                            bundle = CaBundle::default();
                        }
                        let signer = stored.authorities.signing.ca.cert_der().clone();
                        given.push_back((stored.leaf.pair.not_after(), signer));
                        prop_assert!(stored.leaf.pair.not_after() > now, "{step:?} leaves an expired certificate");
                        content = Content::Whole(stored);
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
