//! What a scraper reads: every family, with values that make sense.

use std::{
    collections::BTreeSet,
    io::{Read as _, Write as _},
    net::TcpStream,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::json;

use crate::{
    control_plane::{Client, LIFETIME, PATIENCE, SERVICE, SPECS, Scrape, until},
    pods::{gmsa, pod},
    world::{USER, VISITOR, World},
};

/// Every family, with its type.
const FAMILIES: &[(&str, &str)] = &[
    ("gmsa_webhook_access_reviews_total", "counter"),
    ("gmsa_webhook_build_info", "gauge"),
    ("gmsa_webhook_certificate_expiry_timestamp_seconds", "gauge"),
    ("gmsa_webhook_certificate_refused", "gauge"),
    ("gmsa_webhook_certificate_reloads_total", "counter"),
    ("gmsa_webhook_certificate_steps_total", "counter"),
    ("gmsa_webhook_connections", "gauge"),
    ("gmsa_webhook_connections_unserved_total", "counter"),
    ("gmsa_webhook_connections_waiting", "gauge"),
    ("gmsa_webhook_requests_refused_total", "counter"),
    ("gmsa_webhook_review_duration_seconds", "histogram"),
    ("gmsa_webhook_reviews_total", "counter"),
    ("gmsa_webhook_reviews_in_flight", "gauge"),
    ("gmsa_webhook_spec_lookups_total", "counter"),
    ("gmsa_webhook_spec_watch_event_age_seconds", "gauge"),
    ("gmsa_webhook_spec_watch_state", "gauge"),
    ("gmsa_webhook_specs_known", "gauge"),
    ("gmsa_webhook_tls_handshake_failures_total", "counter"),
    ("process_cpu_seconds_total", "counter"),
    ("process_max_fds", "gauge"),
    ("process_open_fds", "gauge"),
    ("process_resident_memory_bytes", "gauge"),
    ("process_start_time_seconds", "gauge"),
];

pub async fn every_family_has_sensible_values(world: &mut World) {
    // Allowed, then allowed by memory; denied; unknown.
    for (name, service_account, spec) in
        [("counted", USER, "web"), ("again", USER, "web"), ("not", VISITOR, "web"), ("unknown", USER, "unknown")]
    {
        let pod = pod(name, service_account, &json!({"securityContext": gmsa(spec)}));
        assert_eq!(world.client().create(crate::pods::PATH, &pod).await.is_ok(), matches!(name, "counted" | "again"));
    }
    make_mistakes(world).await;
    let scrape = until("the failed handshake is counted", async || {
        let scrape = world.webhook.scrape().await;
        (scrape.sum("gmsa_webhook_tls_handshake_failures_total", &[]) > 0.0).then_some(scrape)
    })
    .await;

    let expected: BTreeSet<_> = FAMILIES.iter().copied().collect();
    assert_eq!(scrape.families().into_iter().collect::<BTreeSet<_>>(), expected);
    of_reviews(&scrape);
    of_sources(&scrape, world).await;
    of_the_server(&scrape);
    of_the_process(&scrape);
}

/// Sends what is no review, and what is no handshake.
async fn make_mistakes(world: &World) {
    let mut config = kube::Config::new(format!("https://{}", world.webhook.address).parse().unwrap());
    config.root_cert = Some(vec![world.ca.cert_der().to_vec()]);
    config.tls_server_name = Some(format!("{SERVICE}.{SERVICE}.svc"));
    assert_eq!(Client::with(config).text("/mutate").await.unwrap_err().code, 405);
    let mut stream = TcpStream::connect(world.webhook.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET /health HTTP/1.0\r\n\r\n").unwrap();
    // Whether it ends with an alert or a reset is not our part.
    let _ = stream.read_to_end(&mut Vec::new());
}

fn of_reviews(scrape: &Scrape) {
    let reviews = |labels: &[&str]| scrape.sum("gmsa_webhook_reviews_total", labels);
    for labels in [
        [r#"path="mutate""#, r#"operation="create""#, r#"outcome="allowed""#, r#"reason="expanded""#],
        [r#"path="mutate""#, r#"operation="create""#, r#"outcome="denied""#, r#"reason="spec-missing""#],
        [r#"path="validate""#, r#"operation="create""#, r#"outcome="allowed""#, r#"reason="authorized""#],
        [r#"path="validate""#, r#"operation="create""#, r#"outcome="denied""#, r#"reason="not-authorized""#],
    ] {
        assert!(reviews(&labels) >= 1.0, "{labels:?}");
    }
    for path in [r#"path="mutate""#, r#"path="validate""#] {
        let duration = |what: &str, more: &[&str]| {
            scrape.sum(&format!("gmsa_webhook_review_duration_seconds_{what}"), &[&[path], more].concat())
        };
        let number = reviews(&[path]);
        assert_eq!(duration("count", &[]), number);
        assert_eq!(duration("bucket", &[r#"le="+Inf""#]), number);
        assert_eq!(duration("bucket", &[r#"le="10.0""#]), number);
        let mean = duration("sum", &[]) / number;
        assert!(mean > 0.0 && mean < 10.0, "{mean} s");
    }
    assert_eq!(scrape.sum("gmsa_webhook_reviews_in_flight", &[]), 0.0);
}

async fn of_sources(scrape: &Scrape, world: &World) {
    let lookups = |labels: &[&str]| scrape.sum("gmsa_webhook_spec_lookups_total", labels);
    assert!(lookups(&[r#"source="cache""#, r#"outcome="found""#]) >= 2.0);
    assert!(lookups(&[r#"source="api""#, r#"outcome="missing""#]) >= 1.0);
    assert_eq!(lookups(&[r#"source="cache""#, r#"outcome="missing""#]), 0.0);
    let checks = |labels: &[&str]| scrape.sum("gmsa_webhook_access_reviews_total", labels);
    for labels in [
        [r#"source="api""#, r#"outcome="allowed""#],
        [r#"source="remembered""#, r#"outcome="allowed""#],
        [r#"source="api""#, r#"outcome="denied""#],
    ] {
        assert!(checks(&labels) >= 1.0, "{labels:?}");
    }
    assert_eq!(checks(&[r#"source="remembered""#, r#"outcome="denied""#]), 0.0);

    let specs = world.client().get(SPECS).await.unwrap();
    let state = |labels: &[&str]| scrape.sum("gmsa_webhook_spec_watch_state", labels);
    assert_eq!(scrape.sum("gmsa_webhook_specs_known", &[]), count(specs["items"].as_array().unwrap().len()));
    assert_eq!((state(&[]), state(&[r#"state="synced""#])), (1.0, 1.0));
    let age = scrape.sum("gmsa_webhook_spec_watch_event_age_seconds", &[]);
    // Nothing need have happened since the first scenario.
    assert!((0.0..1200.0).contains(&age), "{age} s");
}

fn of_the_server(scrape: &Scrape) {
    assert_eq!(scrape.sum("gmsa_webhook_build_info", &[concat!(r#"version=""#, env!("CARGO_PKG_VERSION"), '"')]), 1.0);
    // The API server keeps its connection open.
    let connections = scrape.sum("gmsa_webhook_connections", &[]);
    assert!((1.0..20.0).contains(&connections), "{connections} connections");
    assert!(scrape.sum("gmsa_webhook_requests_refused_total", &[r#"code="405""#]) >= 1.0);
    let expires_in = scrape.sum("gmsa_webhook_certificate_expiry_timestamp_seconds", &[]) - now();
    let (earliest, latest) = (LIFETIME.as_secs_f64() - 3600.0, LIFETIME.as_secs_f64());
    assert!((earliest..latest).contains(&expires_in), "in {expires_in} s");
    let reloads = |outcome: &str| scrape.sum("gmsa_webhook_certificate_reloads_total", &[outcome]);
    assert_eq!((reloads(r#"outcome="served""#), reloads(r#"outcome="refused""#)), (1.0, 0.0));
}

fn of_the_process(scrape: &Scrape) {
    let process = |what: &str| scrape.sum(&format!("process_{what}"), &[]);
    assert!(process("cpu_seconds_total") > 0.0);
    let memory = process("resident_memory_bytes");
    assert!((1e6..256e6).contains(&memory), "{memory} bytes");
    let files = process("open_fds");
    assert!((3.0..process("max_fds")).contains(&files), "{files} files");
    let age = now() - process("start_time_seconds");
    assert!((0.0..3600.0).contains(&age), "{age} s");
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

/// A number of things, as metrics count.
fn count(things: usize) -> f64 {
    f64::from(u32::try_from(things).unwrap())
}
