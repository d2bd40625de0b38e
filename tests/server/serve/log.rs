//! The log of the built server, and what becomes of reviews where it is not read.

use std::{
    fs,
    io::{BufReader, Write as _},
    net::{Shutdown, TcpStream},
    path::Path,
    thread::yield_now,
    time::Duration,
};

use rustls::StreamOwned;
use serde_json::Value;
use socket2::SockRef;

use super::{Serving, curl};

/// More reviews than lines fit into the pipe and wait in the server, in requests that come together.
const REVIEWS: usize = 1_900;
const TOGETHER: usize = 50;

#[test]
fn a_log_that_is_not_read_keeps_no_review_waiting() {
    let mut serving = Serving::start(&["--standalone", "examples"]);
    serving.curl();
    let ca = serving.lines.iter().find_map(|line| line["ca"].as_str()).unwrap();
    let stream = TcpStream::connect(serving.address("address")).unwrap();
    let mut stream = BufReader::new(StreamOwned::new(curl::client(Path::new(ca), "localhost"), stream));
    let body = fs::read_to_string("examples/review-mutate.json").unwrap();
    let request = format!(
        "POST /mutate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    for _ in 0..REVIEWS / TOGETHER {
        stream.get_mut().write_all(request.repeat(TOGETHER).as_bytes()).unwrap();
        for _ in 0..TOGETHER {
            let answer: Value = serde_json::from_str(&curl::answer(&mut stream)).unwrap();
            assert_eq!(answer["response"]["patchType"], "JSONPatch");
        }
    }
    serving.until("log lines were dropped: the log is not read fast enough");
    // Every review has a line that is written or counted. Until the lines that wait are read, there is no room for others.
    let mut left = REVIEWS - accounted_for(&serving.lines);
    while left > 0 {
        left -= accounted_for(&[serving.until("")]);
    }
    serving.signal("TERM");
    let (status, lines) = serving.last_words();
    assert_eq!(status.code(), Some(0));
    assert_eq!(lines.last().unwrap()["message"], "ended");
    assert_eq!(accounted_for(&lines), REVIEWS);
}

/// The lines of reviews that were written, and those that were dropped.
fn accounted_for(lines: &[Value]) -> usize {
    let written = lines.iter().filter(|line| line["message"] == "allowed").count();
    let dropped: u64 = lines.iter().filter_map(|line| line["dropped"].as_u64()).sum();
    written + usize::try_from(dropped).unwrap()
}

/// A load balancer connects and closes, in one of these ways, every few seconds: that is no failed handshake, and no line of the log. A byte is one.
#[test]
fn health_checks_by_tcp_are_no_failed_handshakes() {
    let serving = Serving::start(&["--standalone", "examples"]);
    let connect = || TcpStream::connect(serving.address("address")).unwrap();
    for _ in 0..10 {
        drop(connect());
        let reset = connect();
        SockRef::from(&reset).set_linger(Some(Duration::ZERO)).unwrap();
        drop(reset);
        connect().shutdown(Shutdown::Write).unwrap();
    }
    let until = |line: &str| {
        while !serving.admin("/metrics").1.lines().any(|shown| shown == line) {
            yield_now();
        }
    };
    until("gmsa_webhook_connections_unserved_total{reason=\"closed-by-client\"} 30");
    until("gmsa_webhook_tls_handshake_failures_total 0");
    connect().write_all(b"x").unwrap();
    until("gmsa_webhook_tls_handshake_failures_total 1");
    until("gmsa_webhook_connections_unserved_total{reason=\"closed-by-client\"} 30");
    serving.signal("TERM");
    let (_, lines) = serving.last_words();
    let of_connections = lines.iter().filter(|line| line["peer"].is_string());
    assert_eq!(of_connections.map(|line| line["message"].clone()).collect::<Vec<_>>(), ["TLS handshake failed"]);
}
