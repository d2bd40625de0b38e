//! Bodies that cost more than their size suggests.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use futures::future::join_all;
use tokio::{
    io::AsyncWriteExt as _,
    time::{Instant, sleep, timeout},
};

use super::{Figure, Target};
use crate::client::{Answer, PATIENCE, head, read_answer};

/// How often an attack is repeated, so that a bystander's review falls into it.
const ROUNDS: usize = 3;

/// CPU time that reviews may cost whose clients have disconnected, in seconds.
pub const LEFT_CPU_AIM: f64 = 2.0;

/// How long clients wait before they disconnect.
const STAY: Duration = Duration::from_millis(100);

/// How long the server may work on their reviews after that.
const SETTLE_LIMIT: Duration = Duration::from_secs(40);

/// Posts this many reviews at once, and again when all are answered.
pub async fn at_once(target: &Target<'_>, path: &'static str, body: Bytes, number: usize) -> Vec<Figure> {
    let mut words = Words::default();
    for _ in 0..ROUNDS {
        let posts = (0..number).map(|_| {
            let (client, body) = (target.client.clone(), body.clone());
            tokio::spawn(async move { client.post(path, body).await.word() })
        });
        for word in join_all(posts).await {
            words.add(word.unwrap());
        }
    }
    vec![words.figure()]
}

/// Posts this many reviews at once, and disconnects before they are answered.
pub async fn left(target: &Target<'_>, path: &'static str, body: Bytes, number: usize) -> Vec<Figure> {
    let posts = (0..number).map(|_| {
        let (client, body) = (target.client.clone(), body.clone());
        tokio::spawn(async move {
            let mut stream = client.connect().await?;
            stream.write_all(head(path, body.len()).as_bytes()).await?;
            stream.write_all(&body).await?;
            stream.flush().await?;
            sleep(STAY).await;
            std::io::Result::Ok(())
        })
    });
    let sent = timeout(PATIENCE, join_all(posts)).await.unwrap_or_default();
    let sent = sent.into_iter().filter(|post| post.as_ref().is_ok_and(Result::is_ok)).count();
    let gone = Instant::now();
    settle(target).await;
    vec![Figure::new(format!(
        "{sent} of {number} sent whole; the server went on for {:.1} s",
        gone.elapsed().as_secs_f64()
    ))]
}

/// Waits until the server does little more than answer the bystander.
async fn settle(target: &Target<'_>) {
    const STEP: Duration = Duration::from_millis(500);
    let begun = Instant::now();
    while begun.elapsed() < SETTLE_LIMIT {
        let before = target.server.cpu();
        sleep(STEP).await;
        if target.server.cpu() - before < STEP.as_secs_f64() * 0.4 {
            break;
        }
    }
}

/// Posts bodies of this length, announced and in chunks, and reads only when all is written.
pub async fn over_the_limit(target: &Target<'_>, length: usize) -> Vec<Figure> {
    const EACH: usize = 5;
    let announced = head("/validate", length);
    let chunked = announced.replace(&format!("content-length: {length}"), "transfer-encoding: chunked");
    let body = vec![b' '; length];
    let mut chunks = format!("{length:x}\r\n").into_bytes();
    chunks.extend_from_slice(&body);
    chunks.extend_from_slice(b"\r\n0\r\n\r\n");
    let mut figures = Vec::new();
    for (kind, head, body) in [("announced", &announced, &body), ("in chunks", &chunked, &chunks)] {
        let mut words = Words::default();
        for _ in 0..EACH {
            let exchange = async {
                let mut stream = target.client.connect().await?;
                stream.write_all(head.as_bytes()).await?;
                stream.write_all(body).await?;
                stream.flush().await?;
                read_answer(&mut stream).await
            };
            words.add(Answer(timeout(PATIENCE, exchange).await.ok().and_then(Result::ok)).word());
        }
        let all = words.are_all("413");
        figures.push(Figure::new(format!("{kind}: {words}")).aim("413", all));
    }
    figures
}

/// How many times each answer came.
#[derive(Default)]
pub struct Words(BTreeMap<String, usize>);

impl Words {
    pub fn add(&mut self, word: String) {
        *self.0.entry(word).or_default() += 1;
    }

    pub fn are_all(&self, word: &str) -> bool {
        self.0.keys().all(|seen| seen == word)
    }

    pub fn figure(&self) -> Figure {
        Figure::new(self.to_string())
    }
}

impl std::fmt::Display for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (position, (word, times)) in self.0.iter().enumerate() {
            write!(f, "{}{times} × {word}", if position > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}
