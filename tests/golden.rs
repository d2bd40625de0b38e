//! The golden cases through the decision core, over TLS, and against the program in standalone mode.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

#[path = "support/golden.rs"]
mod golden;

use std::{collections::HashMap, path::PathBuf};

use futures::FutureExt as _;
use gmsa_webhook::{
    admission::{Facts, Needs, Review, Source, Webhook, decide, needs},
    authorizer::Authorizer as _,
    standalone::Standalone,
};
use tokio::time::Instant;

fn webhook(name: &str) -> Webhook {
    match name {
        "mutate" => Webhook::Mutate { random_hostname: false },
        "validate" => Webhook::Validate,
        other => panic!("no webhook is called {other}"),
    }
}

/// Files answer at once: no runtime is needed to ask them.
fn facts(cluster: &Standalone, needs: &Needs) -> Facts {
    let specs = needs.specs.iter().map(|name| (name.clone(), cluster.specs.fact(name), Source::Files));
    let uses = needs.uses.iter().map(|name| {
        let subject = needs.subject.as_ref().unwrap();
        let verdict = cluster.rbac.may_use(subject, name, Instant::now()).now_or_never().unwrap();
        (name.clone(), verdict.fact, verdict.source)
    });
    Facts { specs: specs.collect(), uses: uses.collect(), hostname: None }
}

#[test]
fn the_core_answers_every_case() {
    let mut clusters: HashMap<PathBuf, Standalone> = HashMap::new();
    golden::check(|case, name| {
        let cluster = clusters.entry(case.cluster.clone()).or_insert_with(|| Standalone::load(&case.cluster).unwrap());
        let review = Review::parse(&case.review).unwrap();
        let facts = facts(cluster, &needs(webhook(name), &review));
        review.answer(&decide(webhook(name), &review, &facts))
    });
}
