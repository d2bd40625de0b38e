//! The end of the server: answered reviews are delivered, and the rest is dropped at the deadline.

use std::time::Duration;

use gmsa_webhook::limits::Limits;
use tokio::io::AsyncWriteExt as _;

use super::{Gated, MISSING, allows, answers_to, limited, one_pod, plain_review, request, with};
use crate::{client::post, https::Setup};

#[tokio::test]
async fn a_drain_answers_what_is_in_flight_and_closes_what_rests() {
    let gated = Gated::new();
    let server = with(gated.clone()).start();
    let mut resting = server.connect().await;
    assert!(allows(&mut resting).await);
    let mut kept = server.client.keep_alive(server.address).await.unwrap();
    let in_flight = tokio::spawn(async move { kept.send(post("/mutate", one_pod(0))).await.unwrap() });
    gated.entered().await;

    server.closing.cancel();
    assert_eq!(answers_to(&mut resting, "").await, "");
    assert!(!server.task.is_finished());
    gated.gate.add_permits(1);
    assert_eq!(in_flight.await.unwrap().message(), MISSING);
    assert_eq!(server.task.await.unwrap(), 0, "connections dropped");
    assert!(tokio::net::TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn before_the_end_every_answer_closes_its_connection_and_new_ones_are_served() {
    let server = limited(Limits::default());
    let mut kept = server.connect().await;
    assert!(allows(&mut kept).await);
    server.ending.cancel();
    let mut new = server.connect().await;
    for connection in [&mut kept, &mut new] {
        let answer = answers_to(connection, plain_review()).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("connection: close\r\n"), "{answer}");
    }
    assert!(!server.task.is_finished());
}

#[tokio::test]
async fn a_drain_drops_what_does_not_finish_in_time() {
    let gated = Gated::new();
    let server = Setup { drain: Duration::from_millis(100), ..with(gated.clone()) }.start();
    let mut stream = server.connect().await;
    stream.write_all(&request(&one_pod(0))).await.unwrap();
    gated.entered().await;
    server.closing.cancel();
    assert_eq!(server.task.await.unwrap(), 1, "connections dropped");
    assert_eq!(answers_to(&mut stream, "").await, "");
}
