//! What a request must be: paths, methods, content types, and bodies that are reviews.

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use super::{create, examples, post_head, read_to_close, refused};
use crate::https::Answer;

#[tokio::test]
async fn paths_methods_and_content_types() {
    let server = examples().start();
    assert_eq!(server.get("/health").await, Answer { status: StatusCode::NO_CONTENT, body: Bytes::new() });
    let info = server.get("/info").await;
    assert_eq!((info.status, info.json()), (StatusCode::OK, json!({"version": env!("CARGO_PKG_VERSION")})));
    assert_eq!(
        server.get("/nothing?x=y").await,
        refused(
            404,
            "there is no path \"/nothing\": this webhook serves /mutate, /validate, /validate-workload, /validate-credspec, /health and /info"
        )
    );
    assert_eq!(server.get("/mutate").await, refused(405, "/mutate does not take GET"));
    assert_eq!(server.post("/health", "").await, refused(405, "/health does not take POST"));
    for content_type in [Some("text/plain"), Some("application/jsonp"), None] {
        let mut request = Request::post("/validate").header("host", "localhost");
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        let answer = server.send(request.body(Full::from("{}")).unwrap()).await;
        assert_eq!(answer, refused(415, "the content type must be application/json"), "{content_type:?}");
    }
    let body = serde_json::to_vec(&create(&json!({}))).unwrap();
    let request = Request::post("/mutate").header("host", "localhost");
    let request = request.header("content-type", "Application/JSON; charset=utf-8");
    assert_eq!(server.send(request.body(Full::from(body)).unwrap()).await.status, StatusCode::OK);
}

#[tokio::test]
async fn bodies_that_are_not_reviews_are_400() {
    const START: &str = "the body is not an AdmissionReview (admission.k8s.io/v1 or v1beta1): ";
    let server = examples().start();
    let whole = serde_json::to_string(&create(&json!({"containers": [{"name": "c"}]}))).unwrap();
    for (body, message) in [
        (Vec::new(), "EOF while parsing a value at line 1 column 0"),
        (format!("{whole}x").into_bytes(), "trailing characters at line 1 column 323"),
        (b"{\"apiVersion\":\"\xff\"}".to_vec(), "it is not UTF-8 from byte 15 on"),
        (whole.replace("AdmissionReview", "Pod").into_bytes(), "expected `AdmissionReview` at line 1 column 48"),
        (whole.replace("\"c\"", "[\"secret\"]").into_bytes(), "expected a string at line 1 column 207"),
    ] {
        let answer = server.post("/mutate", body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
        assert_eq!(answer.text(), format!("{START}{message}\n"));
    }
    let mut review = create(&json!({}));
    review["request"]["uid"] = json!("");
    let answer = server.post("/mutate", serde_json::to_vec(&review).unwrap()).await;
    assert_eq!(answer, refused(400, "the request.uid of the AdmissionReview is not of 1 to 128 bytes"));
}

#[tokio::test]
async fn a_wrong_timeout_is_400() {
    let server = examples().start();
    let answer = server.post("/mutate?timeout=soon", "{}").await;
    let line = "the query parameter timeout must be a duration above 0 with units, such as 10s, 1m30s or 500ms";
    assert_eq!(answer, refused(400, line));
}

#[tokio::test]
async fn bodies_over_the_limit_are_413() {
    const LINE: &str = "the body is larger than 8388608 bytes";
    let server = examples().start();
    let mut stream = server.connect(&["http/1.1"]).await;
    stream.write_all(post_head(8_388_609).as_bytes()).await.unwrap();
    let answer = read_to_close(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.ends_with(&format!("\r\n\r\n{LINE}\n")), "{answer}");

    // Without a length, the limit is met while reading.
    let mut stream = server.connect(&["http/1.1"]).await;
    let head =
        "POST /mutate HTTP/1.1\r\nhost: l\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(0x10_0000));
    for _ in 0..8 {
        stream.write_all(chunk.as_bytes()).await.unwrap();
    }
    stream.write_all(b"1\r\n \r\n").await.unwrap();
    let answer = read_to_close(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.ends_with(&format!("\r\n\r\n{LINE}\n")), "{answer}");

    // A client that writes all of it before it reads sees the answer too.
    for (head, body) in [
        ("content-length: 10485760", vec![b' '; 10 << 20]),
        ("transfer-encoding: chunked", chunk.repeat(10).into_bytes()),
    ] {
        let mut stream = server.connect(&["http/1.1"]).await;
        let head = format!("POST /mutate HTTP/1.1\r\nhost: l\r\ncontent-type: application/json\r\n{head}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&body).await.unwrap();
        let answer = read_to_close(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        assert!(answer.ends_with(&format!("\r\n\r\n{LINE}\n")), "{answer}");
    }
}
