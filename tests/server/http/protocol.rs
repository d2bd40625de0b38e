//! HTTP/1.1 on one connection: pipelined requests, bodies that no handler reads, other protocols.

use gmsa_webhook::limits::Limits;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use super::{answers_to, create, limited, read_answer, request};

#[tokio::test]
async fn reviews_that_come_close_together_are_answered_in_order() {
    let server = limited(Limits::default());
    let mut stream = server.connect().await;
    let review = |number: u8| {
        let mut review = create(&json!({}));
        review["request"]["uid"] = json!(format!("u-{number}"));
        request(review.to_string().as_bytes())
    };
    let reviews = [review(1), review(2), review(3)].concat();
    let (first, rest) = reviews.split_at(review(1).len() + 20);
    for (sent, answered) in [(first, &["u-1"][..]), (rest, &["u-2", "u-3"])] {
        stream.write_all(sent).await.unwrap();
        for uid in answered {
            assert_eq!(read_answer(&mut stream).await.unwrap().1["response"]["uid"], *uid);
        }
    }
}

/// Nothing behind such a request is answered, and its body is never taken for a request.
#[tokio::test]
async fn only_the_answer_to_a_review_keeps_its_connection() {
    let server = limited(Limits::default());
    let hidden = "GET /info HTTP/1.1\r\nhost: l\r\n\r\n";
    for (request, status) in [
        ("GET /health", "204 No Content"),
        ("GET /info", "200 OK"),
        ("HEAD /info", "200 OK"),
        ("GET /missing", "404 Not Found"),
        ("POST /mutate", "415 Unsupported Media Type"),
    ] {
        let with_body = format!("content-length: {}\r\n\r\n{hidden}", hidden.len());
        for rest in ["\r\n", &with_body] {
            let requests = format!("{request} HTTP/1.1\r\nhost: l\r\n{rest}").repeat(3);
            let answers = answers_to(&mut server.connect().await, requests).await;
            assert!(answers.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{request}: {answers}");
            assert_eq!(answers.matches("HTTP/1.1 ").count(), 1, "{request}: {answers}");
            assert!(answers.contains("connection: close\r\n"), "{request}: {answers}");
        }
    }
}

#[tokio::test]
async fn only_http_1_is_offered() {
    let server = limited(Limits::default());
    let client = server.client.clone();
    let stream = client.clone().offering(&["h2", "http/1.1"]).connect(server.address).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    let mut stream = client.offering(&[]).connect(server.address).await.unwrap();
    assert_eq!(answers_to(&mut stream, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await, "");
}
