//! Reviews whose look-ups cost more than the reviews: queues, and calls that are given up.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::future::join_all;
use tokio::{
    io::AsyncWriteExt as _,
    time::{sleep, timeout},
};

use super::{Figure, Target, bodies::Words};
use crate::{client::head, reviews, support::Verb};

const SPECS: &str = "/gmsacredentialspecs";

/// How long clients stay: an access review takes longer.
const STAY: Duration = Duration::from_millis(5);

/// How long reviews that only ask for warnings are posted.
const ADVICE_LASTS: Duration = Duration::from_secs(8);

/// Posts pods of one account with made-up names, on so many connections at once.
pub async fn made_up(target: &Target<'_>, connections: usize, each: usize, names: usize) -> Vec<Figure> {
    // API servers keep their connections.
    let lanes = (0..connections).map(async |lane| {
        let (mut kept, mut words) = (None, Vec::new());
        for number in lane * each..(lane + 1) * each {
            let review = reviews::made_up("crowd", number, names);
            words.push(target.client.post_on(&mut kept, "/validate", review).await.word());
        }
        words
    });
    let mut words = Words::default();
    join_all(lanes).await.into_iter().flatten().for_each(|word| words.add(word));
    vec![words.figure(), calls(target), watches(target)]
}

/// Posts reviews for a while, each of an account and of credential specs that nobody asked about before, on so many connections at once.
pub async fn for_advice(
    target: &Target<'_>,
    path: &str,
    connections: usize,
    review: impl Fn(usize) -> Bytes,
) -> Vec<Figure> {
    let (end, number, review) = (Instant::now() + ADVICE_LASTS, AtomicUsize::new(0), &review);
    let lanes = (0..connections).map(async |_| {
        let (mut kept, mut words) = (None, Vec::new());
        while Instant::now() < end {
            let number = number.fetch_add(1, Ordering::Relaxed);
            words.push(target.client.post_on(&mut kept, path, review(number)).await.word());
        }
        words
    });
    let mut words = Words::default();
    join_all(lanes).await.into_iter().flatten().for_each(|word| words.add(word));
    vec![words.figure(), calls(target), watches(target)]
}

/// Posts pods with less time than an access review takes.
pub async fn hasty(target: &Target<'_>, number: usize, at_once: usize) -> Vec<Figure> {
    let lanes = (0..at_once).map(|lane| async move {
        let (mut kept, mut words) = (None, Vec::new());
        for position in (lane..number).step_by(at_once) {
            let path = format!("/validate?timeout={}ms", 5 + position % 46);
            let review = reviews::made_up(&reviews::account(position), position, 1);
            words.push(target.client.post_on(&mut kept, &path, review).await.word());
        }
        words
    });
    let mut words = Words::default();
    join_all(lanes).await.into_iter().flatten().for_each(|word| words.add(word));
    vec![words.figure(), calls(target), watches(target)]
}

/// Posts pods, and disconnects before the answer.
pub async fn gone(target: &Target<'_>, number: usize, at_once: usize) -> Vec<Figure> {
    let lanes = (0..at_once).map(|lane| async move {
        for position in (lane..number).step_by(at_once) {
            let review = reviews::made_up(&reviews::account(position), position, 1);
            let visit = async {
                let mut connection = target.client.connect().await?;
                connection.write_all(head("/validate", review.len()).as_bytes()).await?;
                connection.write_all(&review).await?;
                connection.flush().await?;
                sleep(STAY).await;
                std::io::Result::Ok(())
            };
            // A refused connection is an outcome too: the bystander tells whether it matters.
            let _ = timeout(Duration::from_secs(5), visit).await;
        }
    });
    join_all(lanes).await;
    vec![calls(target), watches(target)]
}

fn calls(target: &Target<'_>) -> Figure {
    let reviews = target.api.count(Verb::Create, "localsubjectaccessreviews");
    Figure::new(format!("{reviews} access reviews"))
}

/// Watches and lists begun during the attack: a watch is asked to end within a minute, so one may be due.
fn watches(target: &Target<'_>) -> Figure {
    let (watches, lists) = (target.api.count(Verb::Watch, SPECS), target.api.count(Verb::List, SPECS));
    Figure::new(format!("{watches} watches and {lists} lists begun")).aim("1 and 0", watches <= 1 && lists == 0)
}
