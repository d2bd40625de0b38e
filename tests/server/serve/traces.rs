//! What a collector of traces is sent, and what becomes of reviews where it is away.

use std::{
    fs,
    io::{BufReader, Read, Write},
    net::TcpListener,
    process::Command,
    thread::{JoinHandle, spawn},
    time::{Duration, SystemTime},
};

use gmsa_edge::tls::{self, issue::Ca};
use rustls::{ServerConnection, StreamOwned};
use serde_json::Value;
use tokio::net::TcpSocket;

use super::{Serving, allowed, binary, curl, run};
use crate::{
    https::{DAY, authority, served},
    support::{Fault, SimulatedApi, Verb},
};

const LOST: &str = "cannot export traces: they are lost";

/// A server whose traces go to this collector. Nothing is exported before the end, unless `environment` says so.
fn serve(endpoint: &str, environment: &[(&str, &str)]) -> Serving {
    traced(&mut binary(&["serve", "--standalone", "examples"]), endpoint, environment)
}

fn traced(command: &mut Command, endpoint: &str, environment: &[(&str, &str)]) -> Serving {
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint).env("OTEL_BSP_SCHEDULE_DELAY", "3600000");
    Serving::spawn(command.envs(environment.iter().copied()))
}

fn complaints(lines: &[Value]) -> Vec<&str> {
    lines.iter().filter(|line| line["message"] == LOST).map(|line| line["cause"].as_str().unwrap()).collect()
}

/// The head and the body of the one request that a collector is sent.
fn exported(stream: impl Read + Write) -> (String, Vec<u8>) {
    let mut stream = BufReader::new(stream);
    let message = curl::message(&mut stream);
    stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
    stream.get_mut().flush().unwrap();
    message
}

/// A collector of one export, and its address; it speaks TLS where it has a certificate of an authority.
fn collector(ca: Option<&Ca>) -> (String, JoinHandle<(String, Vec<u8>)>) {
    let tls = ca.map(|ca| tls::server_config(&served(ca, "localhost"), None).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let endpoint = format!("{scheme}://localhost:{}", listener.local_addr().unwrap().port());
    let collected = spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        match tls {
            None => exported(stream),
            Some(tls) => exported(StreamOwned::new(ServerConnection::new(tls).unwrap(), stream)),
        }
    });
    (endpoint, collected)
}

