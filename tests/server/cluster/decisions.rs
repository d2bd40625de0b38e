//! Decisions: how many questions to the API server each review costs; and a trial in some namespaces, where every denial is a warning
//! and everywhere else a denial.

use std::sync::Arc;

use gmsa_core::admission::Webhook;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{
    REVIEWS,
    setup::{MUTATE, Setup, WEB, create, decide, pod, simple},
};
use crate::{
    reviews::{created, slot},
    support::{Fault, Gate, Verb},
};

#[tokio::test]
async fn validating_costs_one_access_review_for_each_namespace_account_and_spec() {
    let replica = Setup::replica().await;
    for _ in 0..50 {
        replica.allows(Webhook::Validate, &pod("shop", "till", true)).await;
        replica.allows(Webhook::Validate, &simple("shop", "clerk", WEB)).await;
        replica.allows(Webhook::Validate, &simple("mall", "till", WEB)).await;
    }
    assert_eq!(replica.calls(), (0, 4));
}

#[tokio::test]
async fn what_memory_knows_and_what_needs_no_answer_costs_nothing() {
    let replica = Setup::replica().await;
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

/// A replica with a trial in the namespace `mall`.
async fn trial() -> Setup {
    let mut replica = Setup::replica().await;
    replica.reviewer.warn_namespaces = Arc::new(["mall".to_owned()]);
    replica
}

/// Asserts that a pod is admitted although it would be denied for this reason.
fn is_would_deny(answer: &Value, reason: &str, message: &str) {
    assert_eq!(answer["auditAnnotations"]["validate-decision"], format!("would-deny: {reason}"), "{answer}");
    assert_eq!(
        (&answer["allowed"], &answer["warnings"][0]),
        (&json!(true), &json!(format!("GMSA, not enforced: {message}")))
    );
}

#[tokio::test]
async fn denials_are_warnings_in_the_namespaces_of_the_trial_alone() {
    let replica = trial().await;
    let message =
        |account: &str| format!("service account \"{account}\" is not authorized to `use` GMSA cred spec \"web\"");
    let answer = decide(&replica.reviewer, Webhook::Validate, &simple("mall", "clerk", WEB)).await;
    is_would_deny(&answer, "not-authorized", &message("clerk"));
    for (namespace, account) in [("shop", "cook"), ("mal", "clerk"), ("malls", "clerk")] {
        replica.denies(Webhook::Validate, &simple(namespace, account, WEB), 403, &message(account)).await;
    }

    // A failure says nothing of the pod, so it is refused there too.
    replica.api.fault(Verb::Create, REVIEWS, usize::MAX, Fault::internal_error());
    let unable = "unable to check whether service account \"cook\" is authorized to `use` GMSA cred spec \"web\"";
    let unable = format!("{unable}: the API server answered 500: etcdserver: no leader");
    replica.denies(Webhook::Validate, &simple("mall", "cook", WEB), 500, &unable).await;
}

/// A Deployment whose pods name a credential spec.
fn workload() -> Value {
    let spec = json!({
        "serviceAccountName": "builder",
        "nodeSelector": {"kubernetes.io/os": "windows"},
        "securityContext": slot(Some("web"), Some(WEB)),
        "containers": [],
    });
    let mut review = created("shop", &json!({"metadata": {"name": "web"}, "spec": {"template": {"spec": spec}}}));
    review["request"]["kind"] = json!({"group": "apps", "version": "v1", "kind": "Deployment"});
    review
}

#[tokio::test]
async fn what_is_asked_for_warnings_takes_nothing_from_decisions() {
    let replica = trial().await;
    let gate = Gate::new();
    replica.api.fault(Verb::Create, "/namespaces/mall/", usize::MAX, Fault::Hold(gate.clone()));
    let mut asking = JoinSet::new();
    for number in 0..4 {
        let (reviewer, review) = (replica.reviewer.clone(), simple("mall", &format!("account-{number}"), WEB));
        asking.spawn(async move { decide(&reviewer, Webhook::Validate, &review).await });
    }
    replica.api.wait_for(Verb::Create, "/namespaces/mall/", 4).await;
    // One more is not checked after a while: it is admitted.
    let answer = decide(&replica.reviewer, Webhook::Validate, &simple("mall", "late", WEB)).await;
    let unable = "unable to check whether service account \"late\" is authorized to `use` GMSA cred spec \"web\"";
    let cause = "4 other calls to the API server for warnings were under way for 0.2 s";
    is_would_deny(&answer, "authorization-failed", &format!("{unable}: {cause}"));
    let answer = decide(&replica.reviewer, Webhook::ValidateWorkload, &workload()).await;
    let unchecked = "it could not be checked whether service account \"builder\" may use GMSA cred spec \"web\"";
    let warnings = json!([format!("{unchecked} [authorization-failed]")]);
    assert_eq!((&answer["allowed"], &answer["warnings"]), (&json!(true), &warnings));
    // A pod where denials are enforced waits for none of them.
    replica.allows(Webhook::Validate, &simple("shop", "till", WEB)).await;
    assert_eq!(replica.api.count(Verb::Create, "/namespaces/mall/"), 4);
    gate.open();
    assert!(asking.join_all().await.iter().all(|answer| answer["allowed"] == true));
}
