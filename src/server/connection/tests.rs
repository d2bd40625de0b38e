//! Clients that do not read their answers.

use axum::routing::get;
use tokio::{
    io::{AsyncReadExt as _, BufReader, DuplexStream, duplex},
    task::JoinHandle,
};

use super::*;
use crate::server::seats::Seats;

fn serving(router: Router, buffer: usize) -> (DuplexStream, JoinHandle<()>) {
    let (client, server) = duplex(buffer);
    let seat = Arc::new(Seats::new(1).take());
    let idle = Duration::from_secs(1);
    (client, tokio::spawn(serve(BufReader::new(server), router, seat, idle, CancellationToken::new())))
}

#[tokio::test(start_paused = true)]
async fn a_client_that_sends_requests_and_reads_no_answer_is_cut_off() {
    let (mut client, task) = serving(Router::new().route("/", get(async || ())), 1024);
    let requests = "GET / HTTP/1.1\r\nhost: l\r\n\r\n".repeat(2000);
    let sending = client.write_all(requests.as_bytes());
    let (sent, ended) = tokio::join!(sending, timeout(WRITE_TIMEOUT * 2, task));
    assert!(sent.is_err());
    ended.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_read_ends_no_request_behind_it() {
    let slow = async || sleep(WRITE_TIMEOUT * 3 / 2).await;
    let router = Router::new().route("/", get(async || ())).route("/slow", get(slow));
    let (mut client, _task) = serving(router, 16 * 1024);
    let requests = "GET / HTTP/1.1\r\nhost: l\r\n\r\nGET /slow HTTP/1.1\r\nhost: l\r\n\r\n";
    client.write_all(requests.as_bytes()).await.unwrap();
    let mut answers = String::new();
    client.read_to_string(&mut answers).await.unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2, "{answers}");
}
