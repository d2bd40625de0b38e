//! Limits on the calls in flight, asserted exactly: each kind of call has its own.

use std::sync::Arc;

use futures::future::join_all;
use gmsa_cluster::{
    apiserver::{ApiServer, CallKind},
    authorizer::{Authorization, Authorizer as _},
    resolver::{Freshness, Resolver as _},
};
use gmsa_core::{
    admission::{Review, Source, SpecFact, UseFact, Webhook},
    credspec,
};
use gmsa_webhook::server::thread::Thread;
use http::Request;
use serde_json::{Value, json};
use tokio::{
    task::{JoinSet, yield_now},
    time::Instant,
};

use super::{
    Duration, REVIEWS, SPECS, connect, service_account,
    setup::{DIFFER, MUTATE, Setup, WEB, create, describe, pod, simple},
    spec_name, within,
};
use crate::{
    reviews::slot,
    support::{Fault, Gate, PATIENCE, SimulatedApi, Verb},
};

const OF_ACCOUNT: usize = CallKind::AccessReview.share_with_queue();

const UNKNOWN: &str = "/gmsacredentialspecs/unknown-";
const KNOWN: &str = "/gmsacredentialspecs/spec-";
const DENIED: Authorization = Authorization { fact: UseFact::Denied { reason: None }, source: Source::Api };

/// Lets everything go on that can: both sides run on this thread, so what these rounds do not send waits for something.
async fn settle() {
    for _ in 0..10_000 {
        yield_now().await;
    }
}

