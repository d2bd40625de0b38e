//! Counted calls: how many questions to the API server each review costs, from the review to the decision.

use gmsa_core::admission::{Verdict, Webhook};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{
    REVIEWS, SPECS,
    pods::{WEB, create, pod, simple},
    replica::{MUTATE, Replica, decide},
};
use crate::support::{Fault, SimulatedApi, Table, Verb, credential_spec};

#[tokio::test]
async fn mutating_with_a_warm_cache_costs_nothing() {
    let replica = Replica::start().await;
    for _ in 0..50 {
        replica.allows(MUTATE, &pod("shop", "till", false)).await;
    }
    assert_eq!(replica.calls(), (0, 0));
}

#[tokio::test]
async fn validating_costs_one_access_review_for_each_namespace_account_and_spec() {
    let replica = Replica::start().await;
    for _ in 0..50 {
        replica.allows(Webhook::Validate, &pod("shop", "till", true)).await;
        replica.allows(Webhook::Validate, &simple("shop", "clerk", WEB)).await;
        replica.allows(Webhook::Validate, &simple("mall", "till", WEB)).await;
    }
    let mut asked: Vec<(Value, Value)> = Vec::new();
    for request in replica.api.requests(Verb::Create, REVIEWS) {
        let spec = &request.body["spec"];
        asked.push((spec["user"].clone(), spec["resourceAttributes"]["name"].clone()));
    }
    asked.sort_by_key(|(user, name)| format!("{user} {name}"));
    let expected = [
        ("system:serviceaccount:mall:till", "web"),
        ("system:serviceaccount:shop:clerk", "web"),
        ("system:serviceaccount:shop:till", "db"),
        ("system:serviceaccount:shop:till", "web"),
    ];
    assert_eq!(asked, expected.map(|(user, name)| (json!(user), json!(name))));
    assert_eq!(replica.calls(), (0, 4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_reviews_of_one_pod_template_at_once_cost_one_access_review() {
    let replica = Replica::start().await;
    let mut deciding = JoinSet::new();
    for _ in 0..200 {
        let reviewer = replica.reviewer.clone();
        let review = simple("shop", "till", WEB);
        deciding.spawn(async move { decide(&reviewer, Webhook::Validate, &review).await.is_allowed() });
    }
    assert_eq!(deciding.join_all().await, vec![true; 200]);
    assert_eq!(replica.calls(), (0, 1));
}

#[tokio::test]
async fn what_needs_no_answer_costs_nothing() {
    let replica = Replica::start().await;
    let plain = create("shop", &json!({"containers": [{"name": "a"}]}));
    let linux = create("shop", &json!({"os": {"name": "linux"}, "containers": [{"name": "a"}]}));
    for webhook in [MUTATE, Webhook::Validate] {
        replica.allows(webhook, &plain).await;
        replica.allows(webhook, &linux).await;
    }
    replica.allows(MUTATE, &pod("shop", "till", true)).await;
    let mut update = pod("shop", "till", true);
    update["request"]["operation"] = json!("UPDATE");
    update["request"]["oldObject"] = update["request"]["object"].clone();
    for webhook in [MUTATE, Webhook::Validate] {
        replica.allows(webhook, &update).await;
    }
    assert_eq!(replica.calls(), (0, 0));
}

#[tokio::test]
async fn contents_that_differ_cost_one_read_before_they_are_refused() {
    let replica = Replica::start().await;
    let message = "the GMSA cred spec contents for pod \"pod\" does not match the contents of GMSA resource \"web\"";
    let differ = format!("{message}: they hold other values");
    replica.denies(Webhook::Validate, &simple("shop", "till", r#"{"is": "other"}"#), 422, &differ).await;
    assert_eq!(replica.calls(), (1, 1));
}

#[tokio::test]
async fn contents_that_memory_does_not_know_yet_are_allowed_after_one_read() {
    let replica = Replica::start().await;
    // The watch is connected, and silent; another replica has expanded the new contents.
    replica.api.fault(Verb::Watch, SPECS, usize::MAX, Fault::Silence);
    replica.api.cut_watches();
    replica.api.wait_for(Verb::Watch, SPECS, 1).await;
    replica.is_warm().await;
    replica.api.apply(credential_spec("web", json!({"is": "new"})));
    replica.allows(Webhook::Validate, &simple("shop", "till", r#"{"is":"new"}"#)).await;
    assert_eq!(replica.calls(), (1, 1));
}

#[tokio::test]
async fn a_check_that_cannot_be_made_is_no_approval_and_is_tried_once_more() {
    let replica = Replica::start().await;
    replica.api.fault(Verb::Create, REVIEWS, 2, Fault::internal_error());
    let decision = replica.decide(Webhook::Validate, &simple("shop", "till", WEB)).await;
    let Verdict::Denied(denial) = decision.verdict else { panic!("allowed") };
    assert_eq!((denial.code(), denial.reason()), (500, "authorization-failed"));
    assert!(denial.to_string().contains("the API server answered 500: etcdserver: no leader"), "{denial}");
    assert_eq!(replica.calls(), (0, 2));
    // A failure is not remembered.
    replica.allows(Webhook::Validate, &simple("shop", "till", WEB)).await;
}

#[tokio::test]
async fn the_minimal_rights_of_the_go_chart_suffice() {
    let api = SimulatedApi::start().await;
    api.apply(credential_spec("web", json!({"is": "web"})));
    api.apply(credential_spec("db", json!({"is": "db"})));
    api.authorize_by(Table::of(&[("shop", "till", "web"), ("shop", "till", "db")]));
    api.fault(Verb::List, SPECS, usize::MAX, Fault::forbidden());
    let replica = Replica::on(api).await;
    replica.allows(MUTATE, &pod("shop", "till", false)).await;
    replica.allows(Webhook::Validate, &pod("shop", "till", true)).await;
    assert_eq!(replica.calls(), (4, 2));
}
