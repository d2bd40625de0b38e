//! What `doctor` says of the caBundle and of the served certificate.

use serde_json::json;

use super::{
    super::{
        cluster::{configurations, healthy, run},
        support::{Fault, SimulatedApi, Verb},
        text,
    },
    NAME, complaints,
};

/// A CA that is valid from a number of days ago until a number of days from now, in a bundle as configurations hold it.
fn bundle_until(days: i64) -> String {
    let mut params = rcgen::CertificateParams::new(vec![]).unwrap();
    let now = time::OffsetDateTime::now_utc();
    params.not_before = now - time::Duration::days(365);
    params.not_after = now + time::Duration::days(days) + time::Duration::hours(1);
    let ca = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
    base64::Engine::encode(&base64::prelude::BASE64_STANDARD, ca.pem())
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_that_end_are_found() {
    for (bundle, complaint) in [
        (bundle_until(-1), format!("fail certificate: the caBundle of {NAME} has expired [certificate-expiry]")),
        (bundle_until(13), format!("warn certificate: the caBundle of {NAME} expires in 13 days [certificate-expiry]")),
        (
            "bm9uZQ==".to_owned(),
            format!("fail certificate: the caBundle of {NAME} contains no certificate [ca-bundle]"),
        ),
    ] {
        let found = complaints(|api| {
            configurations(api, |webhook| webhook["clientConfig"]["caBundle"] = json!(bundle));
        })
        .await;
        assert_eq!(found, [complaint.clone(), complaint]);
    }
}

/// What a replica says on its admin port of a certificate that is valid for this many more days.
fn serves_until(api: &SimulatedApi, days: i64) {
    let end = time::OffsetDateTime::now_utc() + time::Duration::days(days) + time::Duration::hours(1);
    let metrics = format!("gmsa_webhook_certificate_expiry_timestamp_seconds {}\n# EOF\n", end.unix_timestamp());
    api.fault(Verb::Get, "/pods/webhook-a:9090/proxy/metrics", usize::MAX, Fault::Text(200, metrics.leak()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_served_certificate_is_checked_where_the_metrics_can_be_read() {
    for (days, complaint) in [
        (-1, "fail certificate: the certificate that webhook-a serves has expired [certificate-expiry]"),
        (6, "warn certificate: the certificate that webhook-a serves expires in 6 days [certificate-expiry]"),
    ] {
        assert_eq!(complaints(|api| serves_until(api, days)).await, [complaint]);
    }

    let api = healthy().await;
    serves_until(&api, 7);
    let output = run(&api, &["doctor"]).await;
    let line = "\npass  certificate        the certificate that webhook-a serves is valid for 7 days\n";
    assert!(text(&output.stdout).contains(line), "{}", text(&output.stdout));
    assert_eq!(output.status.code(), Some(0));
}
