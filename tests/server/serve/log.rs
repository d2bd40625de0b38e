//! The log of the built server, and what becomes of reviews where it is not read.

use std::{
    fs,
    io::Write as _,
    net::{Shutdown, TcpStream},
    thread::yield_now,
    time::Duration,
};

use serde_json::Value;
use socket2::SockRef;

use super::{JSON, Serving, curl};

/// More reviews than lines fit into the pipe and wait in the server, in requests that come together.
const REVIEWS: usize = 1_900;
const TOGETHER: usize = 50;

#[test]
fn a_log_that_is_not_read_keeps_no_review_waiting() {
    let mut serving = Serving::start(&["--standalone", "examples"]);
    serving.curl();
    let mut stream = serving.connect();
    let request = curl::post("/mutate", JSON, &fs::read("examples/review-mutate.json").unwrap());
    for _ in 0..REVIEWS / TOGETHER {
        stream.get_mut().write_all(&request.repeat(TOGETHER)).unwrap();
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
    let lines = serving.end();
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
    let lines = serving.end();
    let of_connections = lines.iter().filter(|line| line["peer"].is_string());
    assert_eq!(of_connections.map(|line| line["message"].clone()).collect::<Vec<_>>(), ["TLS handshake failed"]);
}
