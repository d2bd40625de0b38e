//! Large numbers of cheap requests: reviews, frames, lines for the log.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, split},
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep},
};

use super::{Figure, Target, held::garbage};
use crate::{
    client::{Client, NO_HTTP2},
    http2,
    report::Words,
    reviews::{self, MAX_BODY},
};

/// Cores that 2,000 frames a second may cost.
const FRAMES_AIM: f64 = 0.25;

/// Bytes of the longest log line: a few texts of 253 characters, and their names.
const LINE_AIM: usize = 4096;

/// The log lines that repeated problems may cause.
const LINES_AIM: usize = 60;

/// Posts this many plain reviews at once, each on a connection of its own.
pub async fn burst(target: &Target<'_>, number: usize) -> Vec<Figure> {
    let mut posts = JoinSet::new();
    for position in 0..number {
        let client = target.client.clone();
        posts.spawn(async move { client.post("/validate", &reviews::plain(position)).await.word() });
    }
    let mut words = Words::default();
    words.extend(posts.join_all().await);
    let all = words.are_all("allowed");
    vec![words.figure().aim("allowed", all)]
}

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
        let (before, begun) = (target.server.process.cpu(), Instant::now());
        let (mut sent, mut connections) = (0_u32, 0_u32);
        while begun.elapsed() < EACH {
            connections += 1;
            match one_connection(&target.client, &frame, per_second, begun + EACH).await {
                Ok(frames) => sent += frames,
                Err(_) => sleep(PAUSE).await,
            }
        }
        let elapsed = begun.elapsed().as_secs_f64();
        let cores = (target.server.process.cpu() - before).as_secs_f64() / elapsed;
        let text = format!("{name}: {:.0}/s on {connections} connections", f64::from(sent) / elapsed);
        figures.extend([Figure::new(text), Figure::at_most(cores, 2, FRAMES_AIM, " cores")]);
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
            words.extend([target.client.post("/validate", &body).await.word()]);
        }
    }
    // The path is a text too.
    words.extend([target.client.post(&format!("/{}", "a".repeat(10_000)), &[]).await.word()]);
    let longest = target.server.process.log().lines().map(str::len).max().unwrap_or_default();
    let line = Figure::new(format!("longest log line {longest} bytes")).aim(LINE_AIM, longest <= LINE_AIM);
    vec![words.figure(), line]
}

/// Repeats requests that the server logs as refused.
pub async fn complaints(target: &Target<'_>, each: usize) -> Vec<Figure> {
    let lines = || target.server.process.log().lines().count();
    let before = lines();
    let mut words = Words::default();
    for _ in 0..each {
        garbage(target.client.address).await;
        words.extend([target.client.post("/nothing", &[]).await.word()]);
        words.extend([target.client.post("/validate", b"{}").await.word()]);
    }
    let lines = lines() - before;
    vec![words.figure(), Figure::new(format!("{lines} log lines")).aim(LINES_AIM, lines <= LINES_AIM)]
}
