//! The admin port beside a neighbour that wants no answers.

use std::{net::SocketAddr, time::Duration};

use gmsa_webhook::{
    admin::{self, Readiness},
    metrics::Metrics,
    server::listener::Listener,
};
use tokio::{io::AsyncWriteExt as _, net::TcpStream, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::answers_to;

fn serving() -> SocketAddr {
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), admin::serving()).unwrap();
    let address = listener.address();
    let router = admin::router(Readiness::new(CancellationToken::new()), Metrics::new("test").1);
    tokio::spawn(listener.serve(router, CancellationToken::new(), Duration::ZERO));
    address
}

#[tokio::test]
async fn a_connection_has_one_answer() {
    let mut stream = TcpStream::connect(serving()).await.unwrap();
    let answer = answers_to(&mut stream, b"GET /livez HTTP/1.1\r\nhost: l\r\n\r\n".repeat(3)).await;
    assert_eq!(answer.matches("HTTP/1.1 200 OK\r\n").count(), 1, "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n") && answer.ends_with("\r\n\r\nok\n"), "{answer}");
}

#[tokio::test]
async fn scrapes_that_nobody_reads_keep_no_probe_out() {
    let address = serving();
    let mut neighbours = JoinSet::new();
    for _ in 0..128 {
        neighbours.spawn(async move {
            loop {
                let Ok(mut stream) = TcpStream::connect(address).await else { continue };
                let _ = stream.write_all(&b"GET /metrics HTTP/1.1\r\nhost: l\r\n\r\n".repeat(60)).await;
                // Until the server closes it. The answer stays unread.
                let _ = stream.ready(tokio::io::Interest::ERROR).await;
            }
        });
    }
    for _ in 0..45 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let answer = answers_to(&mut stream, "GET /readyz HTTP/1.1\r\nhost: l\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
}
