//! Bodies that cost more than their size suggests.

use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use tokio::time::{Instant, sleep, timeout};

use super::{FLOOD_LASTS, Figure, Target};
use crate::{
    client::{Answer, PATIENCE, head, request},
    report::Words,
    reviews::MAX_BODY,
    support::https::read_answer,
};

/// How often an attack is repeated, so that a bystander's review falls into it.
const ROUNDS: usize = 3;

/// How long clients wait before they disconnect.
const STAY: Duration = Duration::from_millis(100);

/// How long the server may work on their reviews after that.
const SETTLE_LIMIT: Duration = Duration::from_secs(40);

/// Posts this many reviews at once, and again when all are answered.
pub async fn at_once(target: &Target<'_>, path: &str, body: Bytes, number: usize) -> Vec<Figure> {
    let mut words = Words::default();
    for _ in 0..ROUNDS {
        let posts = (0..number).map(|_| {
            let (client, path, body) = (target.client.clone(), path.to_owned(), body.clone());
            tokio::spawn(async move { client.post(&path, &body).await.word() })
        });
        words.extend(join_all(posts).await.into_iter().map(Result::unwrap));
    }
    vec![words.figure()]
}

/// Posts this many reviews at once, and disconnects before they are answered.
pub async fn left(target: &Target<'_>, path: &str, body: &[u8], number: usize) -> Vec<Figure> {
    let posts = (0..number).map(|_| {
        let (client, request) = (target.client.clone(), request(path, body));
        tokio::spawn(async move { client.send_and_leave(&request, STAY).await })
    });
    let sent = timeout(PATIENCE, join_all(posts)).await.unwrap_or_default();
    let sent = sent.into_iter().filter(|post| post.as_ref().is_ok_and(Result::is_ok)).count();
    let gone = Instant::now();
    settle(target).await;
    let seconds = gone.elapsed().as_secs_f64();
    vec![Figure::new(format!("{sent} of {number} sent whole; the server went on for {seconds:.1} s"))]
}

/// Waits until the server does little more than answer the bystander.
async fn settle(target: &Target<'_>) {
    const STEP: Duration = Duration::from_millis(500);
    let begun = Instant::now();
    while begun.elapsed() < SETTLE_LIMIT {
        let before = target.server.process.cpu();
        sleep(STEP).await;
        if target.server.process.cpu().saturating_sub(before) < STEP.mul_f64(0.4) {
            break;
        }
    }
}

/// Sends all but the last byte of a body of each of these lengths, and again when it is refused.
pub async fn slow(target: &Target<'_>, lengths: &[usize]) -> Vec<Figure> {
    let end = Instant::now() + FLOOD_LASTS;
    let lanes = lengths.iter().map(async |&length| {
        let request = [head("/validate", length).as_bytes(), &vec![b' '; length - 1]].concat();
        let mut words = Vec::new();
        while Instant::now() < end {
            let exchange = async { Ok(read_answer(&mut target.client.send(&request).await?).await?.1) };
            words.push(Answer::within(PATIENCE, exchange).await.word());
        }
        words
    });
    let mut words = Words::default();
    words.extend(join_all(lanes).await.into_iter().flatten());
    vec![words.figure()]
}

/// Posts bodies that are too long, announced and in chunks, and reads only when all is written.
pub async fn over_the_limit(target: &Target<'_>) -> Vec<Figure> {
    const EACH: usize = 5;
    let length = MAX_BODY + (1 << 20);
    let announced = head("/validate", length);
    let chunked = announced.replace(&format!("content-length: {length}"), "transfer-encoding: chunked");
    let (body, size) = (vec![b' '; length], format!("{length:x}\r\n"));
    let announced = [announced.as_bytes(), &body].concat();
    let chunked = [chunked.as_bytes(), size.as_bytes(), &body, b"\r\n0\r\n\r\n"].concat();
    let mut figures = Vec::new();
    for (kind, request) in [("announced", announced), ("in chunks", chunked)] {
        let mut words = Words::default();
        for _ in 0..EACH {
            let exchange = async { Ok(read_answer(&mut target.client.send(&request).await?).await?.1) };
            words.extend([Answer::within(PATIENCE, exchange).await.word()]);
        }
        let all = words.are_all("413");
        figures.push(Figure::new(format!("{kind}: {words}")).aim("413", all));
    }
    figures
}
