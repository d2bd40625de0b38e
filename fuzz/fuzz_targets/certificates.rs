//! PEM: bundles, what is appended to a `caBundle`, key pairs, and the Secret with the stored authorities. The first byte says
//! which. Real certificates and keys are made at the start and put where the input says `@a` (the CA), `@c` (a
//! certificate), `@k` (its key) or `@j` (the stored authorities), so that no key lies in a corpus.

#![no_main]

use std::{
    collections::BTreeMap,
    error::Error,
    sync::LazyLock,
    time::{Duration, SystemTime},
};

use gmsa_edge::Program;
use gmsa_edge::tls::{
    CaBundle, KeyPair,
    issue::Ca,
    self_managed::contents::{self, AUTHORITIES, CA_CERT, Data, SecretContents, TLS_CERT, TLS_KEY},
};
use k8s_openapi::ByteString;

const PROGRAM: Program = Program { name: "fuzz", version: "0.0.0", noun: "target", spans: "fuzz" };

struct Made {
    /// By the letter behind the `@`.
    texts: BTreeMap<char, String>,
    secrets: Vec<String>,
    ca: CaBundle,
    now: SystemTime,
}

static MADE: LazyLock<Made> = LazyLock::new(|| {
    let (now, life) = (SystemTime::now(), Duration::from_secs(1 << 26));
    let ca = Ca::generate("fuzz", now, life).unwrap();
    let (leaf, _) = ca.issue("fuzz", &["fuzz.invalid".to_owned()], now, life).unwrap();
    let authorities = format!(
        r#"{{"signing":{{"certificate":{:?},"key":{:?},"leavesUntil":"2030-01-01T00:00:00Z"}}}}"#,
        ca.cert_pem(),
        ca.key_pem()
    );
    let inner = |pem: &str| pem.lines().nth(1).unwrap().to_owned();
    Made {
        secrets: vec![inner(&ca.key_pem()), inner(&leaf.key)],
        ca: CaBundle::from_pem(ca.cert_pem().as_bytes()).unwrap(),
        texts: BTreeMap::from([
            ('a', ca.cert_pem().to_owned()),
            ('c', leaf.cert),
            ('k', leaf.key),
            ('j', authorities),
        ]),
        now,
    }
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((which, rest)) = input.split_first() else { return };
    let parts: Vec<Vec<u8>> = rest.split(|byte| *byte == 0).map(with_pem).collect();
    let part = |at: usize| parts.get(at).cloned().unwrap_or_default();
    match which {
        b'0' => bundle(&part(0)),
        b'1' => pair(&part(0), &part(1)),
        _ => secret(&[TLS_CERT, TLS_KEY, CA_CERT, AUTHORITIES], &parts),
    }
});

fn with_pem(bytes: &[u8]) -> Vec<u8> {
    let mut pem = Vec::new();
    let mut rest = bytes;
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        match tail.first().and_then(|letter| MADE.texts.get(&char::from(*letter))) {
            Some(text) if *first == b'@' => {
                pem.extend_from_slice(text.as_bytes());
                rest = &tail[1..];
            }
            _ => pem.push(*first),
        }
    }
    pem
}

/// What is there stays, in its order, and what is appended is appended once.
fn bundle(pem: &[u8]) {
    let there = CaBundle::salvage(pem);
    assert_eq!(CaBundle::salvage(there.to_pem().as_bytes()), there);
    if let Ok(strict) = CaBundle::from_pem(pem) {
        assert_eq!(strict, there);
    }
    let more = there.revised(&MADE.ca, |_| false).unwrap_or_else(|| there.clone());
    assert!(more.iter().zip(there.iter()).all(|(one, other)| one == other));
    assert!(MADE.ca.iter().all(|ca| more.contains(ca)));
    assert!(more.len() - there.len() <= 1 && more.revised(&MADE.ca, |_| false).is_none());
}

fn pair(cert: &[u8], key: &[u8]) {
    match KeyPair::from_pem(cert, key, MADE.now) {
        Ok(pair) => {
            assert!(!pair.summary.names.is_empty() && pair.summary.not_after > MADE.now);
        }
        Err(error) => without_secrets(&error),
    }
}

/// What is complete is read back as it was written.
fn secret(keys: &[&str], parts: &[Vec<u8>]) {
    let some = keys.iter().zip(parts).filter(|(_, part)| part.as_slice() != b"-");
    let data: Data = some.map(|(key, part)| ((*key).to_owned(), ByteString(part.clone()))).collect();
    match contents::read(&data, &PROGRAM) {
        SecretContents { damage: Some(damage), .. } => without_secrets(&damage),
        SecretContents { cas: Some(cas), leaf: Some(leaf), .. } => {
            let (mut written, mut twice) = (Data::new(), Data::new());
            contents::write(&cas, &leaf, &mut written).unwrap();
            let again = contents::read(&written, &PROGRAM);
            assert!(again.damage.is_none());
            contents::write(&again.cas.unwrap(), &again.leaf.unwrap(), &mut twice).unwrap();
            assert_eq!(written, twice);
            let _ = cas.policy(MADE.now);
        }
        _ => assert!(data.is_empty()),
    }
}

fn without_secrets(error: &dyn Error) {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let (shown, debug) = (error.to_string(), format!("{error:?}"));
        assert!(MADE.secrets.iter().all(|secret| !shown.contains(secret) && !debug.contains(secret)));
        cause = error.source();
    }
}
