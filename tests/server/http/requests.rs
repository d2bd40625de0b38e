//! What a request must be: paths, methods, content types, bodies that are reviews, one after the other, by HTTP/1.1.

use gmsa_webhook::limits::{DEFAULT_MEMORY, Limits};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use super::{answers_to, create, limited, read_answer, refused};
use crate::support::https::post;

/// `requests.yaml` has what is sent and what is answered.
#[tokio::test]
async fn paths_methods_content_types_and_bodies() {
    let server = limited(Limits::of_memory(DEFAULT_MEMORY));
    let rows: Vec<Value> = serde_saphyr::from_str(include_str!("requests.yaml")).unwrap();
    for row in rows {
        let text = |field: &str| row[field].as_str().unwrap_or_default();
        let (body, content_type) = (text("body"), row["type"].as_str().map(|kind| format!("content-type: {kind}\r\n")));
        let (request, length) = (text("request"), body.len());
        let head = format!("{request} HTTP/1.1\r\nhost: l\r\n{}", content_type.unwrap_or_default());
        let answer = server.send(format!("{head}content-length: {length}\r\n\r\n{body}").as_bytes()).await;
        let said = String::from_utf8(answer.body).unwrap().replace(env!("CARGO_PKG_VERSION"), "VERSION");
        assert_eq!((json!(answer.status.as_u16()), said.trim_end()), (row["code"].clone(), text("said")), "{row}");
    }
    let start = "the body is not an AdmissionReview (admission.k8s.io/v1 or v1beta1): ";
    let answer = server.post("/mutate", b"{\"apiVersion\":\"\xff\"}").await;
    assert_eq!(answer, refused(400, &format!("{start}it is not UTF-8 from byte 15 on")));
}

/// Announced, met while reading, and where the client writes all of it before it reads.
#[tokio::test]
async fn bodies_over_the_limit_are_413() {
    let server = limited(Limits::of_memory(DEFAULT_MEMORY));
    let chunks = |count: usize| format!("100000\r\n{}\r\n", " ".repeat(1 << 20)).repeat(count);
    for (length, body) in [
        ("content-length: 8388609", String::new()),
        ("transfer-encoding: chunked", chunks(8) + "1\r\n \r\n"),
        ("content-length: 10485760", " ".repeat(10 << 20)),
        ("transfer-encoding: chunked", chunks(10)),
    ] {
        let head = format!("POST /mutate HTTP/1.1\r\nhost: l\r\ncontent-type: application/json\r\n{length}\r\n\r\n");
        let answer = answers_to(&mut server.connect().await, head + &body).await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        assert!(answer.ends_with("\r\n\r\nthe body is larger than 8388608 bytes\n"), "{answer}");
    }
}

#[tokio::test]
async fn reviews_that_come_close_together_are_answered_in_order() {
    let server = limited(Limits::of_memory(DEFAULT_MEMORY));
    let mut stream = server.connect().await;
    let review = |number: u8| {
        let mut review = create(&json!({}));
        review["request"]["uid"] = json!(format!("u-{number}"));
        post("/mutate", review.to_string().as_bytes())
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
    let server = limited(Limits::of_memory(DEFAULT_MEMORY));
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
async fn only_http_1_is_spoken() {
    let mut stream = limited(Limits::of_memory(DEFAULT_MEMORY)).connect().await;
    assert_eq!(answers_to(&mut stream, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await, "");
}
