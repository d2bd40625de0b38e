//! How many reviews, connections and bytes a replica takes at once, and which one has to go; its admin port beside a neighbour that wants
//! no answers.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use gmsa_edge::{
    admin::{self, Readiness},
    server::Listener,
};
use gmsa_webhook::{
    limits::{DEFAULT_MEMORY, Limits},
    metrics::Metrics,
};
use http::StatusCode;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{
    Gated, Large, allows, answers_to, containers, limited, one_pod, plain_review, read_answer, refused,
    same_containers, with,
};
use crate::{
    https::Setup,
    support::{
        eventually,
        https::{Client, post, post_head, read_head},
    },
};

const BUSY: &str = "this replica is reviewing as many requests as it may at once: try again";

#[tokio::test]
async fn over_its_limit_reviews_wait_and_are_answered_with_503_where_they_wait_in_vain() {
    let (gated, server) = Gated::start(Limits { reviews: 2, ..Limits::of_memory(DEFAULT_MEMORY) });
    let mut held = gated.hold(&server, 2, &one_pod(0)).await;
    assert_eq!(server.post("/mutate?timeout=1s", one_pod(0)).await, refused(503, BUSY));
    for _ in 0..6 {
        let server = Arc::clone(&server);
        held.spawn(async move { server.post("/mutate", one_pod(0)).await });
    }
    // The others are there when this one, which came later, is answered.
    assert_eq!(server.get("/health").await.status, StatusCode::NO_CONTENT);
    gated.answer(held).await;
}

#[tokio::test]
async fn over_its_limit_of_connections_a_client_waits_and_answers_end_theirs() {
    let (gated, server) = Gated::start(Limits { connections: 1, reviews: 1, ..Limits::of_memory(DEFAULT_MEMORY) });
    let mut first = server.connect().await;
    first.write_all(&post("/mutate", &one_pod(0))).await.unwrap();
    gated.entered().await;
    let mut waiting = JoinSet::new();
    for _ in 0..20 {
        let server = Arc::clone(&server);
        waiting.spawn(async move { allows(&mut server.connect().await).await });
    }
    eventually("all others wait", || server.shows("gmsa_webhook_connections_waiting 20")).await;
    gated.gate.add_permits(1);
    let answer = answers_to(&mut first, "").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("\r\nconnection: close\r\n"), "{answer}");
    assert_eq!(waiting.join_all().await, [true; 20]);
}

#[tokio::test]
async fn a_request_that_begins_behind_another_one_occupies_no_place() {
    let server = limited(Limits { connections: 1, ..Limits::of_memory(DEFAULT_MEMORY) });
    let mut first = server.connect().await;
    first.write_all(&[plain_review(), (post_head("/mutate", 5) + "ab").into_bytes()].concat()).await.unwrap();
    assert_eq!(read_answer(&mut first).await.unwrap().1["response"]["allowed"], true);
    let mut second = server.connect().await;
    assert_eq!(answers_to(&mut first, "").await, "");
    assert!(allows(&mut second).await);
}

