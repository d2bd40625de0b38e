//! Key pairs and what is issued: what can be served, and what is refused in which words.

use std::time::{Duration, SystemTime};

use prometheus_client::registry::Registry;
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, ParsedExtension, X509Certificate};

use super::{
    CaBundle, KeyPair, KeyPairError, Served, Summary, Timestamp,
    issue::{Ca, IssueError, Issued},
    server_config,
};
use crate::{
    metrics::{register, scrape},
    program::TESTED,
};

const DAY: Duration = Duration::from_secs(86_400);

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + 20_000 * DAY
}

fn names() -> Vec<String> {
    ["gmsa-webhook.gmsa.svc", "127.0.0.1", "::1"].map(str::to_owned).to_vec()
}

fn authority() -> Ca {
    Ca::generate("test CA", now(), 10 * DAY).unwrap()
}

fn leaf(ca: &Ca) -> Issued {
    ca.issue(TESTED.name, &names(), now(), DAY).unwrap().0
}

fn pair(cert: &str, key: &str, now: SystemTime) -> Result<KeyPair, KeyPairError> {
    KeyPair::from_pem(cert.as_bytes(), key.as_bytes(), now)
}

fn nothing_served() -> (Served, Registry) {
    let (metrics, (), registry) = register(&TESTED, |_, _| ());
    (Served::new(metrics), registry)
}

fn der(pem: &str) -> CertificateDer<'static> {
    CaBundle::from_pem(pem.as_bytes()).unwrap().iter().next().unwrap().clone()
}

#[test]
fn an_issued_certificate_can_be_served() {
    let Issued { cert, key } = leaf(&authority());
    let pair = pair(&cert, &key, now()).unwrap();
    assert_eq!(pair.summary.names, names());
    assert_eq!(pair.summary.not_after, now() + DAY);
    assert_eq!(pair.summary.not_before, now() - Duration::from_secs(3600));
    assert_eq!((pair.summary.subject.as_str(), pair.summary.issuer.as_str()), ("CN=gmsa-webhook", "CN=test CA"));
}

