//! Counted calls: how many questions to the API server each review costs, from the review to the decision.

use gmsa_core::admission::Webhook;
use serde_json::{Value, json};

use super::{
    REVIEWS, SPECS,
    replica::{DIFFER, MUTATE, Replica, WEB, create, pod, simple},
    spec,
};
use crate::support::{Fault, Verb};

#[tokio::test]
async fn validating_costs_one_access_review_for_each_namespace_account_and_spec() {
    let replica = Replica::start().await;
    for _ in 0..50 {
        replica.allows(Webhook::Validate, &pod("shop", "till", true)).await;
        replica.allows(Webhook::Validate, &simple("shop", "clerk", WEB)).await;
        replica.allows(Webhook::Validate, &simple("mall", "till", WEB)).await;
    }
    let asked = |request: crate::support::Recorded| {
        let text = |pointer| request.body.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
        (text("/spec/user"), text("/spec/resourceAttributes/name"))
    };
    let mut asked: Vec<_> = replica.api.requests(Verb::Create, REVIEWS).into_iter().map(asked).collect();
    asked.sort();
    let expected = [("mall:till", "web"), ("shop:clerk", "web"), ("shop:till", "db"), ("shop:till", "web")];
    let expected = expected.map(|(user, name)| (format!("system:serviceaccount:{user}"), name.to_owned()));
    assert_eq!(asked, expected);
    assert_eq!(replica.calls(), (0, 4));
}

#[tokio::test]
async fn what_memory_knows_and_what_needs_no_answer_costs_nothing() {
    let replica = Replica::start().await;
    let plain = create("shop", &json!({"containers": [{"name": "a"}]}));
    let linux = create("shop", &json!({"os": {"name": "linux"}, "containers": [{"name": "a"}]}));
    let mut update = pod("shop", "till", true);
    update["request"]["operation"] = json!("UPDATE");
    update["request"]["oldObject"] = update["request"]["object"].clone();
    for review in [&plain, &linux, &update] {
        replica.allows(MUTATE, review).await;
        replica.allows(Webhook::Validate, review).await;
    }
    for expanded in [true, false] {
        replica.allows(MUTATE, &pod("shop", "till", expanded)).await;
    }
    assert_eq!(replica.calls(), (0, 0));
}

#[tokio::test]
async fn contents_that_differ_from_memory_cost_one_read() {
    let replica = Replica::start().await;
    replica.denies(Webhook::Validate, &simple("shop", "till", r#"{"is": "other"}"#), 422, DIFFER).await;
    assert_eq!(replica.calls(), (1, 1));
    // The watch is connected, and silent; another replica has expanded the new contents.
    replica.api.fault(Verb::Watch, SPECS, usize::MAX, Fault::Silence);
    replica.api.cut_watches();
    replica.api.wait_for(Verb::Watch, SPECS, 1).await;
    replica.is_warm().await;
    replica.api.apply(spec("web", "new"));
    replica.allows(Webhook::Validate, &simple("mall", "till", r#"{"is":"new"}"#)).await;
    assert_eq!(replica.calls(), (1, 1));
}
