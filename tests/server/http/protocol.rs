//! HTTP/1.1 on one connection: pipelined requests, bodies that no handler reads, other protocols.

use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use super::{create, examples, post_head, read_answer, read_to_close};

#[tokio::test]
async fn reviews_that_come_close_together_are_answered_in_order() {
    let server = examples().start();
    let mut stream = server.connect(&["http/1.1"]).await;
    let review = |number: u8| {
        let mut review = create(&json!({}));
        review["request"]["uid"] = json!(format!("u-{number}"));
        let body = serde_json::to_string(&review).unwrap();
        post_head(body.len()) + &body
    };
    let reviews = [review(1), review(2), review(3)].concat();
    let (first, rest) = reviews.split_at(review(1).len() + 20);
    stream.write_all(first.as_bytes()).await.unwrap();
    let mut uids = vec![read_answer(&mut stream).await.unwrap()["response"]["uid"].clone()];
    stream.write_all(rest.as_bytes()).await.unwrap();
    for _ in 0..2 {
        uids.push(read_answer(&mut stream).await.unwrap()["response"]["uid"].clone());
    }
    assert_eq!(uids, ["u-1", "u-2", "u-3"]);
}

#[tokio::test]
async fn only_the_answer_to_a_review_keeps_its_connection() {
    let server = examples().start();
    for (request, status) in [
        ("GET /health", "204 No Content"),
        ("GET /info", "200 OK"),
        ("HEAD /info", "200 OK"),
        ("GET /missing", "404 Not Found"),
        ("POST /mutate", "415 Unsupported Media Type"),
    ] {
        let mut stream = server.connect(&["http/1.1"]).await;
        let requests = format!("{request} HTTP/1.1\r\nhost: l\r\n\r\n").repeat(3);
        stream.write_all(requests.as_bytes()).await.unwrap();
        let answers = read_to_close(&mut stream).await;
        assert_eq!(answers.matches(&format!("HTTP/1.1 {status}\r\n")).count(), 1, "{answers}");
        assert!(answers.contains("connection: close\r\n"), "{answers}");
    }
}

#[tokio::test]
async fn a_body_that_is_not_read_is_never_taken_for_a_request() {
    let server = examples().start();
    let hidden = "GET /info HTTP/1.1\r\nhost: l\r\n\r\n";
    for path in ["/missing", "/health", "/info"] {
        let mut stream = server.connect(&["http/1.1"]).await;
        let request = format!("GET {path} HTTP/1.1\r\nhost: l\r\ncontent-length: {}\r\n\r\n{hidden}", hidden.len());
        stream.write_all(request.as_bytes()).await.unwrap();
        let answers = read_to_close(&mut stream).await;
        assert_eq!(answers.matches("HTTP/1.1 ").count(), 1, "{answers}");
        assert!(answers.contains("connection: close\r\n"), "{answers}");
    }
}

#[tokio::test]
async fn only_http_1_is_offered() {
    let server = examples().start();
    let stream = server.connect(&["h2", "http/1.1"]).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    let mut stream = server.connect(&[]).await;
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    let answer = read_to_close(&mut stream).await;
    assert_eq!(answer, "");
}
