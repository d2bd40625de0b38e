//! What a request must be: paths, methods, content types, bodies that are reviews, one after the other, by HTTP/1.1.

use gmsa_webhook::limits::Limits;
use http::StatusCode;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use super::{answers_to, create, limited, read_answer, refused};
use crate::support::https::{Answer, post};

#[tokio::test]
async fn paths_methods_and_content_types() {
    let server = limited(Limits::default());
    assert_eq!(server.get("/health").await, Answer { status: StatusCode::NO_CONTENT, body: Vec::new() });
    let info = server.get("/info").await;
    assert_eq!((info.status, info.json()), (StatusCode::OK, json!({"version": env!("CARGO_PKG_VERSION")})));
    let paths = "/mutate, /validate, /validate-workload, /validate-credspec, /health and /info";
    let missing = format!("there is no path \"/nothing\": this webhook serves {paths}");
    assert_eq!(server.get("/nothing?x=y").await, refused(404, &missing));
    assert_eq!(server.get("/mutate").await, refused(405, "/mutate does not take GET"));
    assert_eq!(server.post("/health", "").await, refused(405, "/health does not take POST"));
    let wrong = server.post("/mutate?timeout=soon", "{}").await;
    let units = "a duration above 0 with units, such as 10s, 1m30s or 500ms";
    assert_eq!(wrong, refused(400, &format!("the query parameter timeout must be {units}")));
    let posted = async |content_type: &str, body: &str| {
        let head =
            format!("POST /validate HTTP/1.1\r\nhost: l\r\n{content_type}content-length: {}\r\n\r\n", body.len());
        server.send((head + body).as_bytes()).await
    };
    for content_type in ["content-type: text/plain\r\n", "content-type: application/jsonp\r\n", ""] {
        let answer = posted(content_type, "{}").await;
        assert_eq!(answer, refused(415, "the content type must be application/json"), "{content_type:?}");
    }
    let review = create(&json!({})).to_string();
    let answer = posted("content-type: Application/JSON; charset=utf-8\r\n", &review).await;
    assert_eq!(answer.status, StatusCode::OK);
}

#[tokio::test]
async fn bodies_that_are_not_reviews_are_400() {
    const START: &str = "the body is not an AdmissionReview (admission.k8s.io/v1 or v1beta1): ";
    let server = limited(Limits::default());
    let without_uid = create(&json!({})).to_string().replace("u-1", "");
    for (body, message) in [
        (b"".to_vec(), format!("{START}EOF while parsing a value at line 1 column 0")),
        (b"{\"apiVersion\":\"\xff\"}".to_vec(), format!("{START}it is not UTF-8 from byte 15 on")),
        (without_uid.into_bytes(), "the request.uid of the AdmissionReview is not of 1 to 128 bytes".to_owned()),
    ] {
        assert_eq!(server.post("/mutate", body).await, refused(400, &message));
    }
}

/// Announced, met while reading, and where the client writes all of it before it reads.
#[tokio::test]
async fn bodies_over_the_limit_are_413() {
    let server = limited(Limits::default());
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
    let server = limited(Limits::default());
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
async fn only_http_1_is_spoken() {
    let mut stream = limited(Limits::default()).connect().await;
    assert_eq!(answers_to(&mut stream, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await, "");
}
