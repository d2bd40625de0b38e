//! When a kept connection ends for the certificate of its client. The clock is tokio's paused one.

use std::{fs, time::SystemTime};

use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tokio::time::{Instant, advance};

use super::*;

const START: Duration = Duration::from_secs(20_000 * 86_400);
const HOUR: Duration = Duration::from_secs(3600);

/// A certificate that its CA signed, and what signs with its key.
struct Signed {
    der: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate that is valid from an hour before [`START`] until `lifetime` after it: of a client, or of a CA; signed by itself
/// where there is no issuer.
fn signed(is_ca: bool, lifetime: Duration, issuer: Option<&Signed>) -> Signed {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    let start = SystemTime::UNIX_EPOCH + START;
    (params.not_before, params.not_after) = ((start - HOUR).into(), (start + lifetime).into());
    if is_ca {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    } else {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    }
    params.distinguished_name.push(rcgen::DnType::CommonName, format!("{is_ca} {lifetime:?}"));
    let cert = match issuer {
        Some(by) => params.signed_by(&key, &by.issuer).unwrap(),
        None => params.self_signed(&key).unwrap(),
    };
    Signed { der: cert.der().clone(), issuer: Issuer::new(params, key) }
}

/// How long a connection with this chain stays, where the root is trusted and the clock is ahead by `jump` from the second second on.
async fn kept_for(root: &Signed, chain: &[&Signed], jump: Duration) -> Duration {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("client-ca.crt");
    fs::write(&file, [root.der.clone()].into_iter().collect::<CaBundle>().to_pem()).unwrap();
    let clients = ClientAuth::load(file, Vec::new()).unwrap();
    let chain: Vec<CertificateDer<'_>> = chain.iter().map(|signed| signed.der.clone()).collect();
    let opened = Instant::now();
    clients
        .revoked(&chain, || {
            let jump = if opened.elapsed() < Duration::from_secs(2) { Duration::ZERO } else { jump };
            UnixTime::since_unix_epoch(START + opened.elapsed() + jump)
        })
        .await;
    opened.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_kept_connection_ends_with_the_first_certificate_that_it_relies_on() {
    let second = Duration::from_secs(1);
    let root = signed(true, 10 * HOUR, None);
    let [short_ca, long_ca] = [HOUR / 2, 9 * HOUR].map(|lifetime| signed(true, lifetime, Some(&root)));
    let direct = signed(false, HOUR, Some(&root));
    let [by_short, by_long] = [&short_ca, &long_ca].map(|ca| signed(false, HOUR, Some(ca)));
    for (chain, expected) in [
        (&[&direct][..], HOUR),
        (&[&by_short, &short_ca], HOUR / 2),
        (&[&by_long, &long_ca], HOUR),
        // The other intermediate certificate vouches for nobody here: its end changes nothing.
        (&[&by_long, &long_ca, &short_ca], HOUR),
    ] {
        assert_eq!(kept_for(&root, chain, Duration::ZERO).await, expected + second);
    }
    // The clock jumps over the end: the next check sees it.
    assert_eq!(kept_for(&root, &[&direct], 2 * HOUR).await, CLOCK_CHECK);
    // It jumps towards the end.
    assert_eq!(kept_for(&root, &[&direct], HOUR / 2).await, HOUR / 2 + second);
    advance(second).await;
    assert_eq!(kept_for(&signed(true, HOUR, None), &[&direct], Duration::ZERO).await, Duration::ZERO);
}
