//! Access reviews: what is asked, and what is made of the answers.

use gmsa_cluster::authorizer::{Authorization, Authorizer as _};
use gmsa_core::admission::{Source, UseFact};
use serde_json::json;

use super::{REVIEWS, SOON, connect, failed, refused, spec_name, subject, within};
use crate::support::{Fault, SimulatedApi, Table, Verb};

async fn ask(api: &SimulatedApi) -> UseFact {
    api.authorize_by(Table::of(&[("shop", "till", "web")]));
    let Authorization { fact, source } =
        connect(api).may_use(&subject("shop", "till"), &spec_name("web"), within(SOON)).await;
    assert_eq!(source, Source::Api);
    fact
}

#[tokio::test]
async fn the_review_is_made_in_the_pods_namespace_for_its_account_and_exactly_two_groups() {
    let api = SimulatedApi::start().await;
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

/// What is answered, what is made of it, and how often it is asked.
#[tokio::test]
async fn what_is_no_answer_is_a_failure_and_not_a_denial() {
    let without = |status| Fault::Object(json!({"kind": "LocalSubjectAccessReview", "status": status}));
    let no_status = failed("the API server's answer is not a LocalSubjectAccessReview with a status");
    for (fault, failure, tries) in [
        (without(json!(null)), no_status.clone(), 1),
        (without(json!({})), no_status.clone(), 1),
        (without(json!({"allowed": "true"})), no_status, 1),
        (Fault::forbidden(), refused(403, "the API server answered 403: not allowed here"), 1),
        (Fault::internal_error(), refused(500, "the API server answered 500: etcdserver: no leader"), 2),
    ] {
        let api = SimulatedApi::start().await;
        api.fault(Verb::Create, REVIEWS, usize::MAX, fault);
        assert_eq!(ask(&api).await, UseFact::Failed(failure));
        assert_eq!(api.count(Verb::Create, REVIEWS), tries);
    }
}