#[test]
fn what_cannot_be_served_is_refused_in_words() {
    let ca = authority();
    let Issued { cert, key } = leaf(&ca);
    let other = leaf(&ca);
    let own = |params: rcgen::CertificateParams| {
        let key = rcgen::KeyPair::generate().unwrap();
        (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
    };
    let nameless = own(rcgen::CertificateParams::default());
    let mut mail = rcgen::CertificateParams::default();
    mail.subject_alt_names = vec![rcgen::SanType::Rfc822Name("a@b.example".try_into().unwrap())];
    let mail = own(mail);
    let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let nonsense = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    let cases: [(&str, &str, &str); 12] = [
        (" \n", &key, "the certificate is empty"),
        ("nothing", &key, "there is no PEM section CERTIFICATE"),
        (&cert[..100], &key, "the certificate is not valid PEM, or is not complete"),
        (&format!("{cert}{garbage}"), &key, "certificate 2 is not an X.509 certificate"),
        (&cert.repeat(17), &key, "the chain has more than 16 certificates"),
        (&cert, "", "the private key is empty"),
        (&cert, encrypted, "the private key is encrypted: store it without a password"),
        (&cert, nonsense, "the private key is not an RSA (2048 to 4096 bits), ECDSA (P-256, P-384) or Ed25519 key"),
        (&cert, &other.key, "the private key is not the key of the certificate"),
        (
            &format!("{}{cert}", ca.cert_pem()),
            &key,
            "the private key is the key of certificate 2 of the chain: that one must come first",
        ),
        (
            &nameless.0,
            &nameless.1,
            "the certificate has no DNS name and no IP address among its subject alternative names",
        ),
        (&mail.0, &mail.1, "the certificate has no DNS name and no IP address among its subject alternative names"),
    ];
    for (cert, key, reason) in cases {
        assert_eq!(pair(cert, key, now()).unwrap_err().to_string(), reason);
    }
}

#[test]
fn dates_count_to_the_second_and_clocks_may_differ_at_the_beginning() {
    let Issued { cert, key } = leaf(&authority());
    let (from, to) = (now() - Duration::from_secs(3600), now() + DAY);
    let second = Duration::from_secs(1);
    let skew = Duration::from_secs(300);
    assert!(pair(&cert, &key, to - second).is_ok());
    let refused = |now| pair(&cert, &key, now).unwrap_err().to_string();
    assert_eq!(refused(to), "the certificate expired at 2024-10-05T00:00:00Z");
    assert!(pair(&cert, &key, from - skew).is_ok());
    assert_eq!(refused(from - skew - second), "the certificate is not valid before 2024-10-03T23:00:00Z");
}

#[test]
fn nothing_that_is_printed_shows_a_key() {
    let Issued { cert, key } = leaf(&authority());
    let (served, _) = nothing_served();
    served.publish(pair(&cert, &key, now()).unwrap());
    let printed = format!("{:?} {served:?}", pair(&cert, &key, now()));
    for line in key.lines() {
        assert!(!printed.contains(line), "{printed}");
    }
}

#[test]
fn nothing_is_served_until_something_is_published() {
    let (served, _) = nothing_served();
    let config = server_config(&served, None).unwrap();
    assert_eq!(config.alpn_protocols, [b"http/1.1"]);
    assert_eq!(config.max_early_data_size, 0);
    assert_eq!(served.current(), None);
    let Issued { cert, key } = leaf(&authority());
    let pair = pair(&cert, &key, now()).unwrap();
    let summary = pair.summary.clone();
    served.publish(pair);
    assert_eq!(served.current(), Some(summary));
}

#[test]
fn the_same_refusal_counts_once_until_something_is_published() {
    let (served, registry) = nothing_served();
    let Issued { cert, key } = leaf(&authority());
    // How many were served and refused, and whether the last one is refused.
    let counted = || {
        let shown = scrape(&registry).unwrap();
        ["reloads_total{outcome=\"served\"}", "reloads_total{outcome=\"refused\"}", "refused"].map(|series| {
            let sample = format!("gmsa_webhook_certificate_{series} ");
            shown.lines().find_map(|line| line.strip_prefix(&sample)?.parse::<u64>().ok()).unwrap()
        })
    };
    let refuse = |reason| {
        served.offer(Err(KeyPairError::Unusable(reason)), now());
        counted()
    };
    let counts = ["a", "a", "b"].map(refuse);
    assert_eq!(counts, [[0, 1, 1], [0, 1, 1], [0, 2, 1]]);
    assert_eq!(served.refusal(), Some("b".to_owned()));
    let good = pair(&cert, &key, now()).unwrap();
    served.offer(Ok::<_, KeyPairError>(good.clone()), now());
    assert_eq!((counted(), served.refusal()), ([1, 2, 0], None));
    assert_eq!(refuse("b"), [1, 3, 1]);
    assert_eq!(served.current(), Some(good.summary.clone()));
    // The source holds again what is served.
    served.offer(Ok::<_, KeyPairError>(good), now());
    assert_eq!((counted(), served.refusal()), ([1, 3, 0], None));
}

/// A pair may be a little early where nothing else is served: clocks differ.
#[test]
fn a_pair_that_is_not_valid_yet_replaces_none_that_is() {
    let (served, _) = nothing_served();
    let hour = Duration::from_secs(3600);
    let ca = authority();
    let issued = |at| {
        let Issued { cert, key } = ca.issue(TESTED.name, &names(), at, DAY).unwrap().0;
        KeyPair::at_any_time(cert.as_bytes(), key.as_bytes()).unwrap()
    };
    // Certificates begin an hour before they are made.
    let (good, early) = (issued(now()), issued(now() + hour + Duration::from_secs(60)));
    let offer = |pair: &KeyPair, now| (served.offer(Ok::<_, KeyPairError>(pair.clone()), now), served.refusal());
    assert_eq!(offer(&good, now()), (true, None));
    let refused = Some("the certificate is not valid before 2024-10-04T00:01:00Z".to_owned());
    assert_eq!(offer(&early, now()), (false, refused));
    assert_eq!(served.current().as_ref(), Some(&good.summary));
    assert_eq!(offer(&early, now() + Duration::from_secs(60)), (true, None));
    // The clock is corrected: what is served is not valid yet, and as bad as what has expired.
    assert_eq!(offer(&issued(now() + hour + Duration::from_secs(30)), now()), (true, None));
}

#[test]
fn the_metrics_name_the_authority_of_what_is_served() {
    let (served, registry) = nothing_served();
    for ca in [authority(), authority()] {
        let Issued { cert, key } = leaf(&ca);
        served.publish(pair(&cert, &key, now()).unwrap());
        let of_ca = der(ca.cert_pem());
        let (_, of_ca) = X509Certificate::from_der(&of_ca).unwrap();
        let key_id = of_ca.extensions().iter().find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(key) => Some(format!("{key:x}")),
            _ => None,
        });
        let shown = scrape(&registry).unwrap();
        let of_authorities = |line: &&str| line.starts_with("gmsa_webhook_certificate_authority{");
        let expected = format!("gmsa_webhook_certificate_authority{{key_id=\"{}\"}} 1", key_id.unwrap());
        assert_eq!(shown.lines().filter(of_authorities).collect::<Vec<_>>(), [expected]);
    }
}

