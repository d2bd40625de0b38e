//! Hostile credential specs, and answers without an end where they are listed and watched.

use std::time::Duration;

use futures::{
    future::join_all,
    stream::{self, StreamExt as _},
};
use serde_json::{Value, json};

use super::{Figure, Target, bodies::Words};
use crate::{
    reviews,
    support::{Fault, SimulatedApi, Verb, credential_spec, eventually},
};

const SPECS: &str = "/gmsacredentialspecs?";
/// Seconds in which a replica must be ready.
const READY_AIM: f64 = 30.0;
/// Reviews of pods that name the credential specs, and how many at once.
const REVIEWS: usize = 96;
const AT_ONCE: usize = 32;

fn apply(api: &SimulatedApi, number: usize, contents: impl Fn(usize) -> Value) {
    for n in 0..number {
        api.apply(credential_spec(&format!("hostile-{n}"), contents(n)));
    }
}

/// Objects almost as large as etcd takes them.
pub fn large(api: &SimulatedApi, number: usize) {
    apply(api, number, |n| json!({"is": n, "text": "x".repeat(1_400_000)}));
}

/// Objects whose contents a pod can carry.
pub fn valid(api: &SimulatedApi, number: usize, bytes: usize) {
    apply(api, number, |n| json!({"is": n, "text": "x".repeat(bytes)}));
}

/// What authors of credential specs and of pods make together: objects as large as etcd takes them, and more than memory keeps of
/// those that a pod can carry.
pub fn by_authors(api: &SimulatedApi) {
    for n in 0..48 {
        api.apply(credential_spec(&format!("large-{n}"), json!({"is": n, "text": "x".repeat(1_550_000)})));
    }
    for n in 0..420 {
        api.apply(credential_spec(&format!("longest-{n}"), json!({"is": n, "text": "x".repeat(60_000)})));
    }
    api.fault(Verb::Get, SLOW, usize::MAX, Fault::Delay(Duration::from_secs(5)));
}

/// Reads of these take long.
const SLOW: &str = "gmsacredentialspecs/slow-";

/// Posts so many Deployments that name 24 of the large credential specs, and so many that name 24 of the longest; and on so many
/// connections one of a few kilobytes whose look-up takes long and whose containers are as many and as small as can be.
pub async fn named_by(target: &Target<'_>, deployments: usize, connections: usize) -> Vec<Figure> {
    const NAMES: usize = 24;
    let named = |kind: &str, number: usize, of: usize| {
        let names: Vec<String> = (0..NAMES).map(|n| format!("{kind}-{}", (number * NAMES + n) % of)).collect();
        reviews::deployment(&names, 0)
    };
    let slow = (0..connections).map(|n| reviews::deployment(&[format!("slow-{n}")], 999));
    let large = (0..deployments).flat_map(|n| [named("large", n, 48), named("longest", n, 420)]);
    let mut words = Words::default();
    for _ in 0..3 {
        let posts = slow.clone().chain(large.clone()).map(|body| target.client.post("/validate-workload", body));
        join_all(posts).await.into_iter().for_each(|answer| words.add(answer.word()));
    }
    forget(target);
    vec![words.figure()]
}

/// Entries that take a hundred times as much when they are parsed.
pub fn many_entries(api: &SimulatedApi) {
    apply(api, 1, |_| json!({"list": vec![json!({"a": 0}); 170_000]}));
}

/// Pages that are empty and never the last ones.
pub fn endless_answers(api: &SimulatedApi) {
    let empty = json!({"metadata": {"resourceVersion": "7", "continue": "more"}, "items": []});
    api.fault(Verb::List, SPECS, usize::MAX, Fault::Object(empty));
}

/// Asks for pods that name the credential specs with which the server started.
pub async fn started(target: &Target<'_>, specs: usize) -> Vec<Figure> {
    let answers: Vec<bool> = stream::iter(0..REVIEWS)
        .map(|n| target.client.post("/mutate", reviews::one_name(&format!("hostile-{}", n % specs))))
        .buffer_unordered(AT_ONCE)
        .map(|answer| answer.word() == "allowed")
        .collect()
        .await;
    forget(target);
    let allowed = answers.iter().filter(|allowed| **allowed).count();
    vec![ready(target), Figure::new(format!("{allowed} of {REVIEWS} pods allowed")).aim("all", allowed == REVIEWS)]
}

/// Lines of 64 MiB on each watch, after a list.
pub async fn endless_lines(target: &Target<'_>) -> Vec<Figure> {
    // The pauses after failures grow, and the lists before have failed too.
    const TIMES: usize = 2;
    tokio::time::sleep(Duration::from_secs(5)).await;
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
    target.api.restore(vec![reviews::credential_spec()]);
}
