//! The end of the server: answered reviews are delivered, and the rest is dropped at the deadline.

use std::time::Duration;

use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt as _;

use super::{Gated, allowed, examples, one_pod, plain_review, post_head, read_to_close, reviewed};
use crate::https::{Setup, answer, review_request};

#[tokio::test]
async fn a_drain_answers_what_is_in_flight_and_closes_what_rests() {
    let gated = Gated::new();
    let server = Setup { resolver: gated.clone(), ..examples() }.start();
    let mut resting = server.connect(&["http/1.1"]).await;
    assert_eq!(reviewed(&mut resting).await, Some(allowed()));
    let stream = server.connect(&["http/1.1"]).await;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let in_flight =
        tokio::spawn(
            async move { answer(sender.send_request(review_request("/mutate", one_pod())).await.unwrap()).await },
        );
    gated.entered.acquire().await.unwrap().forget();

    server.closing.cancel();
    read_to_close(&mut resting).await;
    assert!(!server.task.is_finished());
    gated.gate.add_permits(1);
    let message = in_flight.await.unwrap().json()["response"]["status"]["message"].clone();
    assert_eq!(message, "cred spec s does not exist");
    connection.await.unwrap().unwrap();
    assert_eq!(server.task.await.unwrap(), 0, "connections dropped");
    assert!(tokio::net::TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn before_the_end_every_answer_closes_its_connection_and_new_ones_are_served() {
    let server = examples().start();
    let mut kept = server.connect(&["http/1.1"]).await;
    assert_eq!(reviewed(&mut kept).await, Some(allowed()));
    server.ending.cancel();
    let mut new = server.connect(&["http/1.1"]).await;
    for connection in [&mut kept, &mut new] {
        connection.write_all(&plain_review()).await.unwrap();
        let answer = read_to_close(connection).await;
        assert!(answer.contains("connection: close\r\n"), "{answer}");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
    assert!(!server.task.is_finished());
}

#[tokio::test]
async fn a_drain_drops_what_does_not_finish_in_time() {
    let gated = Gated::new();
    let server = Setup { resolver: gated.clone(), drain: Duration::from_millis(100), ..examples() }.start();
    let mut stream = server.connect(&["http/1.1"]).await;
    let body = one_pod();
    stream.write_all(post_head(body.len()).as_bytes()).await.unwrap();
    stream.write_all(&body).await.unwrap();
    gated.entered.acquire().await.unwrap().forget();
    server.closing.cancel();
    assert_eq!(server.task.await.unwrap(), 1, "connections dropped");
    assert_eq!(read_to_close(&mut stream).await, "");
}