#[test]
fn an_authority_and_its_leaves_say_what_they_are_for() {
    let ca = authority();
    let (ca_der, leaf_der) = (der(ca.cert_pem()), der(&leaf(&ca).cert));
    let (_, authority) = X509Certificate::from_der(&ca_der).unwrap();
    let (_, leaf) = X509Certificate::from_der(&leaf_der).unwrap();

    let constraints = authority.basic_constraints().unwrap().unwrap();
    assert!(constraints.critical && constraints.value.ca);
    assert_eq!(constraints.value.path_len_constraint, Some(0));
    let usage = authority.key_usage().unwrap().unwrap();
    assert!(
        usage.critical && usage.value.key_cert_sign() && usage.value.crl_sign() && !usage.value.digital_signature()
    );

    assert!(!leaf.is_ca());
    let usage = leaf.key_usage().unwrap().unwrap().value;
    assert!(usage.digital_signature() && !usage.key_cert_sign());
    let purpose = leaf.extended_key_usage().unwrap().unwrap().value;
    assert!(purpose.server_auth && !purpose.client_auth && !purpose.any);
    leaf.verify_signature(Some(authority.public_key())).unwrap();
    let identifiers = |cert: &X509Certificate<'_>, issuer: bool| {
        cert.extensions().iter().find_map(|extension| match extension.parsed_extension() {
            x509_parser::extensions::ParsedExtension::SubjectKeyIdentifier(id) if !issuer => Some(id.0.to_vec()),
            x509_parser::extensions::ParsedExtension::AuthorityKeyIdentifier(id) if issuer => {
                id.key_identifier.as_ref().map(|id| id.0.to_vec())
            }
            _ => None,
        })
    };
    assert!(identifiers(&authority, false).is_some());
    assert_eq!(identifiers(&leaf, true), identifiers(&authority, false));
}

#[test]
fn a_leaf_never_outlives_its_authority() {
    let ca = authority();
    let issued = ca.issue(TESTED.name, &names(), now() + 9 * DAY, 90 * DAY).unwrap().0;
    assert_eq!(pair(&issued.cert, &issued.key, now() + 9 * DAY).unwrap().summary.not_after, now() + 10 * DAY);
    let millennia = Duration::from_secs(8_000 * 366 * 86_400);
    assert!(matches!(Ca::generate("test", now(), millennia), Err(IssueError::Lifetime)));
}

#[test]
fn an_authority_that_is_read_again_signs_as_before() {
    let ca = authority();
    let again = Ca::from_pem(ca.cert_pem(), &ca.key_pem()).unwrap();
    assert_eq!(again.summary, ca.summary);
    let (ca_der, leaf_der) = (der(ca.cert_pem()), der(&leaf(&again).cert));
    let (_, authority) = X509Certificate::from_der(&ca_der).unwrap();
    let (_, leaf) = X509Certificate::from_der(&leaf_der).unwrap();
    leaf.verify_signature(Some(authority.public_key())).unwrap();
    assert_eq!(Summary::of(&leaf).issuer, "CN=test CA");
}

#[test]
fn what_is_no_authority_signs_nothing() {
    let ca = authority();
    let issued = leaf(&ca);
    let refused = |cert: &str, key: &str| Ca::from_pem(cert, key).err().unwrap().to_string();
    assert_eq!(refused(&issued.cert, &issued.key), "the certificate is not one of a certificate authority");
    assert_eq!(refused(ca.cert_pem(), &issued.key), "the private key is not the key of the certificate authority");
    assert_eq!(refused("", &issued.key), "the certificate authority's certificate cannot be read");
    assert_eq!(refused(ca.cert_pem(), "x"), "the certificate authority's private key cannot be read");
}

#[test]
fn times_are_printed_to_the_second_in_utc() {
    assert_eq!(Timestamp(now() + Duration::from_millis(1_500)).to_string(), "2024-10-04T00:00:01Z");
}
