//! Hostile credential specs, and answers without an end where they are listed and watched.

use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use serde_json::{Value, json};

use super::{Figure, Target};
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
