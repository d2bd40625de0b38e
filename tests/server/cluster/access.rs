//! Access reviews: what is asked, and what is made of the answers.

use gmsa_cluster::authorizer::{Authorization, Authorizer as _};
use gmsa_core::admission::{Source, UseFact};
use serde_json::{Value, json};

use super::{REVIEWS, SOON, connect, failed, refused, spec_name, subject, within};
use crate::support::{Fault, SimulatedApi, Table, Verb};

async fn ask(api: &SimulatedApi) -> UseFact {
    let Authorization { fact, source } =
        connect(api).may_use(&subject("shop", "till"), &spec_name("web"), within(SOON)).await;
    assert_eq!(source, Source::Api);
    fact
}

async fn ask_despite(fault: Fault) -> (UseFact, usize) {
    let api = SimulatedApi::start().await;
    api.authorize_by(Table::of(&[("shop", "till", "web")]));
    api.fault(Verb::Create, REVIEWS, usize::MAX, fault);
    let fact = ask(&api).await;
    (fact, api.count(Verb::Create, REVIEWS))
}

async fn ask_with_status(status: Value) -> UseFact {
    ask_despite(Fault::Object(json!({"kind": "LocalSubjectAccessReview", "status": status}))).await.0
}

#[tokio::test]
async fn the_review_is_made_in_the_pods_namespace_for_its_account_and_exactly_two_groups() {
    let api = SimulatedApi::start().await;
    api.authorize_by(Table::of(&[("shop", "till", "web")]));
    assert_eq!(ask(&api).await, UseFact::Allowed);
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
