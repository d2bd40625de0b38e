//! Large numbers of cheap requests: reviews, lines for the log.

use tokio::task::JoinSet;

use super::{Figure, Target, held::garbage};
use crate::{report::Words, reviews};

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
    // The bystander's pods have a line each, as an audit needs.
    let lines = || target.server.process.log().lines().filter(|line| !line.contains("allowed")).count();
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
