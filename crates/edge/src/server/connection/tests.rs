use std::future::ready;

use axum::{extract, routing};
use gmsa_test_support::https::read_answer;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::{io::AsyncWriteExt as _, net::TcpListener, time::advance};

use super::*;
use crate::limits::CONTESTED_IDLE;

const REQUEST: &[u8] = b"POST / HTTP/1.1\r\nhost: l\r\ncontent-length: 0\r\n\r\n";

#[tokio::test(start_paused = true)]
async fn a_request_that_has_arrived_when_its_connection_makes_room_is_answered() {
    let decide = async |request: extract::Request| {
        let _busy = request.extensions().get::<Arc<Place>>().unwrap().busy();
        yield_now().await;
        "decided"
    };
    let places = Places::new(1, 2, 10);
    let service = HttpsService {
        serving: Serving { keeps_decided: true, ..Serving::new(1, 10, CONTESTED_IDLE * 10) },
        router: Router::new().route("/", routing::post(decide)),
        places: Arc::clone(&places),
        too_late: CancellationToken::new(),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stream, peer) = listener.accept().await.unwrap();
    let graceful = GracefulShutdown::new();
    tokio::spawn(Arc::new(service).serve(stream, peer, graceful.watcher()));
    client.try_write(REQUEST).unwrap();
    let (head, answer) = read_answer(&mut client).await.unwrap();
    assert_eq!((answer.body, head.contains("connection: close")), (b"decided".to_vec(), false));

    let waiting = tokio::spawn({
        let places = Arc::clone(&places);
        async move { places.place(source_of(peer.ip()), ready(Ok(1)), Instant::now() + WAIT_TIMEOUT).await.is_ok() }
    });
    yield_now().await;
    advance(CONTESTED_IDLE).await;
    client.try_write(REQUEST).unwrap();
    places.make_room();
    let (head, answer) = read_answer(&mut client).await.unwrap();
    assert_eq!((answer.body, head.contains("connection: close")), (b"decided".to_vec(), true));
    assert!(waiting.await.unwrap());
}

#[tokio::test]
async fn a_client_that_has_given_up_is_told_from_one_that_waits() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    client.write_all(b"hello").await.unwrap();
    stream.readable().await.unwrap();
    assert!(!is_closed(&stream));
    drop(client);
    while !is_closed(&stream) {
        yield_now().await;
    }
    assert_eq!(stream.peek(&mut [0; 8]).await.unwrap(), 5);
}
