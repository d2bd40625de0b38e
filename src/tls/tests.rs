//! Key pairs: what can be served, and what is refused.

use std::time::{Duration, SystemTime};

use super::{KeyPair, KeyPairError, Served, issue::Ca, server_config};

const DAY: Duration = Duration::from_secs(86_400);

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + 20_000 * DAY
}

fn names() -> Vec<String> {
    ["gmsa-webhook.gmsa.svc", "127.0.0.1", "::1"].map(str::to_owned).to_vec()
}

#[test]
fn an_issued_certificate_can_be_served() {
    let ca = Ca::generate("test CA", now(), 10 * DAY).unwrap();
    let issued = ca.issue(&names(), now(), DAY).unwrap();
    let pair = KeyPair::from_pem(issued.cert.as_bytes(), issued.key.as_bytes(), now()).unwrap();
    assert_eq!(pair.names(), names());
    assert_eq!(pair.not_after(), now() + DAY);
    assert_eq!(pair.summary().not_before, now() - Duration::from_secs(600));
    assert_eq!(pair.summary().issuer, "CN=test CA");
}

#[test]
fn a_key_of_another_certificate_is_refused() {
    let ca = Ca::generate("test CA", now(), 10 * DAY).unwrap();
    let (one, other) = (ca.issue(&names(), now(), DAY).unwrap(), ca.issue(&names(), now(), DAY).unwrap());
    let refused = KeyPair::from_pem(one.cert.as_bytes(), other.key.as_bytes(), now());
    assert_eq!(refused.unwrap_err(), KeyPairError::Mismatch);
}

#[test]
fn nothing_is_served_until_something_is_published() {
    let served = Served::new();
    let config = server_config(&served, None).unwrap();
    assert_eq!(config.alpn_protocols, [b"h2".to_vec(), b"http/1.1".to_vec()]);
    assert!(!served.is_serving());
    let ca = Ca::generate("test CA", now(), 10 * DAY).unwrap();
    let issued = ca.issue(&names(), now(), DAY).unwrap();
    let pair = KeyPair::from_pem(issued.cert.as_bytes(), issued.key.as_bytes(), now()).unwrap();
    let serial = pair.serial().to_owned();
    served.publish(pair);
    assert!(served.is_serving());
    assert_eq!(served.current().unwrap().serial, serial);
}
