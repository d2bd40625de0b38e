//! Access reviews: what is asked, and what is made of the answers.

use gmsa_cluster::authorizer::{Authorization, Authorizer as _};
use gmsa_core::admission::{Source, UseFact};
use serde_json::{Value, json};

use super::{Duration, REVIEWS, SOON, connect, failed, refused, spec_name, subject, timed_out, within};
use crate::support::{Fault, SimulatedApi, Table, Verb};

async fn ask(api: &SimulatedApi, service_account: &str, time: Duration) -> UseFact {
    let Authorization { fact, source } =
        connect(api).may_use(&subject("shop", service_account), &spec_name("web"), within(time)).await;
    assert_eq!(source, Source::Api);
    fact
}

async fn ask_despite(fault: Fault) -> (UseFact, usize) {
    let api = SimulatedApi::start().await;
    api.authorize_by(Table::of(&[("shop", "till", "web")]));
    api.fault(Verb::Create, REVIEWS, usize::MAX, fault);
    let fact = ask(&api, "till", SOON).await;
    (fact, api.count(Verb::Create, REVIEWS))
}

async fn ask_with_status(status: Value) -> UseFact {
    ask_despite(Fault::Object(json!({"kind": "LocalSubjectAccessReview", "status": status}))).await.0
}

#[tokio::test]
async fn the_review_is_made_in_the_pods_namespace_for_its_account_and_exactly_two_groups() {
    let api = SimulatedApi::start().await;
    api.authorize_by(Table::of(&[("shop", "till", "web")]));
    assert_eq!(ask(&api, "till", SOON).await, UseFact::Allowed);
    let requests = api.requests(Verb::Create, "");
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].path, "/apis/authorization.k8s.io/v1/namespaces/shop/localsubjectaccessreviews");
    assert_eq!(
        requests[0].body,
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "LocalSubjectAccessReview",
            "metadata": {"namespace": "shop"},
            "spec": {
                "user": "system:serviceaccount:shop:till",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:shop"],
                "resourceAttributes": {
                    "namespace": "shop",
                    "verb": "use",
                    "group": "windows.k8s.io",
                    "resource": "gmsacredentialspecs",
                    "name": "web",
                },
            },
        })
    );
}

#[tokio::test]
async fn who_is_not_allowed_is_denied() {
    let api = SimulatedApi::start().await;
    api.authorize_by(Table::of(&[("shop", "till", "web"), ("other", "thief", "web")]));
    assert_eq!(ask(&api, "thief", SOON).await, UseFact::Denied { reason: None });
}

#[tokio::test]
async fn a_denial_outweighs_an_approval_and_carries_its_reason() {
    let status = json!({"allowed": true, "denied": true, "reason": "policy", "evaluationError": "no such role"});
    let reason = Some("policy (evaluation error: no such role)".to_owned());
    assert_eq!(ask_with_status(status).await, UseFact::Denied { reason });
}

#[tokio::test]
async fn an_answer_without_a_status_is_a_failure() {
    let cause = "the API server's answer is not a LocalSubjectAccessReview with a status";
    for status in [json!(null), json!({}), json!({"allowed": "true"})] {
        assert_eq!(ask_with_status(status.clone()).await, UseFact::Failed(failed(cause)), "{status}");
    }
}

#[tokio::test]
async fn a_refused_review_is_a_failure_and_not_a_denial() {
    let cause = "the API server answered 403: not allowed here";
    assert_eq!(ask_despite(Fault::forbidden()).await, (UseFact::Failed(refused(403, cause)), 1));
    let cause = "the API server answered 500: etcdserver: no leader";
    assert_eq!(ask_despite(Fault::internal_error()).await, (UseFact::Failed(refused(500, cause)), 2));
}

#[tokio::test]
async fn the_second_try_counts() {
    let api = SimulatedApi::start().await;
    api.authorize_by(Table::of(&[("shop", "till", "web")]));
    api.fault(Verb::Create, REVIEWS, 1, Fault::too_many_requests(0));
    assert_eq!(ask(&api, "till", SOON).await, UseFact::Allowed);
    assert_eq!(api.count(Verb::Create, REVIEWS), 2);
}

#[tokio::test]
async fn silence_ends_with_the_deadline() {
    let api = SimulatedApi::start().await;
    api.fault(Verb::Create, REVIEWS, 1, Fault::Silence);
    let cause = "no answer from the API server within 0.2 s";
    assert_eq!(ask(&api, "till", Duration::from_millis(200)).await, UseFact::Failed(timed_out(cause)));
}
