//! The report on good and bad certificates, line by line.

use std::time::Duration;

use gmsa_edge::tls::issue::{Ca, Issued};
use serde_json::json;

use super::*;

const DAY: Duration = Duration::from_secs(24 * 3600);
const HOST: &str = "gmsa-webhook.gmsa.svc";

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + 20_000 * DAY
}

fn authority(name: &str) -> Ca {
    Ca::generate(name, now(), 100 * DAY).unwrap()
}

fn input(ca: &Ca) -> Input {
    let Issued { cert, key } = ca.issue("gmsa-webhook", &[HOST.to_owned()], now(), 10 * DAY).unwrap().0;
    let (cert, key, ca) = (cert.into_bytes(), Some(key.into_bytes()), Some(ca.cert_pem().as_bytes().to_vec()));
    Input { cert, key, ca, configurations: Vec::new() }
}

fn configuration(ca: &str, service: &str) -> (ObjectName, Option<WebhookConfiguration>) {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let client = json!({"caBundle": STANDARD.encode(ca), "service": {"namespace": "gmsa", "name": service}});
    let object = json!({
        "metadata": {"resourceVersion": "1"},
        "webhooks": [{"name": "pods", "clientConfig": client}],
    });
    (ObjectName::configuration("mutating/gmsa").unwrap(), Some(serde_json::from_value(object).unwrap()))
}

fn lines(report: &Inspection) -> Vec<String> {
    report.report.lines().map(str::to_owned).collect()
}

#[test]
fn a_good_certificate_passes_every_check() {
    let ca = authority("test CA");
    let mut input = input(&ca);
    input.configurations.push(configuration(ca.cert_pem(), "gmsa-webhook"));
    let report = inspect(&input, now());
    let serial = KeyPair::from_pem(&input.cert, input.key.as_ref().unwrap(), now()).unwrap().summary.serial;
    assert_eq!(
        lines(&report),
        [
            &format!(
                "certificate 1: serial {serial} for {HOST}, subject \"CN=gmsa-webhook\", issuer \"CN=test CA\", \
                 valid from 2024-10-03T23:00:00Z to 2024-10-14T00:00:00Z"
            ),
            "ok    the certificate expires at 2024-10-14T00:00:00Z (10 d left)",
            "ok    the private key is the key of the certificate",
            "ok    the certificate authority accepts the certificate",
            "ok    mutating/gmsa, webhook pods, accepts the certificate for gmsa-webhook.gmsa.svc",
        ]
    );
    assert!(report.passed);
}

#[test]
fn dates_are_reported() {
    let ca = authority("test CA");
    for (time, expected) in [
        (now() + 9 * DAY, "warn  the certificate expires at 2024-10-14T00:00:00Z (1 d left) (certificate-expiry)"),
        (now() + 10 * DAY, "FAIL  the certificate expired at 2024-10-14T00:00:00Z (certificate-expiry)"),
        (now() - DAY, "FAIL  the certificate is not valid before 2024-10-03T23:00:00Z (certificate-unusable)"),
    ] {
        let report = inspect(&Input { ca: None, ..input(&ca) }, time);
        assert_eq!(lines(&report)[1], expected);
        assert!(!report.passed);
    }
}

#[test]
fn what_does_not_belong_together_is_reported() {
    let (ca, other) = (authority("test CA"), authority("other CA"));
    let good = input(&ca);
    let check = |input: Input| lines(&inspect(&input, now())).pop().unwrap();
    let swapped = Input { key: input(&ca).key, ca: None, ..good.clone() };
    assert_eq!(check(swapped), "FAIL  the private key is not the key of the certificate (private-key)");
    let elsewhere = Input { ca: Some(other.cert_pem().as_bytes().to_vec()), ..good.clone() };
    assert_eq!(
        check(elsewhere),
        "FAIL  the certificate authority does not accept the certificate: invalid peer certificate: UnknownIssuer (certificate-not-trusted)"
    );
    let what = "FAIL  mutating/gmsa, webhook pods, does not accept the certificate for";
    for (found, expected) in [
        (
            configuration(other.cert_pem(), "gmsa-webhook"),
            format!("{what} {HOST}: invalid peer certificate: UnknownIssuer (certificate-not-trusted)"),
        ),
        (
            configuration("", "gmsa-webhook"),
            format!("{what} {HOST}: there is no certificate authority to trust (certificate-not-trusted)"),
        ),
        (
            (ObjectName::configuration("validating/gmsa").unwrap(), None),
            "FAIL  validating/gmsa does not exist (webhook-missing)".to_owned(),
        ),
    ] {
        assert_eq!(check(Input { configurations: vec![found], ..good.clone() }), expected);
    }
    let named = check(Input { configurations: vec![configuration(ca.cert_pem(), "other")], ..good.clone() });
    assert!(
        named.starts_with(&format!("{what} other.gmsa.svc: invalid peer certificate: certificate not valid for name")),
        "{named}"
    );
    let empty = Input { cert: b"\n".to_vec(), ..good };
    assert_eq!(lines(&inspect(&empty, now())), ["FAIL  there is no serving certificate (certificate-unusable)"]);
}

#[test]
fn a_certificate_that_is_in_the_bundle_itself_is_accepted_as_go_does() {
    // What `openssl req -x509` makes: its own authority, which strict verifiers refuse to see served.
    let pem = include_bytes!("../../../../tests/server/certificates/pairs/p256-sec1.pem").to_vec();
    let input = Input { cert: pem.clone(), key: Some(pem.clone()), ca: Some(pem), configurations: Vec::new() };
    let report = inspect(&input, SystemTime::UNIX_EPOCH + 22_000 * DAY);
    assert!(report.passed, "{report:?}");
}

#[test]
fn the_report_of_a_key_in_the_wrong_place_does_not_quote_it() {
    let good = input(&authority("test CA"));
    let mistaken = Input { cert: good.key.clone().unwrap(), key: Some(good.cert.clone()), ..good };
    let report = inspect(&mistaken, now());
    assert_eq!(report.report, "FAIL  there is no serving certificate (certificate-unusable)\n");
}