#[tokio::test]
async fn connections_without_a_request_keep_no_client_out() {
    // A handshake message of 65,531 bytes, in records of at most 16 KiB, without its last byte.
    let message: Vec<u8> = [1, 0, 255, 247].into_iter().chain(vec![0; 65_526]).collect();
    let record = |part: &[u8]| [&[22, 3, 1], &u16::try_from(part.len()).unwrap().to_be_bytes()[..], part].concat();
    let half_a_hello: Vec<u8> = message.chunks(1 << 14).flat_map(record).collect();
    for sent in [Vec::new(), half_a_hello] {
        let server = limited(Limits { connections: 50, ..Limits::of_memory(DEFAULT_MEMORY) });
        let mut open = Vec::new();
        for _ in 0..200 {
            let mut stream = TcpStream::connect(server.address).await.unwrap();
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
    let limits = Limits { connections: 2, ..Limits::of_memory(DEFAULT_MEMORY) };
    let server = Setup { limits, ..with(Large::new()) }.start();
    let mut unread = server.connect().await;
    unread.write_all(&post("/mutate", &same_containers(30)).repeat(3)).await.unwrap();
    // The first answer has begun.
    assert!(read_head(&mut unread).await.unwrap().starts_with("HTTP/1.1 200 OK\r\n"));
    let mut second = server.connect().await;
    assert!(allows(&mut second).await);
    assert!(allows(&mut server.connect().await).await);
    assert!(allows(&mut second).await);
    let mut rest = Vec::new();
    let _ = unread.read_to_end(&mut rest).await;
    assert!(rest.len() < 1 << 20, "{} bytes", rest.len());
}

#[tokio::test]
async fn announced_lengths_take_nothing_and_bodies_that_do_not_arrive_keep_no_small_review_out() {
    let server = limited(Limits { large_bytes: 9 << 20, ..Limits::of_memory(DEFAULT_MEMORY) });
    let mut announcing = Vec::new();
    for _ in 0..64 {
        let mut stream = server.connect().await;
        stream.write_all(post_head("/mutate", 8_388_608).as_bytes()).await.unwrap();
        announcing.push(stream);
    }
    assert_eq!(server.post("/mutate", one_pod(3 << 20)).await.status, StatusCode::OK);
    let mut stalled = Vec::new();
    for (count, length) in [(10, 60 << 10), (1, 2 << 20)] {
        for _ in 0..count {
            let mut stream = server.connect().await;
            stream.write_all((post_head("/mutate", length + 1) + &" ".repeat(length)).as_bytes()).await.unwrap();
            stalled.push(stream);
        }
    }
    for padding in [0, 40 << 10, 500 << 10] {
        assert_eq!(server.post("/mutate", one_pod(padding)).await.status, StatusCode::OK, "{padding}");
    }
    for stream in &mut stalled {
        stream.write_all(b" ").await.unwrap();
        let answer = read_head(stream).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    }
    assert_eq!(server.post("/mutate", one_pod(2 << 20)).await.status, StatusCode::OK);
    // More than one address may hold.
    assert_eq!(server.post("/mutate", one_pod(5 << 20)).await, refused(503, BUSY));
}

#[tokio::test]
async fn slow_bodies_from_one_address_keep_no_large_review_of_another_one_out() {
    let server = limited(Limits::of_memory(DEFAULT_MEMORY));
    let slow = Client { source: Ipv4Addr::new(127, 0, 0, 2), ..server.client.clone() };
    let mut stalled = Vec::new();
    for length in [6_000_000, 500_000] {
        let mut stream = slow.connect(server.address).await.unwrap();
        stream.write_all((post_head("/mutate", length) + &" ".repeat(length - 1)).as_bytes()).await.unwrap();
        stalled.push(stream);
    }
    for padding in [40 << 10, 4 << 20] {
        assert_eq!(server.post("/mutate", one_pod(padding)).await.status, StatusCode::OK, "{padding}");
    }
    // They were not refused.
    for stream in &mut stalled {
        stream.write_all(b" ").await.unwrap();
        let answer = read_head(stream).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    }
}

#[tokio::test]
async fn a_large_answer_for_which_there_is_no_memory_is_503() {
    let limits = Limits { large_bytes: 2 << 20, ..Limits::of_memory(DEFAULT_MEMORY) };
    let server = Setup { limits, ..with(Large::new()) }.start();
    assert_eq!(server.post("/mutate", same_containers(20)).await, refused(503, BUSY));
    assert_eq!(server.post("/mutate", same_containers(10)).await.status, StatusCode::OK);
}

/// Large ones, more than are read at once, and almost as many as one address may have; and small ones with many names.
#[tokio::test]
async fn reviews_that_wait_for_the_api_server_leave_turns_and_memory_to_others() {
    let (large, mut small) = (one_pod(300 << 10), containers(24, |n| format!("unknown-{n}")));
    small.resize(64 << 10, b' ');
    for (reviews, waiting, others) in
        [(28, &large, [one_pod(0), large.clone()]), (124, &small, [one_pod(0), small.clone()])]
    {
        let (gated, server) = Gated::start(Limits::of_memory(DEFAULT_MEMORY));
        let held = gated.hold(&server, reviews, waiting).await;
        assert_eq!(server.get("/health").await.status, StatusCode::NO_CONTENT);
        for body in others {
            let answer = server.post("/mutate?timeout=1s", body).await;
            assert!(answer.message().ends_with(": too late"), "{answer:?}");
        }
        gated.answer(held).await;
    }
}

fn admin_port() -> SocketAddr {
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), admin::serving(1000)).unwrap();
    let address = listener.address();
    let router = admin::router(Readiness::new(CancellationToken::new()), Metrics::new().2);
    tokio::spawn(listener.serve(router, CancellationToken::new(), Duration::ZERO));
    address
}

#[tokio::test]
async fn a_connection_to_the_admin_port_has_one_answer() {
    let mut stream = TcpStream::connect(admin_port()).await.unwrap();
    let answer = answers_to(&mut stream, b"GET /livez HTTP/1.1\r\nhost: l\r\n\r\n".repeat(3)).await;
    assert_eq!(answer.matches("HTTP/1.1 200 OK\r\n").count(), 1, "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n") && answer.ends_with("\r\n\r\nok\n"), "{answer}");
}

#[tokio::test]
async fn scrapes_that_nobody_reads_keep_no_probe_out() {
    let address = admin_port();
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
