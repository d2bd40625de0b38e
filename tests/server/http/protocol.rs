//! HTTP/1.1 on one connection: pipelined requests, bodies that no handler reads, other protocols.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{examples, read_to_close};

#[tokio::test]
async fn requests_that_come_close_together_are_answered_in_order() {
    let server = examples().start();
    let mut stream = server.connect(&["http/1.1"]).await;
    let get = "GET /info HTTP/1.1\r\nhost: l\r\n\r\n";
    let missing = "GET /missing HTTP/1.1\r\nhost: l\r\n\r\n";
    let requests = [get, missing, get].concat();
    let (first, rest) = requests.split_at(get.len() + 20);
    stream.write_all(first.as_bytes()).await.unwrap();
    let mut answers = String::new();
    while !answers.contains("version") {
        answers.push(char::from(stream.read_u8().await.unwrap()));
    }
    stream.write_all(rest.as_bytes()).await.unwrap();
    stream.write_all(b"GET /health HTTP/1.1\r\nhost: l\r\nconnection: close\r\n\r\n").await.unwrap();
    answers += &read_to_close(&mut stream).await;
    let statuses: Vec<&str> = answers.split("HTTP/1.1 ").skip(1).filter_map(|answer| answer.get(..3)).collect();
    assert_eq!(statuses, ["200", "404", "200", "204"]);
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
