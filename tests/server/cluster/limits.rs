//! Limits on the calls in flight, asserted exactly: each kind of call has its own.

use std::sync::Arc;

use futures::future::join_all;
use gmsa_cluster::{
    apiserver::{ApiServer, PER_ACCOUNT},
    authorizer::{Authorization, Authorizer as _},
    resolver::{Freshness, Resolver as _},
};
use gmsa_core::admission::{Review, Source, SpecFact, UseFact, Webhook};
use gmsa_webhook::server::threads::Thread;
use http::Request;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Instant};

use super::{
    Duration, REVIEWS, SOON, SPECS, connect,
    pods::{WEB, create, options, pod, simple},
    replica::{MUTATE, Replica},
    setup::{Setup, describe},
    spec_name, subject, timed_out, within,
};
use crate::support::{Fault, Gate, PATIENCE, SimulatedApi, Table, Verb, credential_spec};

const UNKNOWN: &str = "/gmsacredentialspecs/unknown-";
const KNOWN: &str = "/gmsacredentialspecs/spec-";

/// Lets everything go on that can; nothing more is sent after that.
async fn settle() {
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Asks for `names` at once; the answers are held back.
fn ask(setup: &Setup, names: impl Iterator<Item = String>, freshness: Freshness) -> JoinSet<SpecFact> {
    let mut asking = JoinSet::new();
    for name in names {
        let cache = Arc::clone(&setup.cache);
        asking.spawn(async move { cache.resolve(&spec_name(&name), freshness, within(PATIENCE)).await.fact });
    }
    asking
}

#[tokio::test]
async fn reads_of_known_and_of_unknown_names_have_limits_of_their_own() {
    let names: Vec<String> = (0..100).map(|n| format!("spec-{n}")).collect();
    let setup = Setup::synced(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let gate = Gate::new();
    setup.api.fault(Verb::Get, SPECS, usize::MAX, Fault::Hold(gate.clone()));
    let unknown = ask(&setup, (0..100).map(|n| format!("unknown-{n}")), Freshness::Any);
    let known = ask(&setup, names.into_iter(), Freshness::Live);
    setup.api.wait_for(Verb::Get, UNKNOWN, 8).await;
    setup.api.wait_for(Verb::Get, KNOWN, 24).await;
    settle().await;
    assert_eq!((setup.api.count(Verb::Get, UNKNOWN), setup.api.count(Verb::Get, KNOWN)), (8, 24));
    gate.open();
    assert_eq!(unknown.join_all().await, vec![SpecFact::Missing; 100]);
    assert!(known.join_all().await.iter().all(|fact| describe(fact) == "first"));
}

#[tokio::test]
async fn names_that_were_found_are_known_without_a_list_too() {
    let api = SimulatedApi::start().await;
    for n in 0..30 {
        api.apply(credential_spec(&format!("spec-{n}"), json!({"is": "first"})));
    }
    api.fault(Verb::List, SPECS, usize::MAX, Fault::forbidden());
    let setup = Setup::start(api);
    setup.becomes("live").await;
    let names = || (0..30).map(|n| format!("spec-{n}"));
    ask(&setup, names(), Freshness::Any).join_all().await;
    setup.api.forget_requests();
    let gate = Gate::new();
    setup.api.fault(Verb::Get, SPECS, usize::MAX, Fault::Hold(gate.clone()));
    let asking = ask(&setup, names(), Freshness::Any);
    setup.api.wait_for(Verb::Get, KNOWN, 24).await;
    settle().await;
    assert_eq!(setup.api.count(Verb::Get, KNOWN), 24);
    gate.open();
    assert!(asking.join_all().await.iter().all(|fact| describe(fact) == "first"));
}

#[tokio::test]
async fn access_reviews_have_a_limit_and_each_account_a_quarter_of_it() {
    let api = SimulatedApi::start().await;
    let gate = Gate::new();
    api.fault(Verb::Create, REVIEWS, usize::MAX, Fault::Hold(gate.clone()));
    let authorizer = connect(&api);
    let mut asking = JoinSet::new();
    let mut ask =
        |account, questions| (0..questions).for_each(|n| drop(asking.spawn(may_use(&authorizer, account, n))));
    ask("crowd", PER_ACCOUNT);
    api.wait_for(Verb::Create, REVIEWS, 8).await;
    settle().await;
    assert_eq!(api.count(Verb::Create, REVIEWS), 8);
    for account in ["a", "b", "c", "d", "e"] {
        ask(account, 20);
    }
    api.wait_for(Verb::Create, REVIEWS, 32).await;
    settle().await;
    assert_eq!(api.count(Verb::Create, REVIEWS), 32);
    // A permit that does not come is a time-out, which says so.
    let late = within(Duration::from_millis(200));
    let late = authorizer.may_use(&subject("late", "default"), &spec_name("web"), late).await;
    let cause = "32 other calls to the API server were under way for 0.2 s";
    assert_eq!(late, Authorization { fact: UseFact::Failed(timed_out(cause)), source: Source::Api });
    assert_eq!(api.count(Verb::Create, REVIEWS), 32);
    gate.open();
    let denied = Authorization { fact: UseFact::Denied { reason: None }, source: Source::Api };
    assert_eq!(asking.join_all().await, vec![denied; PER_ACCOUNT + 5 * 20]);
}

/// Asks whether an account of the namespace `shop` may use a credential spec.
fn may_use(
    authorizer: &Arc<ApiServer>,
    account: &'static str,
    spec: usize,
) -> impl Future<Output = Authorization> + Send + use<> {
    let authorizer = Arc::clone(authorizer);
    async move {
        let (subject, spec) = (subject("shop", account), spec_name(&format!("spec-{spec}")));
        authorizer.may_use(&subject, &spec, within(PATIENCE)).await
    }
}

#[tokio::test]
async fn a_call_that_was_sent_keeps_its_permit_when_its_caller_has_gone() {
    let api = SimulatedApi::start().await;
    let gate = Gate::new();
    api.fault(Verb::Create, REVIEWS, 8, Fault::Hold(gate.clone()));
    let authorizer = connect(&api);
    let mut gone = JoinSet::new();
    (0..PER_ACCOUNT).for_each(|n| drop(gone.spawn(may_use(&authorizer, "crowd", n))));
    api.wait_for(Verb::Create, REVIEWS, 8).await;
    gone.shutdown().await;
    // Those that waited have left the queue, so these find room. The API server still works on eight.
    let mut asking = JoinSet::new();
    (0..PER_ACCOUNT - 8).for_each(|n| drop(asking.spawn(may_use(&authorizer, "crowd", n))));
    settle().await;
    assert_eq!(api.count(Verb::Create, REVIEWS), 8);
    gate.open();
    let denied = Authorization { fact: UseFact::Denied { reason: None }, source: Source::Api };
    assert_eq!(asking.join_all().await, vec![denied; PER_ACCOUNT - 8]);
    assert_eq!(api.count(Verb::Create, REVIEWS), PER_ACCOUNT);
}

#[tokio::test]
async fn watches_have_a_connection_that_no_call_shares() {
    let api = SimulatedApi::start_with_tls().await;
    let server = connect(&api);
    let denied = Authorization { fact: UseFact::Denied { reason: None }, source: Source::Api };
    for connections in [1, 2, 2] {
        assert_eq!(may_use(&server, "a", 0).await, denied);
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
    let denied = Authorization { fact: UseFact::Denied { reason: None }, source: Source::Api };
    assert_eq!(may_use(&authorizer, "a", 0).await, denied);
    // Most answers come just too late: by default a client that has had 1,024 of them closes the connection.
    api.fault(Verb::Create, REVIEWS, usize::MAX, Fault::Delay(LATE));
    while api.count(Verb::Create, REVIEWS) < 1_100 {
        let hasty = |account| {
            let authorizer = Arc::clone(&authorizer);
            async move {
                let (subject, spec) = (subject("shop", account), spec_name("web"));
                authorizer.may_use(&subject, &spec, within(LATE)).await
            }
        };
        join_all((0..8).flat_map(|_| ["a", "b", "c", "d"].map(hasty))).await;
    }
    assert_eq!(may_use(&authorizer, "a", 0).await, denied);
    assert_eq!(api.connections(), 1);
}

/// A pod that names 24 credential specs that do not exist.
fn hostile(namespace: &str, number: usize, contents: Option<&str>) -> Value {
    let container = |n: usize| {
        let name = format!("unknown-{number}-{n}");
        json!({"name": format!("c{n}"), "securityContext": options(&name, contents)})
    };
    let containers: Vec<Value> = (0..24).map(container).collect();
    create(namespace, &json!({"containers": containers}))
}

fn flood(replica: &Replica, reviews: usize, webhook: Webhook, contents: Option<&'static str>) -> JoinSet<()> {
    let mut flood = JoinSet::new();
    for number in 0..reviews {
        let reviewer = replica.reviewer.clone();
        flood.spawn(async move {
            let body = hostile("crowd", number, contents).to_string();
            let review = Arc::new(Review::parse(body.as_bytes(), webhook).unwrap());
            // None of them gives up on its own.
            let now = Instant::now();
            reviewer.decide(webhook, &review, &Thread::Serving, now, now + Duration::from_secs(3600)).await;
        });
    }
    flood
}

#[tokio::test]
async fn a_thousand_reviews_of_unknown_names_hold_no_other_up() {
    let replica = Replica::start().await;
    // No read of an unknown name ever ends.
    let gate = Gate::new();
    replica.api.fault(Verb::Get, UNKNOWN, usize::MAX, Fault::Hold(gate.clone()));
    replica.api.authorize_by(Table::of(&[("crowd", "till", "web"), ("crowd", "till", "db")]));
    let mut flood = flood(&replica, 1000, MUTATE, None);
    replica.api.wait_for(Verb::Get, UNKNOWN, 8).await;
    // From memory; with an access review in the very namespace of the flood; with a read of a known name.
    replica.allows(MUTATE, &pod("shop", "till", false)).await;
    replica.allows(Webhook::Validate, &pod("crowd", "till", true)).await;
    let differ = "the GMSA cred spec contents for pod \"pod\" does not match the contents of GMSA resource \"web\": \
                  they hold other values";
    replica.denies(Webhook::Validate, &simple("crowd", "till", r#"{"is": "other"}"#), 422, differ).await;
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
    let replica = Replica::start().await;
    // The same name in another namespace is another account.
    replica.api.authorize_by(Table::of(&[("shop", "default", "web"), ("shop", "default", "db")]));
    let gate = Gate::new();
    replica.api.fault(Verb::Create, "/namespaces/crowd/", usize::MAX, Fault::Hold(gate.clone()));
    let mut flood = flood(&replica, 1000, Webhook::Validate, Some(WEB));
    replica.api.wait_for(Verb::Create, REVIEWS, 8).await;
    replica.allows(Webhook::Validate, &pod("shop", "default", true)).await;
    assert_eq!(replica.api.count(Verb::Create, "/namespaces/crowd/"), 8);
    flood.shutdown().await;
    gate.open();
    settle().await;
    assert_eq!(replica.api.count(Verb::Create, "/namespaces/crowd/"), 8);
}

#[tokio::test]
async fn a_review_that_waits_for_a_permit_ends_by_its_deadline() {
    let replica = Replica::start().await;
    replica.api.fault(Verb::Get, UNKNOWN, usize::MAX, Fault::Silence);
    // Few enough that another one may wait.
    let mut flood = flood(&replica, 10, MUTATE, None);
    replica.api.wait_for(Verb::Get, UNKNOWN, 8).await;
    // Nothing else has anything to do: the clock jumps to the deadline.
    tokio::time::pause();
    let asked = Instant::now();
    let decision = replica.decide(MUTATE, &hostile("shop", 1, None)).await;
    assert!(!decision.is_allowed(), "{decision:?}");
    assert!(asked.elapsed() <= SOON + Duration::from_secs(5), "{:?}", asked.elapsed());
    tokio::time::resume();
    flood.shutdown().await;
}
