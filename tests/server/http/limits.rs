//! How many reviews, connections and bytes a replica takes at once, and which one has to go.

use std::sync::Arc;

use futures::future::join_all;
use gmsa_webhook::limits::Limits;
use http::StatusCode;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    task::JoinSet,
};

use super::{
    Gated, Holds, allowed, containers, examples, one_pod, plain_review, post_head, read_answer, read_head,
    read_to_close, refused, reviewed, same_containers,
};
use crate::{https::Setup, support::eventually};

const BUSY: &str = "this replica is reviewing as many requests as it may at once: try again";

#[tokio::test]
async fn a_burst_of_reviews_is_answered_one_after_the_other() {
    let gated = Gated::new();
    let limits = Limits { reviews: 1, ..Limits::default() };
    let server = Arc::new(Setup { resolver: gated.clone(), limits, ..examples() }.start());
    let mut burst = JoinSet::new();
    for _ in 0..8 {
        let server = Arc::clone(&server);
        burst.spawn(async move { server.post("/mutate", one_pod()).await.status });
    }
    gated.entered.acquire().await.unwrap().forget();
    // The others are there when this one, which came later, is answered.
    assert_eq!(server.get("/health").await.status, StatusCode::NO_CONTENT);
    gated.gate.add_permits(8);
    while let Some(status) = burst.join_next().await {
        assert_eq!(status.unwrap(), StatusCode::OK);
    }
}

#[tokio::test]
async fn over_its_limit_of_reviews_a_replica_says_503() {
    let gated = Gated::new();
    let limits = Limits { reviews: 2, ..Limits::default() };
    let server = Arc::new(Setup { resolver: gated.clone(), limits, ..examples() }.start());
    let first_two = [0, 1].map(|_| {
        let server = Arc::clone(&server);
        tokio::spawn(async move { server.post("/mutate", one_pod()).await })
    });
    gated.entered.acquire_many(2).await.unwrap().forget();
    assert_eq!(server.post("/mutate?timeout=1s", one_pod()).await, refused(503, BUSY));
    gated.gate.add_permits(3);
    for answer in join_all(first_two).await {
        let status = answer.unwrap().json()["response"]["status"]["message"].clone();
        assert_eq!(status, "cred spec s does not exist");
    }
    assert_eq!(server.post("/mutate", one_pod()).await.status, StatusCode::OK);
}

#[tokio::test]
async fn over_its_limit_of_connections_a_client_waits_and_answers_end_theirs() {
    let gated = Gated::new();
    let limits = Limits { connections: 1, reviews: 1, ..Limits::default() };
    let server = Arc::new(Setup { resolver: gated.clone(), limits, ..examples() }.start());
    let mut first = server.connect(&["http/1.1"]).await;
    let body = one_pod();
    first.write_all(&[post_head(body.len()).into_bytes(), body].concat()).await.unwrap();
    gated.entered.acquire().await.unwrap().forget();
    let mut waiting = JoinSet::new();
    for _ in 0..20 {
        let server = Arc::clone(&server);
        waiting.spawn(async move { reviewed(&mut server.connect(&["http/1.1"]).await).await });
    }
    eventually("all others wait", || server.shows("gmsa_webhook_connections_waiting 20")).await;
    gated.gate.add_permits(1);
    let answer = read_to_close(&mut first).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("\r\nconnection: close\r\n"), "{answer}");
    while let Some(answer) = waiting.join_next().await {
        assert_eq!(answer.unwrap(), Some(allowed()));
    }
}

#[tokio::test]
async fn an_idle_connection_makes_room_and_one_that_never_brought_a_review_first() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let server = Setup { limits, ..examples() }.start();
    let mut kept = server.connect(&["http/1.1"]).await;
    assert_eq!(reviewed(&mut kept).await, Some(allowed()));
    let mut idle = server.connect(&["http/1.1"]).await;
    // Half a request, or half a body, is none.
    idle.write_all(&[post_head(5).into_bytes(), b"abcd".to_vec()].concat()).await.unwrap();
    let mut third = server.connect(&["http/1.1"]).await;
    assert_eq!(read_to_close(&mut idle).await, "");
    assert_eq!(reviewed(&mut third).await, Some(allowed()));
    assert_eq!(reviewed(&mut kept).await, Some(allowed()));
}

#[tokio::test]
async fn connections_without_a_request_keep_no_client_out() {
    // A handshake message of 65,531 bytes, in records of at most 16 KiB, of which the last byte is missing.
    let message: Vec<u8> = [1, 0, 255, 247].into_iter().chain(vec![0; 65_526]).collect();
    let record = |part: &[u8]| [&[22, 3, 1], &u16::try_from(part.len()).unwrap().to_be_bytes()[..], part].concat();
    let half_a_hello: Vec<u8> = message.chunks(1 << 14).flat_map(record).collect();
    for sent in [Vec::new(), half_a_hello] {
        let limits = Limits { connections: 50, ..Limits::default() };
        let server = Setup { limits, ..examples() }.start();
        let mut open = Vec::new();
        for _ in 0..200 {
            let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
            stream.write_all(&sent).await.unwrap();
            open.push(stream);
            if open.len() % 20 == 0 {
                assert_eq!(server.get("/health").await.status, StatusCode::NO_CONTENT);
            }
        }
    }
}