fn holds(body: &[u8], part: &[u8]) -> bool {
    body.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_review_is_a_span_of_the_callers_trace() {
    let (endpoint, collected) = collector(None);
    // Without TLS, no certificate authority is needed.
    let mut serving = serve(&endpoint, &[("SSL_CERT_FILE", "/nonexistent"), ("SSL_CERT_DIR", "/nonexistent")]);
    let trace = "0123456789abcdef0123456789abcdef";
    let line =
        format!("{} -H 'traceparent: 00-{trace}-0011223344556677-01' -H 'tracestate: vendor=opaque'", serving.curl());
    allowed(&line);
    allowed(&line.replace("mutate", "validate"));
    assert!(serving.post("/mutate", b"oops").starts_with("the body is not"));
    serving.end();

    let (head, body) = collected.join().unwrap();
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
    assert!(head.to_ascii_lowercase().contains("\r\ncontent-type: application/x-protobuf\r\n"), "{head}");
    let id: Vec<u8> =
        (0..trace.len()).step_by(2).map(|at| u8::from_str_radix(&trace[at..at + 2], 16).unwrap()).collect();
    for part in [
        &id[..],
        b"\x00\x11\x22\x33\x44\x55\x66\x77",
        b"gmsa-webhook",
        b"review",
        b"/mutate",
        b"look-up",
        b"expanded",
        b"/validate",
        b"access review",
        b"authorized",
        b"outcome",
        b"refused",
        // As protobuf has it: the key, and a number of two bytes.
        b"\x0a\x04code\x12\x03\x18\x90\x03",
    ] {
        assert!(holds(&body, part), "{}", String::from_utf8_lossy(part));
    }
    assert!(!holds(&body, b"DomainJoinConfig"), "contents are not exported");
    assert!(!holds(&body, b"opaque"), "spans that wait keep nothing that a client can make long");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_that_fails_is_a_warning_and_an_error_in_its_span() {
    let api = SimulatedApi::start().await;
    api.fault(Verb::Create, "/localsubjectaccessreviews", usize::MAX, Fault::forbidden());
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("kubeconfig"), api.kubeconfig()).unwrap();
    assert_eq!(run(&mut binary(&["certs", "issue", &path(""), "--name", "127.0.0.1"])).0, 0);
    let (endpoint, collected) = collector(None);
    let pair = ["--tls-cert", &path("tls.crt"), "--tls-key", &path("tls.key"), "--shutdown-delay", "0s"];
    let environment = [
        ("KUBECONFIG", &*path("kubeconfig")),
        ("LOG_LEVEL", "info,gmsa_webhook::server=warn"),
        ("OTEL_RESOURCE_ATTRIBUTES", "k8s.pod.name=web-0,host.name=given"),
    ];
    let serving = traced(&mut binary(&pair), &endpoint, &environment);
    let line = format!(
        "curl --cacert '{}' -H 'Content-Type: application/json' --data-binary @examples/review-validate.json \
         https://{}/validate",
        path("ca.crt"),
        serving.address("address")
    );
    let answer: Value = serde_json::from_str(&curl::run(&line)).unwrap();
    assert_eq!(answer["response"]["status"]["code"], 500, "{answer}");
    let lines = serving.end();
    let denied = lines.iter().find(|line| line["message"] == "denied").unwrap();
    assert_eq!((&denied["level"], &denied["code"]), (&"WARN".into(), &500.into()), "{denied}");
    let (_, body) = collected.join().unwrap();
    // The status of the span, as protobuf has it: its message, and the code of an error.
    let reason = denied["reason"].as_str().unwrap();
    let length = |text: &str| u8::try_from(text.len()).unwrap();
    let status = [&[0x7a, length(reason) + 4, 0x12, length(reason)], reason.as_bytes(), b"\x18\x02"].concat();
    assert!(holds(&body, &status), "{}", body.escape_ascii());
    for (name, value) in [
        ("service.name", "gmsa-webhook"),
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("host.name", "given"),
        ("k8s.pod.name", "web-0"),
    ] {
        let attribute =
            [&[0x0a, length(name)], name.as_bytes(), &[0x12, length(value) + 2, 0x0a, length(value)], value.as_bytes()];
        assert!(holds(&body, &attribute.concat()), "{name}: {}", body.escape_ascii());
    }
    // A UUID of version 4.
    let (name, rest) = (b"\x0a\x13service.instance.id\x12\x26\x0a\x24", 36);
    let at = body.windows(name.len()).position(|window| window == name).expect("an instance has an id") + name.len();
    let id = std::str::from_utf8(&body[at..at + rest]).unwrap();
    assert_eq!(id.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{id}");
    assert_eq!(&id[14..15], "4", "{id}");
}

/// The image has no certificate authorities: built-in ones do, and an untrusted collector costs only spans.
#[test]
fn a_collector_that_cannot_be_trusted_is_sent_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (ca, other) = (authority(), Ca::generate("other", SystemTime::now(), DAY).unwrap());
    fs::write(path("own"), ca.cert_pem()).unwrap();
    fs::write(path("other"), other.cert_pem()).unwrap();
    for (file, is_trusted) in [("own", true), ("other", false), ("missing", false)] {
        let (endpoint, collected) = collector(Some(&ca));
        let mut serving = serve(&endpoint, &[("SSL_CERT_FILE", &path(file)), ("SSL_CERT_DIR", "/nonexistent")]);
        allowed(&serving.curl());
        let lines = serving.end();
        if is_trusted {
            assert_eq!(complaints(&lines), Vec::<&str>::new());
            assert!(holds(&collected.join().unwrap().1, b"expanded"));
        } else {
            let [cause] = complaints(&lines)[..] else { panic!("{lines:?}") };
            assert!(cause.contains("invalid peer certificate: UnknownIssuer"), "{cause}");
            assert!(collected.join().is_err(), "nothing can be read");
        }
    }
}

#[test]
fn a_collector_that_is_away_costs_one_line_and_no_review() {
    // Bound, so that no other process gets the port, and not listened on.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let endpoint = format!("http://{}", socket.local_addr().unwrap());
    let mut serving = serve(&endpoint, &[("OTEL_BSP_SCHEDULE_DELAY", "20")]);
    let line = serving.curl();
    allowed(&line);
    let cause = serving.until(LOST)["cause"].as_str().unwrap().to_owned();
    assert_eq!(cause, "client error (Connect): tcp connect error: Connection refused (os error 111)");
    // Posting one takes longer than the failed export of the one before.
    for _ in 0..5 {
        allowed(&line);
    }
    assert_eq!(complaints(&serving.end()), [cause]);
}

#[test]
fn a_collector_that_never_answers_delays_nothing() {
    // Connections are made, and none is accepted.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let mut serving = serve(&endpoint, &[("OTEL_BSP_SCHEDULE_DELAY", "20"), ("OTEL_BSP_MAX_QUEUE_SIZE", "1")]);
    let line = serving.curl();
    for _ in 0..10 {
        allowed(&line);
    }
    // Nor is the end held up for as long as an export may take.
    let begun = std::time::Instant::now();
    serving.end();
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}
