//! What a request must be: paths, methods, content types, and bodies that are reviews.

use bytes::Bytes;
use gmsa_webhook::limits::Limits;
use http::{Request, StatusCode};
use http_body_util::Full;
use serde_json::json;

use super::{answers_to, create, limited, refused};
use crate::client::Answer;

#[tokio::test]
async fn paths_methods_and_content_types() {
    let server = limited(Limits::default());
    assert_eq!(server.get("/health").await, Answer { status: StatusCode::NO_CONTENT, body: Bytes::new() });
    let info = server.get("/info").await;
    assert_eq!((info.status, info.json()), (StatusCode::OK, json!({"version": env!("CARGO_PKG_VERSION")})));
    let served = "/mutate, /validate, /validate-workload, /validate-credspec, /health and /info";
    let missing = format!("there is no path \"/nothing\": this webhook serves {served}");
    assert_eq!(server.get("/nothing?x=y").await, refused(404, &missing));
    assert_eq!(server.get("/mutate").await, refused(405, "/mutate does not take GET"));
    assert_eq!(server.post("/health", "").await, refused(405, "/health does not take POST"));
    let wrong = server.post("/mutate?timeout=soon", "{}").await;
    let units = "a duration above 0 with units, such as 10s, 1m30s or 500ms";
    assert_eq!(wrong, refused(400, &format!("the query parameter timeout must be {units}")));
    let post = async |content_type: Option<&str>, body: String| {
        let mut request = Request::post("/validate").header("host", "localhost");
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        server.send(request.body(Full::from(body)).unwrap()).await
    };
    for content_type in [Some("text/plain"), Some("application/jsonp"), None] {
        let answer = post(content_type, "{}".to_owned()).await;
        assert_eq!(answer, refused(415, "the content type must be application/json"), "{content_type:?}");
    }
    let review = create(&json!({})).to_string();
    assert_eq!(post(Some("Application/JSON; charset=utf-8"), review).await.status, StatusCode::OK);
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