#[tokio::test]
async fn a_connection_whose_answer_is_not_read_makes_room() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let server = Setup { resolver: Holds::text_of(60 << 10), limits, ..examples() }.start();
    let body = same_containers(30);
    let mut unread = server.connect(&["http/1.1"]).await;
    for _ in 0..3 {
        unread.write_all(post_head(body.len()).as_bytes()).await.unwrap();
        unread.write_all(&body).await.unwrap();
    }
    // The first answer has begun.
    assert!(read_head(&mut unread).await.starts_with("HTTP/1.1 200 OK\r\n"));
    let mut second = server.connect(&["http/1.1"]).await;
    assert_eq!(reviewed(&mut second).await, Some(allowed()));
    let mut third = server.connect(&["http/1.1"]).await;
    assert_eq!(reviewed(&mut third).await, Some(allowed()));
    assert_eq!(reviewed(&mut second).await, Some(allowed()));
    let mut rest = Vec::new();
    let _ = unread.read_to_end(&mut rest).await;
    assert!(rest.len() < 1 << 20, "{} bytes", rest.len());
}

#[tokio::test]
async fn announced_lengths_take_nothing() {
    let server = examples().start();
    let mut announcing = Vec::new();
    for _ in 0..64 {
        let mut stream = server.connect(&["http/1.1"]).await;
        stream.write_all(post_head(8_388_608).as_bytes()).await.unwrap();
        announcing.push(stream);
    }
    for padding in [0, 3 << 20] {
        let review = [one_pod(), vec![b' '; padding]].concat();
        assert_eq!(server.post("/mutate", review).await.status, StatusCode::OK, "{padding}");
    }
}

#[tokio::test]
async fn bodies_that_do_not_arrive_keep_no_small_review_out() {
    let limits = Limits { large_reviews: 9 << 20, ..Limits::default() };
    let server = Setup { limits, ..examples() }.start();
    let mut stalled = Vec::new();
    for (count, length) in [(10, 60 << 10), (1, 2 << 20)] {
        for _ in 0..count {
            let mut stream = server.connect(&["http/1.1"]).await;
            stream.write_all(post_head(length + 1).as_bytes()).await.unwrap();
            stream.write_all(&vec![b' '; length]).await.unwrap();
            stalled.push(stream);
        }
    }
    let padded = |padding: usize| [one_pod(), vec![b' '; padding]].concat();
    for padding in [0, 40 << 10, 500 << 10] {
        assert_eq!(server.post("/mutate", padded(padding)).await.status, StatusCode::OK, "{padding}");
    }
    for stream in &mut stalled {
        stream.write_all(b" ").await.unwrap();
        let answer = read_head(stream).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    }
    assert_eq!(server.post("/mutate", padded(2 << 20)).await.status, StatusCode::OK);
    // More than the replica may hold at all.
    assert_eq!(server.post("/mutate", padded(4 << 20)).await, refused(503, BUSY));
}

#[tokio::test]
async fn a_large_answer_for_which_there_is_no_memory_is_503() {
    let limits = Limits { large_reviews: 1 << 20, ..Limits::default() };
    let server = Setup { resolver: Holds::text_of(60 << 10), limits, ..examples() }.start();
    assert_eq!(server.post("/mutate", same_containers(20)).await, refused(503, BUSY));
    assert_eq!(server.post("/mutate", same_containers(10)).await.status, StatusCode::OK);
}

#[tokio::test]
async fn large_reviews_that_wait_for_the_api_server_take_no_turn_from_others() {
    let gated = Gated::new();
    let server = Arc::new(Setup { resolver: gated.clone(), ..examples() }.start());
    let large = [one_pod(), vec![b' '; 300 << 10]].concat();
    let mut waiting = JoinSet::new();
    // More than are read at once; and more than fit into the memory for large reviews while they are parsed.
    for _ in 0..60 {
        let (server, large) = (Arc::clone(&server), large.clone());
        waiting.spawn(async move { server.post("/mutate", large).await.status });
        gated.entered.acquire().await.unwrap().forget();
    }
    assert_eq!(server.get("/health").await.status, StatusCode::NO_CONTENT);
    let message = "unable to retrieve the contents of cred spec s: too late";
    for body in [one_pod(), large] {
        let answer = server.post("/mutate?timeout=2s", body).await.json();
        assert_eq!(answer["response"]["status"]["message"], message);
    }
    gated.gate.add_permits(60);
    while let Some(status) = waiting.join_next().await {
        assert_eq!(status.unwrap(), StatusCode::OK);
    }
}

#[tokio::test]
async fn reviews_that_wait_for_the_api_server_leave_memory_to_others() {
    let gated = Gated::new();
    let server = Arc::new(Setup { resolver: gated.clone(), ..examples() }.start());
    let mut body = containers(24, |n| format!("unknown-{n}"));
    body.resize(64 << 10, b' ');
    let mut waiting = JoinSet::new();
    for _ in 0..124 {
        let (server, body) = (Arc::clone(&server), body.clone());
        waiting.spawn(async move { server.post("/mutate?timeout=30s", body).await.status });
        tokio::select! {
            entered = gated.entered.acquire() => entered.unwrap().forget(),
            Some(status) = waiting.join_next() => panic!("one does not wait: {status:?}"),
        }
    }
    let answer = server.post("/mutate?timeout=2s", body).await;
    assert_eq!(answer.status, StatusCode::OK);
    gated.gate.add_permits(124);
    while let Some(status) = waiting.join_next().await {
        assert_eq!(status.unwrap(), StatusCode::OK);
    }
}

#[tokio::test]
async fn a_request_that_begins_behind_another_one_occupies_no_place() {
    let limits = Limits { connections: 1, ..Limits::default() };
    let server = Setup { limits, ..examples() }.start();
    let mut first = server.connect(&["http/1.1"]).await;
    first.write_all(&[plain_review(), post_head(5).into_bytes(), b"ab".to_vec()].concat()).await.unwrap();
    assert_eq!(read_answer(&mut first).await, Some(allowed()));
    let mut second = server.connect(&["http/1.1"]).await;
    assert_eq!(read_to_close(&mut first).await, "");
    assert_eq!(reviewed(&mut second).await, Some(allowed()));
}
