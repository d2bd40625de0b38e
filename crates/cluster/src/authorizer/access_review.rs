//! Authorisation, asked of the API server: a `LocalSubjectAccessReview` for each question.
//!
//! Invariants: the review is made in the pod's namespace, for exactly the pod's service account and its two groups;
//! only `allowed` without `denied` is an approval, and an answer that cannot be read is a failure.

use std::sync::Arc;

use futures::future::FutureExt as _;
use http::Request;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Answer, Authorization, Authorizer};
use crate::apiserver::{ApiServer, CallKind, object_in, with_object};
use gmsa_core::{
    admission::{Failure, ServiceAccount, Source, UseFact},
    credspec::{GROUP, PLURAL, SpecName, Verb, is_dns_label},
    quote::remark,
};

/// The answer to an access review.
#[derive(Deserialize)]
pub struct AccessReviewAnswer {
    status: AccessReviewStatus,
}

impl AccessReviewAnswer {
    /// The fact for an admission decision.
    pub fn fact(self) -> UseFact {
        self.status.into()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AccessReviewStatus {
    allowed: bool,
    #[serde(default)]
    denied: bool,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    evaluation_error: String,
}

impl From<AccessReviewStatus> for UseFact {
    fn from(status: AccessReviewStatus) -> Self {
        if status.allowed && !status.denied {
            return Self::Allowed;
        }
        let (reason, error) = (remark(&status.reason), remark(&status.evaluation_error));
        // An evaluation error alone does not make the answer less valid: a role that is bound but missing is one.
        let reason = match (reason.is_empty(), error.is_empty() || reason.contains(&error)) {
            (true, true) => None,
            (false, true) => Some(reason),
            (true, false) => Some(format!("evaluation error: {error}")),
            (false, false) => Some(format!("{reason} (evaluation error: {error})")),
        };
        Self::Denied { reason }
    }
}

async fn authorization(
    api: &ApiServer,
    kind: CallKind,
    account: &ServiceAccount,
    verb: Verb,
    spec: &SpecName,
    deadline: Instant,
) -> Authorization {
    let asked = async {
        // Pods of one service account, however many, leave permits to the pods of others. A pod cannot name an account of another
        // namespace. The service account of a workload need not exist, so there an account has no share.
        let user = account.user();
        let share = (kind == CallKind::AccessReview).then_some(&*user);
        let (path, review) = review(account, verb, spec)?;
        let answer = api.exchange(kind, share, with_object(Request::post(path), &review), deadline).await?;
        let answer: AccessReviewAnswer = object_in(answer.body(), "a LocalSubjectAccessReview with a status")?;
        Ok(answer.fact())
    };
    Authorization { fact: asked.await.unwrap_or_else(UseFact::Failed), source: Source::Api }
}

/// The path of an access review in the API, and the review itself.
///
/// # Errors
/// Where the namespace cannot be one.
pub fn review(account: &ServiceAccount, verb: Verb, spec: &SpecName) -> Result<(String, Value), Failure> {
    let namespace = &*account.namespace;
    // It becomes a part of a URL.
    if !is_dns_label(namespace) {
        return Err(Failure::new("the namespace is not a DNS label"));
    }
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "LocalSubjectAccessReview",
        "metadata": {"namespace": namespace},
        "spec": {
            "user": account.user(),
            "groups": account.groups(),
            "resourceAttributes": {
                "namespace": namespace, "verb": verb.as_str(), "group": GROUP, "resource": PLURAL, "name": spec.as_str(),
            },
        },
    });
    let path = format!("/apis/authorization.k8s.io/v1/namespaces/{namespace}/localsubjectaccessreviews");
    Ok((path, review))
}

/// Makes an access review for each question.
impl Authorizer for ApiServer {
    fn may<'a>(&'a self, account: &'a ServiceAccount, verb: Verb, spec: &'a SpecName, deadline: Instant) -> Answer<'a> {
        authorization(self, CallKind::AccessReview, account, verb, spec, deadline).boxed()
    }
}

/// Makes an access review for each question, within the limits of look-ups for warnings.
pub struct Advisor(pub Arc<ApiServer>);

impl Authorizer for Advisor {
    fn may<'a>(&'a self, account: &'a ServiceAccount, verb: Verb, spec: &'a SpecName, deadline: Instant) -> Answer<'a> {
        authorization(&self.0, CallKind::Advice, account, verb, spec, deadline).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(status: &str) -> UseFact {
        UseFact::from(serde_json::from_str::<AccessReviewStatus>(status).unwrap())
    }

    fn denied(reason: Option<&str>) -> UseFact {
        UseFact::Denied { reason: reason.map(str::to_owned) }
    }

    #[test]
    fn only_allowed_without_denied_is_an_approval() {
        assert_eq!(fact(r#"{"allowed": true}"#), UseFact::Allowed);
        assert_eq!(fact(r#"{"allowed": true, "evaluationError": "x"}"#), UseFact::Allowed);
        assert_eq!(fact(r#"{"allowed": true, "denied": true, "reason": "no"}"#), denied(Some("no")));
        assert_eq!(fact(r#"{"allowed": false}"#), denied(None));
    }

    #[test]
    fn an_evaluation_error_is_reported_with_the_reason_and_once() {
        let reported = |reason, error| {
            fact(&serde_json::json!({"allowed": false, "reason": reason, "evaluationError": error}).to_string())
        };
        assert_eq!(reported("", "role x not found"), denied(Some("evaluation error: role x not found")));
        assert_eq!(
            reported("no rule", "role x\nnot found"),
            denied(Some("no rule (evaluation error: role x not found)"))
        );
        assert_eq!(reported("RBAC: role x not found", "role x not found"), denied(Some("RBAC: role x not found")));
    }

    #[test]
    fn a_namespace_that_is_no_label_never_reaches_a_url() {
        for namespace in ["", "a/b", "a.b", "../..", "x?y"] {
            let account = ServiceAccount { namespace: namespace.into(), name: "default".into() };
            let spec = SpecName::parse("web").unwrap();
            let failure = review(&account, Verb::Use, &spec).unwrap_err();
            assert_eq!(failure, Failure::new("the namespace is not a DNS label"), "{namespace}");
        }
    }
}
