//! Reviews whose look-ups cost more than the reviews: queues, and calls that are given up.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::future::join_all;
use serde::Deserialize;
use tokio::time::timeout;

use super::{Figure, Target};
use crate::{client::request, report::Words, reviews, support::Verb};

const SPECS: &str = "/gmsacredentialspecs";

/// How long clients stay: an access review takes longer.
const STAY: Duration = Duration::from_millis(5);

/// How long reviews are posted where their number is not given.
const LASTS: Duration = Duration::from_secs(8);

/// What is posted; each review names credential specs that none has named before.
#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Review {
    /// A pod whose contents are to be filled in.
    OfUnknownNames,
    /// A pod of one account, with contents.
    OfMadeUpNames,
    OfAMadeUpName,
    /// Of another account each: its answer has warnings alone.
    OfADeployment,
    OfATrial,
    /// With less time than an access review takes.
    InHaste,
}

impl Review {
    /// The path, and the body of the `number`th.
    fn of(self, number: usize) -> (String, Bytes) {
        let (path, body) = match self {
            Self::OfUnknownNames => ("/mutate", reviews::unknown_names(number)),
            Self::OfMadeUpNames => ("/validate", reviews::made_up("crowd", number, 24)),
            Self::OfAMadeUpName => ("/validate", reviews::made_up("crowd", number, 1)),
            Self::OfADeployment => ("/validate-workload?timeout=2s", reviews::workload(number)),
            Self::OfATrial => ("/validate", reviews::of_trial(number)),
            Self::InHaste => {
                let path = format!("/validate?timeout={}ms", 5 + number % 46);
                return (path, reviews::made_up(&reviews::account(number), number, 1));
            }
        };
        (path.to_owned(), body)
    }
}

/// Posts `reviews`, or as many as go in `LASTS`, on `connections` that are kept as API servers keep theirs.
pub async fn lookups(target: &Target<'_>, review: Review, connections: usize, reviews: Option<usize>) -> Vec<Figure> {
    let mut open = Vec::new();
    for _ in 0..connections {
        // One after the other, and before the first review, where handshakes are another attack.
        let early = review == Review::OfUnknownNames;
        open.push(if early { Some(target.client.connect().await.unwrap()) } else { None });
    }
    let (begun, next) = (Instant::now(), AtomicUsize::new(0));
    let lanes = open.into_iter().map(async |mut kept| {
        let mut words = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if reviews.map_or(begun.elapsed() >= LASTS, |reviews| number >= reviews) {
                return words;
            }
            let (path, body) = review.of(number);
            words.push(target.client.post_on(&mut kept, &path, &body).await.word());
        }
    });
    let mut words = Words::default();
    words.extend(join_all(lanes).await.into_iter().flatten());
    if review == Review::OfUnknownNames {
        let (reads, seconds) =
            (target.api.count(Verb::Get, "gmsacredentialspecs/unknown"), begun.elapsed().as_secs_f64());
        return vec![words.figure(), Figure::new(format!("{reads} reads at the API server in {seconds:.1} s"))];
    }
    vec![words.figure(), calls(target), watches(target)]
}

/// Posts pods, and disconnects before the answer.
pub async fn gone(target: &Target<'_>, number: usize, at_once: usize) -> Vec<Figure> {
    let lanes = (0..at_once).map(|lane| async move {
        for position in (lane..number).step_by(at_once) {
            let review = reviews::made_up(&reviews::account(position), position, 1);
            // A refused connection is an outcome too: the bystander tells whether it matters.
            let visit = request("/validate", &review);
            let _ = timeout(Duration::from_secs(5), target.client.send_and_leave(&visit, STAY)).await;
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
