//! Large numbers of cheap requests: frames, lines for the log, calls to the API server.

use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, split},
    time::{Instant, MissedTickBehavior, interval, sleep},
};

use super::{Figure, Target, bodies::Words, sockets::garbage};
use crate::{
    client::{Client, NO_HTTP2, exchange},
    http2,
    reviews::{self, MAX_BODY},
    support::Verb,
};

/// Cores that 2,000 frames a second may cost.
const FRAMES_AIM: f64 = 0.25;

/// Bytes of the longest log line: a few texts of 253 characters, and their names.
const LINE_AIM: usize = 4096;

/// The log lines that repeated problems may cause.
const LINES_AIM: usize = 60;

/// Sends frames of each kind for a while at this rate, each in a packet of its own.
pub async fn frames(target: &Target<'_>, per_second: u32) -> Vec<Figure> {
    const EACH: Duration = Duration::from_secs(3);
    const PAUSE: Duration = Duration::from_millis(20);
    let kinds = [
        ("PRIORITY", http2::priority(1)),
        ("SETTINGS", http2::settings()),
        ("PING", http2::ping()),
        ("empty DATA", http2::empty_data(1)),
    ];
    let mut figures = Vec::new();
    if target.client.connect_http2().await.is_err() {
        return vec![Figure::new(NO_HTTP2)];
    }
    for (name, frame) in kinds {
        let (before, begun) = (target.server.cpu(), Instant::now());
        let (mut sent, mut connections) = (0_u32, 0_u32);
        while begun.elapsed() < EACH {
            connections += 1;
            match one_connection(&target.client, &frame, per_second, begun + EACH).await {
                Ok(frames) => sent += frames,
                Err(_) => sleep(PAUSE).await,
            }
        }
        let elapsed = begun.elapsed().as_secs_f64();
        let cores = (target.server.cpu() - before) / elapsed;
        let text = format!("{name}: {:.0}/s on {connections} connections", f64::from(sent) / elapsed);
        figures.push(Figure::new(text));
        figures.push(Figure::at_most(cores, 2, FRAMES_AIM, " cores"));
    }
    figures
}

/// Sends this frame until `end` or until the server closes; returns how many were sent.
async fn one_connection(client: &Client, frame: &[u8], per_second: u32, end: Instant) -> std::io::Result<u32> {
    let (mut from, mut to) = split(client.connect_http2().await?);
    let reading = tokio::spawn(async move {
        let mut answers = vec![0; 1 << 14];
        while from.read(&mut answers).await.is_ok_and(|bytes| bytes > 0) {}
    });
    to.write_all(&[http2::begin(), http2::head(1, "/validate?timeout=10s", MAX_BODY - 1)].concat()).await?;
    let mut pace = interval(Duration::from_secs(1) / per_second);
    pace.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut sent = 0;
    while Instant::now() < end && !reading.is_finished() {
        pace.tick().await;
        if to.write_all(frame).await.is_err() || to.flush().await.is_err() {
            break;
        }
        sent += 1;
    }
    reading.abort();
    Ok(sent)
}

/// Posts reviews with long texts, and looks at the log.
pub async fn long_texts(target: &Target<'_>, length: usize, each: usize) -> Vec<Figure> {
    let mut words = Words::default();
    for body in reviews::long_texts(length) {
        for _ in 0..each {
            words.add(target.client.post("/validate", body.clone()).await.word());
        }
    }
    // The path is a text too.
    let path = format!("/{}", "a".repeat(10_000));
    words.add(target.client.post(&path, Bytes::new()).await.word());
    let longest = target.server.log().longest;
    vec![
        words.figure(),
        Figure::new(format!("longest log line {longest} bytes")).aim(LINE_AIM.to_string(), longest <= LINE_AIM),
    ]
}

/// Repeats requests that the server logs as refused.
pub async fn complaints(target: &Target<'_>, each: usize) -> Vec<Figure> {
    let before = target.server.log().lines;
    let mut words = Words::default();
    for _ in 0..each {
        garbage(target.client.address).await;
        words.add(target.client.post("/nothing", Bytes::new()).await.word());
        words.add(target.client.post("/validate", Bytes::from_static(b"{}")).await.word());
    }
    let lines = target.server.log().lines - before;
    vec![words.figure(), Figure::new(format!("{lines} log lines")).aim(LINES_AIM.to_string(), lines <= LINES_AIM)]
}

/// Names credential specs that do not exist.
pub async fn unknown_names(target: &Target<'_>, number: usize, at_once: usize) -> Vec<Figure> {
    const NAMES: usize = 24;
    // One after the other, and before the first review: API servers keep their connections, and handshakes are another
    // attack.
    let mut connections = Vec::new();
    for _ in 0..at_once {
        connections.push(target.client.connect().await.unwrap());
    }
    let begun = Instant::now();
    let lanes = connections.into_iter().enumerate().map(|(lane, mut connection)| async move {
        let mut words = Vec::new();
        for position in (lane..number).step_by(at_once) {
            let review = reviews::unknown_names(position, NAMES);
            words.push(exchange(&mut connection, "/mutate", review).await.word());
        }
        words
    });
    let mut words = Words::default();
    join_all(lanes).await.into_iter().flatten().for_each(|word| words.add(word));
    let reads = target.api.count(Verb::Get, "gmsacredentialspecs/unknown");
    let seconds = begun.elapsed().as_secs_f64();
    vec![words.figure(), Figure::new(format!("{reads} reads at the API server in {seconds:.1} s"))]
}
