//! Time: clients that are slow to send or to read, and the deadline of a review.

use std::time::Duration;

use axum::{Router, routing::post};
use gmsa_webhook::{
    limits::Limits,
    server::{Serving, listener::Listener},
};
use http::StatusCode;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_util::sync::CancellationToken;

use super::{Gated, Holds, decode, examples, one_pod, post_head, read_head, read_to_close, same_containers};
use crate::https::{Setup, review_request};

#[tokio::test]
async fn a_slow_body_is_408() {
    let server = examples().start();
    let mut stream = server.connect(&["http/1.1"]).await;
    let head =
        "POST /mutate?timeout=1s HTTP/1.1\r\nhost: l\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = read_to_close(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.ends_with("\r\n\r\nthe body did not arrive within the time limit\n"), "{answer}");
}

#[tokio::test]
async fn a_connection_that_brings_no_whole_head_in_time_is_closed() {
    let serving = Serving::new(10, 10, Duration::from_millis(500));
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), serving).unwrap();
    let address = listener.address();
    let router = Router::new().route("/", post(async || "answered"));
    tokio::spawn(listener.serve(router, CancellationToken::new(), Duration::ZERO));
    let whole = "POST / HTTP/1.1\r\nhost: l\r\ncontent-length: 0\r\n\r\n";
    for (sent, answers) in [("", 0), ("POST / HT", 0), (whole, 1), (&format!("{whole}POST / HT"), 1)] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        // Ends only when the server closes the connection.
        let answer = read_to_close(&mut stream).await;
        assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), answers, "{sent:?}: {answer}");
    }
}

#[tokio::test]
async fn a_review_has_a_second_whatever_its_timeout() {
    let gated = Gated::new();
    let server = Setup { resolver: gated.clone(), ..examples() }.start();
    let opened = async {
        gated.entered.acquire().await.unwrap().forget();
        tokio::time::sleep(Duration::from_millis(100)).await;
        gated.gate.add_permits(1);
    };
    let (answer, ()) = tokio::join!(server.post("/mutate?timeout=5ms", one_pod()), opened);
    assert_eq!(answer.json()["response"]["status"]["message"], "cred spec s does not exist");
}

#[tokio::test]
async fn a_review_is_answered_before_the_api_server_gives_up() {
    let server = Setup { resolver: Gated::new(), ..examples() }.start();
    let answer = server.post("/mutate?timeout=1s", one_pod()).await.json();
    let message = "unable to retrieve the contents of cred spec s: too late";
    assert_eq!(answer["response"]["status"], json!({"status": "Failure", "message": message, "code": 504}));
    assert_eq!(
        answer["response"]["auditAnnotations"],
        json!({"mutate-credential-specs": "s (contents: api)", "mutate-decision": "spec-unreadable"})
    );
}

#[tokio::test]
async fn a_large_review_whose_client_has_gone_is_dropped() {
    let gated = Gated::new();
    let limits = Limits { reviews: 1, ..Limits::default() };
    let server = Setup { resolver: gated.clone(), limits, ..examples() }.start();
    let large = [one_pod(), vec![b' '; 300 << 10]].concat();
    let stream = server.connect(&["http/1.1"]).await;
    let request = review_request("/mutate", large.clone());
    let client = tokio::spawn(async move {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::join!(sender.send_request(request), connection).0.map(drop)
    });
    gated.entered.acquire().await.unwrap().forget();
    assert_eq!(server.post("/mutate?timeout=1s", large.clone()).await.status, StatusCode::SERVICE_UNAVAILABLE);
    client.abort();
    // Nothing opens the gate: another one has the only place because the first one is dropped.
    let dropped = async { while server.post("/mutate?timeout=1s", large.clone()).await.status != StatusCode::OK {} };
    tokio::time::timeout(Duration::from_secs(10), dropped).await.unwrap();
}

#[tokio::test]
async fn an_answer_is_whole_however_slowly_it_is_read() {
    let server = Setup { resolver: Holds::text_of(60 << 10), ..examples() }.start();
    let body = same_containers(30);
    let mut stream = server.connect(&["http/1.1"]).await;
    for close in [false, true] {
        stream.write_all(post_head(body.len()).as_bytes()).await.unwrap();
        stream.write_all(&body).await.unwrap();
        if close {
            // The server's own end of the connection comes with the answer.
            server.closing.cancel();
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        let head = read_head(&mut stream).await;
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
        let mut answer = vec![0; length];
        stream.read_exact(&mut answer).await.unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["response"]["allowed"], true);
        let patch: Vec<Value> = serde_json::from_slice(&decode(&answer["response"]["patch"])).unwrap();
        assert_eq!(patch.len(), 30);
        assert_eq!(head.contains("\r\nconnection: close\r\n"), close, "{head}");
    }
}
