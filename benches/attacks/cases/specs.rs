//! Hostile credential specs, and answers without an end where they are listed and watched.

use std::time::Duration;

use futures::{
    future::join_all,
    stream::{self, StreamExt as _},
};
use gmsa_test_support::control_plane::example;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Figure, Target};
use crate::{
    report::Words,
    reviews,
    support::{Fault, SimulatedApi, Verb, credential_spec, eventually},
};

const SPECS: &str = "/gmsacredentialspecs?";
/// Seconds in which a replica must be ready.
const READY_AIM: f64 = 30.0;
/// Reviews of pods that name the credential specs, and how many at once.
const REVIEWS: usize = 96;
const AT_ONCE: usize = 32;
/// Reads of these take long.
const SLOW: &str = "gmsacredentialspecs/slow-";
/// What authors make together: objects as large as etcd takes them, and more pod-sized ones than memory keeps.
const LARGE: usize = 48;
const LONGEST: usize = 420;

/// Objects of this size.
pub fn of_bytes(api: &SimulatedApi, kind: &str, number: usize, bytes: usize) {
    for n in 0..number {
        api.apply(credential_spec(&format!("{kind}-{n}"), json!({"is": n, "text": "x".repeat(bytes)})));
    }
}

/// Entries that take a hundred times as much when they are parsed.
pub fn of_entries(api: &SimulatedApi, entries: usize) {
    api.apply(credential_spec("hostile-0", json!({"list": vec![json!({"a": 0}); entries]})));
}

pub fn by_authors(api: &SimulatedApi) {
    of_bytes(api, "large", LARGE, 1_550_000);
    of_bytes(api, "longest", LONGEST, 60_000);
    api.fault(Verb::Get, SLOW, usize::MAX, Fault::Delay(Duration::from_secs(5)));
}

/// Posts `deployments` that name 24 of the large credential specs, and as many that name 24 of the longest. On each of
/// `connections` it posts one of a few kilobytes, with a slow look-up and as many and as small containers as possible.
pub async fn named_by(target: &Target<'_>, deployments: usize, connections: usize) -> Vec<Figure> {
    const NAMES: usize = 24;
    let named = |kind: &str, number: usize, of: usize| {
        let names: Vec<String> = (0..NAMES).map(|n| format!("{kind}-{}", (number * NAMES + n) % of)).collect();
        reviews::deployment(&names, 0)
    };
    let slow = (0..connections).map(|n| reviews::deployment(&[format!("slow-{n}")], 999));
    let large = (0..deployments).flat_map(|n| [named("large", n, LARGE), named("longest", n, LONGEST)]);
    let mut words = Words::default();
    for _ in 0..3 {
        let posts = slow.clone().chain(large.clone());
        let posts = posts.map(async |body| target.client.post("/validate-workload", &body).await.word());
        words.extend(join_all(posts).await);
    }
    forget(target);
    vec![words.figure()]
}

/// Pages that are empty and never the last ones.
pub fn endless_answers(api: &SimulatedApi) {
    let empty: Value = json!({"metadata": {"resourceVersion": "7", "continue": "more"}, "items": []});
    api.fault(Verb::List, SPECS, usize::MAX, Fault::Object(empty));
}

/// Asks for pods that name the credential specs with which the server started.
pub async fn started(target: &Target<'_>, specs: usize) -> Vec<Figure> {
    let reviews = (0..REVIEWS).map(|n| reviews::one_name(&format!("hostile-{}", n % specs)));
    let allowed = stream::iter(reviews)
        .map(async |review| target.client.post("/mutate", &review).await.word())
        .buffer_unordered(AT_ONCE)
        .filter(|word| std::future::ready(word == "allowed"))
        .count()
        .await;
    forget(target);
    vec![ready(target), Figure::new(format!("{allowed} of {REVIEWS} pods allowed")).aim("all", allowed == REVIEWS)]
}

/// Lines of 64 MiB on each watch, after a list.
pub async fn endless_lines(target: &Target<'_>) -> Vec<Figure> {
    // The pauses after failures grow, and the lists before have failed too.
    const TIMES: usize = 2;
    sleep(Duration::from_secs(5)).await;
    target.api.heal();
    let line: &str = "x".repeat(64 << 20).leak();
    target.api.fault(Verb::Watch, SPECS, TIMES, Fault::Text(200, line));
    // Otherwise the watch that is under way ends within a minute.
    target.api.cut_watches();
    eventually("the watches are read", || target.api.count(Verb::Watch, SPECS) > TIMES).await;
    forget(target);
    vec![ready(target), Figure::new(format!("{TIMES} lines refused"))]
}

fn ready(target: &Target<'_>) -> Figure {
    Figure::at_most(target.ready.as_secs_f64(), 1, READY_AIM, " s until ready")
}

/// The next server starts in a cluster without them.
fn forget(target: &Target<'_>) {
    target.api.restore(vec![example()]);
}