#[tokio::test]
async fn reads_of_known_and_of_unknown_names_have_limits_of_their_own() {
    let names: Vec<String> = (0..100).map(|n| format!("spec-{n}")).collect();
    let setup = Setup::synced(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let gate = Gate::new();
    setup.api.fault(Verb::Get, SPECS, usize::MAX, Fault::Hold(gate.clone()));
    let mut asking = JoinSet::new();
    for name in (0..100).map(|n| format!("unknown-{n}")).chain(names) {
        let cache = Arc::clone(&setup.cache);
        asking.spawn(async move { cache.resolve(&spec_name(&name), Freshness::Live, within(PATIENCE)).await.fact });
    }
    setup.api.wait_for(Verb::Get, UNKNOWN, 8).await;
    setup.api.wait_for(Verb::Get, KNOWN, 24).await;
    settle().await;
    assert_eq!((setup.api.count(Verb::Get, UNKNOWN), setup.api.count(Verb::Get, KNOWN)), (8, 24));
    gate.open();
    let facts = asking.join_all().await;
    assert_eq!(facts.iter().filter(|fact| describe(fact) == "first").count(), 100);
    assert_eq!(facts.iter().filter(|fact| **fact == SpecFact::Missing).count(), 100);
}

/// Asks whether an account of the namespace `shop` may use a credential spec.
fn may_use(
    authorizer: &Arc<ApiServer>,
    account: &'static str,
    spec: usize,
    time: Duration,
) -> impl Future<Output = Authorization> + Send + use<> {
    let authorizer = Arc::clone(authorizer);
    async move {
        let (account, spec) = (service_account("shop", account), spec_name(&format!("spec-{spec}")));
        authorizer.may(&account, credspec::Verb::Use, &spec, within(time)).await
    }
}

#[tokio::test]
async fn a_call_that_was_sent_keeps_its_permit_when_its_caller_has_gone() {
    let api = SimulatedApi::start().await;
    let gate = Gate::new();
    api.fault(Verb::Create, REVIEWS, 8, Fault::Hold(gate.clone()));
    let authorizer = connect(&api);
    let ask = |questions: usize| -> JoinSet<Authorization> {
        (0..questions).map(|n| may_use(&authorizer, "crowd", n, PATIENCE)).collect()
    };
    let mut gone = ask(OF_ACCOUNT);
    api.wait_for(Verb::Create, REVIEWS, 8).await;
    gone.shutdown().await;
    // The waiting calls have left the queue, so these find room. The API server still works on eight.
    let asking = ask(OF_ACCOUNT - 8);
    settle().await;
    assert_eq!(api.count(Verb::Create, REVIEWS), 8);
    gate.open();
    assert_eq!(asking.join_all().await, vec![DENIED; OF_ACCOUNT - 8]);
    assert_eq!(api.count(Verb::Create, REVIEWS), OF_ACCOUNT);
}

#[tokio::test]
async fn watches_have_a_connection_that_no_call_shares() {
    let api = SimulatedApi::start_with_tls().await;
    let server = connect(&api);
    for connections in [1, 2, 2] {
        assert_eq!(may_use(&server, "a", 0, PATIENCE).await, DENIED);
        assert_eq!(api.connections(), connections);
        let list = Request::get(SPECS).body(Vec::new()).unwrap();
        server.watch_client().request::<Value>(list).await.unwrap();
        assert_eq!(api.connections(), 2);
    }
}

#[tokio::test]
async fn calls_that_time_out_do_not_break_their_connection() {
    const LATE: Duration = Duration::from_millis(50);
    let api = SimulatedApi::start_with_tls().await;
    let authorizer = connect(&api);
    assert_eq!(may_use(&authorizer, "a", 0, PATIENCE).await, DENIED);
    // Most answers come just too late: by default a client that has had 1,024 of them closes the connection.
    api.fault(Verb::Create, REVIEWS, usize::MAX, Fault::Delay(LATE));
    while api.count(Verb::Create, REVIEWS) < 1_100 {
        let hasty = |account| may_use(&authorizer, account, 0, LATE);
        join_all((0..8).flat_map(|_| ["a", "b", "c", "d"].map(hasty))).await;
    }
    assert_eq!(may_use(&authorizer, "a", 0, PATIENCE).await, DENIED);
    assert_eq!(api.connections(), 1);
}

/// A pod that names 24 credential specs that do not exist.
fn hostile(namespace: &str, number: usize, contents: Option<&str>) -> Value {
    let container = |n: usize| {
        let name = format!("unknown-{number}-{n}");
        json!({"name": format!("c{n}"), "securityContext": slot(Some(&name), contents)})
    };
    create(namespace, &json!({"containers": (0..24).map(container).collect::<Vec<_>>()}))
}

fn flood(replica: &Setup, webhook: Webhook, contents: Option<&'static str>) -> JoinSet<()> {
    let flood = (0..1000).map(|number| {
        let reviewer = replica.reviewer.clone();
        async move {
            let body = hostile("crowd", number, contents).to_string();
            let review = Arc::new(Review::parse(body.as_bytes(), webhook).unwrap());
            // None of them gives up on its own.
            let started = Instant::now();
            let deadline = started + Duration::from_secs(3600);
            reviewer.decide(webhook, &review, &Thread::Serving, started, deadline).await;
        }
    });
    flood.collect()
}

#[tokio::test]
async fn a_thousand_reviews_of_unknown_names_hold_no_other_up() {
    let replica = Setup::replica().await;
    // No read of an unknown name ever ends.
    let gate = Gate::new();
    replica.api.fault(Verb::Get, UNKNOWN, usize::MAX, Fault::Hold(gate.clone()));
    replica.api.grant_only(&[("crowd", "till", "web"), ("crowd", "till", "db")]);
    let mut flood = flood(&replica, MUTATE, None);
    replica.api.wait_for(Verb::Get, UNKNOWN, 8).await;
    // From memory; with an access review in the very namespace of the flood; with a read of a known name.
    replica.allows(MUTATE, &pod("shop", "till", false)).await;
    replica.allows(Webhook::Validate, &pod("crowd", "till", true)).await;
    replica.denies(Webhook::Validate, &simple("crowd", "till", r#"{"is": "other"}"#), 422, DIFFER).await;
    assert_eq!(replica.api.count(Verb::Get, UNKNOWN), 8);
    assert_eq!(replica.calls(), (9, 2));
    // A question without a caller is not asked.
    flood.shutdown().await;
    gate.open();
    settle().await;
    assert_eq!(replica.api.count(Verb::Get, UNKNOWN), 8);
    replica.denies(MUTATE, &hostile("shop", 0, None), 404, "cred spec unknown-0-0 does not exist").await;
}

#[tokio::test]
async fn a_thousand_reviews_for_one_account_leave_access_reviews_to_the_others() {
    let replica = Setup::replica().await;
    // The same name in another namespace is another account.
    replica.api.grant_only(&[("shop", "default", "web"), ("shop", "default", "db")]);
    let gate = Gate::new();
    replica.api.fault(Verb::Create, "/namespaces/crowd/", usize::MAX, Fault::Hold(gate.clone()));
    let mut flood = flood(&replica, Webhook::Validate, Some(WEB));
    replica.api.wait_for(Verb::Create, REVIEWS, 8).await;
    replica.allows(Webhook::Validate, &pod("shop", "default", true)).await;
    assert_eq!(replica.api.count(Verb::Create, "/namespaces/crowd/"), 8);
    flood.shutdown().await;
    gate.open();
    settle().await;
    assert_eq!(replica.api.count(Verb::Create, "/namespaces/crowd/"), 8);
}
