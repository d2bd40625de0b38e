//! Time: clients that are slow to send or to read, the deadline of a review, and the end of the server.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::{Router, routing};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use gmsa_edge::server::{Listener, Serving};
use gmsa_webhook::limits::{DEFAULT_MEMORY, Limits};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, net::TcpStream, task::yield_now};
use tokio_util::sync::CancellationToken;

use super::{
    Gated, Large, MISSING, TOO_LATE, allows, answers_to, limited, one_pod, plain_review, read_answer, same_containers,
    with,
};
use crate::{
    https::Setup,
    support::{
        eventually,
        https::{post, post_head},
    },
};

#[tokio::test]
async fn a_slow_body_is_408() {
    let server = limited(Limits::of_memory(DEFAULT_MEMORY));
    let half = post_head("/mutate?timeout=1s", 10) + "{";
    let answer = answers_to(&mut server.connect().await, half).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.ends_with("\r\n\r\nthe body did not arrive within the time limit\n"), "{answer}");
}

#[tokio::test]
async fn a_connection_that_brings_no_whole_head_in_time_is_closed() {
    let serving = Serving::new(10, 10, Duration::from_millis(500));
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), serving).unwrap();
    let address = listener.address();
    let router = Router::new().route("/", routing::post(async || "answered"));
    tokio::spawn(listener.serve(router, CancellationToken::new(), Duration::ZERO));
    let whole = "POST / HTTP/1.1\r\nhost: l\r\ncontent-length: 0\r\n\r\n";
    for (sent, answers) in [("", 0), ("POST / HT", 0), (whole, 1), (&format!("{whole}POST / HT"), 1)] {
        let answer = answers_to(&mut TcpStream::connect(address).await.unwrap(), sent).await;
        assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), answers, "{sent:?}: {answer}");
    }
}

#[tokio::test]
async fn a_review_is_answered_before_the_api_server_gives_up() {
    let server = with(Gated::new()).start();
    let answer = server.post("/mutate?timeout=1s", one_pod(0)).await.json();
    assert_eq!(answer["response"]["status"], json!({"status": "Failure", "message": TOO_LATE, "code": 504}));
    assert_eq!(
        answer["response"]["auditAnnotations"],
        json!({"mutate-credential-specs": "s (contents: api)", "mutate-decision": "spec-unreadable"})
    );
}

#[tokio::test]
async fn a_large_review_whose_client_has_gone_is_dropped() {
    let (gated, server) = Gated::start(Limits { reviews: 1, ..Limits::of_memory(DEFAULT_MEMORY) });
    let large = one_pod(300 << 10);
    let held = gated.hold(&server, 1, &large).await;
    assert_eq!(server.post("/mutate?timeout=1s", large.clone()).await.status, StatusCode::SERVICE_UNAVAILABLE);
    drop(held);
    // Nothing opens the gate: another one has the only place because the first one is dropped.
    let dropped = async { while server.post("/mutate?timeout=1s", large.clone()).await.status != StatusCode::OK {} };
    tokio::time::timeout(Duration::from_secs(10), dropped).await.unwrap();
}

#[tokio::test]
async fn an_answer_is_whole_however_slowly_it_is_read() {
    let server = with(Large::new()).start();
    let mut stream = server.connect().await;
    for close in [false, true] {
        stream.write_all(&post("/mutate", &same_containers(30))).await.unwrap();
        if close {
            // The server's own end of the connection comes with the answer.
            server.closing.cancel();
        }
        let answered =
            format!("gmsa_webhook_review_duration_seconds_count{{path=\"mutate\"}} {}", 1 + i32::from(close));
        eventually("the review is answered", || server.shows(&answered)).await;
        // The server runs on this thread: it writes what has room, and waits for the reader.
        for _ in 0..1000 {
            yield_now().await;
        }
        let (head, answer) = read_answer(&mut stream).await.unwrap();
        assert_eq!(answer["response"]["allowed"], true);
        let patch = BASE64_STANDARD.decode(answer["response"]["patch"].as_str().unwrap()).unwrap();
        assert_eq!(serde_json::from_slice::<Vec<Value>>(&patch).unwrap().len(), 30);
        assert_eq!(head.contains("\r\nconnection: close\r\n"), close, "{head}");
    }
}

#[tokio::test]
async fn a_drain_answers_what_is_in_flight_and_closes_what_rests() {
    let gated = Gated::new();
    let server = with(gated.clone()).start();
    let mut resting = server.connect().await;
    assert!(allows(&mut resting).await);
    let mut kept = server.client.keep_alive(server.address).await.unwrap();
    let in_flight = tokio::spawn(async move { kept.send(&post("/mutate", &one_pod(0))).await.unwrap() });
    gated.entered().await;

    server.closing.cancel();
    assert_eq!(answers_to(&mut resting, "").await, "");
    assert!(!server.task.is_finished());
    gated.gate.add_permits(1);
    assert_eq!(in_flight.await.unwrap().message(), MISSING);
    assert_eq!(server.task.await.unwrap(), 0, "connections dropped");
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn before_the_end_every_answer_closes_its_connection_and_new_ones_are_served() {
    let setup = Setup::examples();
    let fault = Arc::clone(&setup.fault);
    let server = setup.start();
    let ends = async |connection: &mut _| {
        let answer = answers_to(connection, plain_review()).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("connection: close\r\n"), "{answer}");
    };
    let [mut first, mut second] = [server.connect().await, server.connect().await];
    assert!(allows(&mut first).await && allows(&mut second).await);
    // The same while the replica has a fault of its own.
    fault.store(true, Ordering::Release);
    ends(&mut first).await;
    fault.store(false, Ordering::Release);
    assert!(allows(&mut second).await);
    server.ending.cancel();
    let mut new = server.connect().await;
    for connection in [&mut second, &mut new] {
        ends(connection).await;
    }
    assert!(!server.task.is_finished());
}

#[tokio::test]
async fn a_drain_drops_what_does_not_finish_in_time() {
    let gated = Gated::new();
    let server = Setup { drain: Duration::from_millis(100), ..with(gated.clone()) }.start();
    let mut stream = server.connect().await;
    stream.write_all(&post("/mutate", &one_pod(0))).await.unwrap();
    gated.entered().await;
    server.closing.cancel();
    assert_eq!(server.task.await.unwrap(), 1, "connections dropped");
    assert_eq!(answers_to(&mut stream, "").await, "");
}
