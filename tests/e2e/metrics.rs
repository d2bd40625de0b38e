//! What a scraper reads: values that make sense. The families and their labels are those of docs/metrics.md, which the chart's tests make.

use std::{
    io::Write as _,
    net::TcpStream,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::json;

use crate::{
    control_plane::{Client, LIFETIME, SERVICE, until},
    pods::{PATH, gmsa, pod},
    world::{USER, VISITOR, World},
};

/// As many as there are.
const MANY: f64 = f64::MAX;

pub async fn every_family_has_sensible_values(world: &mut World) {
    // Allowed, then allowed by memory; denied; unknown.
    for (name, service_account, spec) in
        [("counted", USER, "web"), ("again", USER, "web"), ("not", VISITOR, "web"), ("unknown", USER, "unknown")]
    {
        let pod = pod(name, service_account, &json!({"securityContext": gmsa(spec)}));
        assert_eq!(world.client().create(PATH, &pod).await.is_ok(), matches!(name, "counted" | "again"));
    }
    // What is no review, and what is no handshake.
    let mut config = kube::Config::new(format!("https://{}", world.webhook.address).parse().unwrap());
    config.root_cert = Some(vec![world.ca.der.to_vec()]);
    config.tls_server_name = Some(format!("{SERVICE}.{SERVICE}.svc"));
    assert_eq!(Client::with(config).text("/mutate").await.unwrap_err().code, 405);
    let mut stray = TcpStream::connect(world.webhook.address).unwrap();
    stray.write_all(b"GET /health HTTP/1.0\r\n\r\n").unwrap();
    // A scenario before this one may have ended the watch.
    let scrape = until("the failed handshake is counted, and the watch synced", async || {
        let scrape = world.webhook.scrape().await;
        let is_synced = scrape.sum("gmsa_webhook_spec_watch_state", &[r#"state="synced""#]) == 1.0;
        (is_synced && scrape.sum("gmsa_webhook_tls_handshake_failures_total", &[]) > 0.0).then_some(scrape)
    })
    .await;

    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    let expiry = now + LIFETIME.as_secs_f64();
    // Nothing need have happened since the first scenario; the API server keeps its connection open.
    for (name, labels, least, most) in [
        ("gmsa_webhook_reviews_total", r#"path="mutate" outcome="allowed" reason="expanded""#, 1.0, MANY),
        ("gmsa_webhook_reviews_total", r#"path="mutate" outcome="denied" reason="spec-missing""#, 1.0, MANY),
        ("gmsa_webhook_reviews_total", r#"path="validate" outcome="allowed" reason="authorized""#, 1.0, MANY),
        ("gmsa_webhook_reviews_total", r#"path="validate" outcome="denied" reason="not-authorized""#, 1.0, MANY),
        ("gmsa_webhook_reviews_in_flight", "", 0.0, 0.0),
        ("gmsa_webhook_spec_lookups_total", r#"source="cache" outcome="found""#, 2.0, MANY),
        ("gmsa_webhook_spec_lookups_total", r#"source="api" outcome="missing""#, 1.0, MANY),
        ("gmsa_webhook_spec_lookups_total", r#"source="cache" outcome="missing""#, 0.0, 0.0),
        ("gmsa_webhook_access_reviews_total", r#"source="api" outcome="allowed""#, 1.0, MANY),
        ("gmsa_webhook_access_reviews_total", r#"source="remembered" outcome="allowed""#, 1.0, MANY),
        ("gmsa_webhook_access_reviews_total", r#"source="api" outcome="denied""#, 1.0, MANY),
        ("gmsa_webhook_access_reviews_total", r#"source="remembered" outcome="denied""#, 0.0, 0.0),
        ("gmsa_webhook_specs_known", "", 2.0, MANY),
        ("gmsa_webhook_spec_watch_state", "", 1.0, 1.0),
        ("gmsa_webhook_spec_watch_state", r#"state="synced""#, 1.0, 1.0),
        ("gmsa_webhook_spec_watch_event_age_seconds", "", 0.0, 1200.0),
        ("gmsa_webhook_connections", "", 1.0, 20.0),
        ("gmsa_webhook_requests_refused_total", r#"code="405""#, 1.0, MANY),
        ("gmsa_webhook_certificate_expiry_timestamp_seconds", "", expiry - 3600.0, expiry),
        ("gmsa_webhook_certificate_reloads_total", r#"outcome="served""#, 1.0, 1.0),
        ("gmsa_webhook_certificate_reloads_total", r#"outcome="refused""#, 0.0, 0.0),
        ("process_cpu_seconds_total", "", 0.001, MANY),
        ("process_resident_memory_bytes", "", 1e6, 256e6),
        ("process_open_fds", "", 3.0, scrape.sum("process_max_fds", &[])),
        ("process_start_time_seconds", "", now - 3600.0, now),
    ] {
        let value = scrape.sum(name, &labels.split(' ').collect::<Vec<_>>());
        assert!((least..=most).contains(&value), "{name} {labels}: {value}");
    }
    for path in [r#"path="mutate""#, r#"path="validate""#] {
        let duration = |what: &str, more: &[&str]| {
            scrape.sum(&format!("gmsa_webhook_review_duration_seconds_{what}"), &[&[path], more].concat())
        };
        let number = scrape.sum("gmsa_webhook_reviews_total", &[path]);
        for bound in [r#"le="+Inf""#, r#"le="10.0""#] {
            assert_eq!((duration("count", &[]), duration("bucket", &[bound])), (number, number));
        }
        let mean = duration("sum", &[]) / number;
        assert!(mean > 0.0 && mean < 10.0, "{mean} s");
    }
}
