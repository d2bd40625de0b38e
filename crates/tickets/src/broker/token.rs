//! The owner of a token: a `TokenReview` with the audience of one credential spec.
//!
//! Invariants: only a token that the API server accepts for `gmsa-tickets/NAME`, and that is bound to a pod, shows a [`Caller`].
//! Tokens that are bound to nothing, to a node or to a Secret authenticate too, so pod name and uid are required. A token is never
//! logged, nor part of a message.

use std::collections::BTreeMap;

use gmsa_cluster::apiserver::{ApiServer, CallKind};
use gmsa_core::{
    admission::ServiceAccount,
    causes::chain,
    credspec::{SpecName, is_dns_label, is_dns_subdomain},
    diagnostic::rules,
    quote::remark,
};
use http::{Request, header::CONTENT_TYPE};
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use crate::api::{AUDIENCE, Refusal};

/// The keys of `status.user.extra` that kube-apiserver sets for a token of a service account (Kubernetes: "Managing Service Accounts").
const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";
const TOKEN_ID: &str = "authentication.kubernetes.io/credential-id";

/// The pod that a token is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub account: ServiceAccount,
    pub pod: String,
    pub uid: String,
    /// The token's id, for the audit: `JTI=…`. Empty before Kubernetes 1.30.
    pub token_id: String,
}

#[derive(Deserialize)]
struct TokenReview {
    status: TokenStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenStatus {
    authenticated: bool,
    audiences: Vec<String>,
    error: String,
    user: TokenUser,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenUser {
    username: String,
    extra: BTreeMap<String, Vec<String>>,
}

/// The audience of the tokens for a credential spec.
pub fn audience(spec: &SpecName) -> String {
    format!("{AUDIENCE}{spec}")
}

/// Asks the API server whose token it is. The tokens of one address get a share of these calls.
///
/// # Errors
/// 401 where it shows no pod, 503 where the API server cannot be asked.
pub async fn review(
    api: &ApiServer,
    token: &str,
    source: Option<&str>,
    spec: &SpecName,
    deadline: Instant,
) -> Result<Caller, Refusal> {
    let audience = audience(spec);
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token, "audiences": [&audience]},
    });
    let unreadable = || unavailable("the API server's answer is not a TokenReview with a status");
    let request = Request::post("/apis/authentication.k8s.io/v1/tokenreviews")
        .header(CONTENT_TYPE, "application/json")
        .body(review.to_string().into_bytes())
        .map_err(|_| unreadable())?;
    let answer = api.exchange(CallKind::TokenReview, source, request, deadline).await;
    let answer = answer.map_err(|error| unavailable(&chain(&error)))?;
    let mut review: TokenReview = serde_json::from_slice(answer.body()).map_err(|_| unreadable())?;
    review.status.error = review.status.error.replace(token, "TOKEN");
    caller(&review.status, &audience)
}

fn unavailable(cause: &str) -> Refusal {
    Refusal::unavailable(rules::TICKET_CHECK.id, format!("the token cannot be checked: {cause}"))
}

fn caller(status: &TokenStatus, audience: &str) -> Result<Caller, Refusal> {
    if !status.authenticated {
        let error = remark(&status.error);
        let because = if error.is_empty() { String::new() } else { format!(": {error}") };
        return Err(Refusal::unauthenticated(format!(
            "the API server does not accept the token for the audience {audience}{because}"
        )));
    }
    // An API server that knows no audiences returns none.
    if !status.audiences.iter().any(|accepted| accepted == audience) {
        return Err(Refusal::unauthenticated(format!("the token is not for the audience {audience}")));
    }
    let mut account = status.user.username.strip_prefix("system:serviceaccount:").unwrap_or_default().split(':');
    let names = (account.next(), account.next(), account.next());
    let (Some(namespace), Some(name), None) = names else {
        return Err(Refusal::unauthenticated("the token is not one of a service account"));
    };
    if !is_dns_label(namespace) || !is_dns_subdomain(name) {
        return Err(Refusal::unauthenticated("the token is not one of a service account"));
    }
    let extra = |key| status.user.extra.get(key).and_then(|values| values.first()).filter(|value| !value.is_empty());
    let (Some(pod), Some(uid)) = (extra(POD_NAME), extra(POD_UID)) else {
        return Err(Refusal::unauthenticated(
            "the token is not bound to a pod: use one of a projected volume, which the kubelet requests for its pod",
        ));
    };
    if !is_dns_subdomain(pod) {
        return Err(Refusal::unauthenticated("the token is not bound to a pod: its name is not a DNS name"));
    }
    Ok(Caller {
        account: ServiceAccount { namespace: namespace.into(), name: name.into() },
        pod: pod.clone(),
        uid: uid.clone(),
        token_id: extra(TOKEN_ID).cloned().unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on must fail")]

    use serde_json::Value;

    use super::*;

    fn of(change: impl Fn(&mut Value)) -> Result<Caller, String> {
        let mut status = json!({
            "authenticated": true,
            "audiences": ["gmsa-tickets/webapp1"],
            "user": {
                "username": "system:serviceaccount:shop:web",
                "extra": {POD_NAME: ["web-1"], POD_UID: ["u1"], TOKEN_ID: ["JTI=7"]},
            },
        });
        change(&mut status);
        let read = caller(&serde_json::from_value(status).unwrap(), "gmsa-tickets/webapp1");
        read.map_err(|refusal| {
            assert_eq!((refusal.status.as_u16(), refusal.reason), (401, "ticket-token"));
            refusal.message
        })
    }

    #[test]
    fn a_token_of_a_pod_shows_the_pod() {
        let account = ServiceAccount { namespace: "shop".into(), name: "web".into() };
        let caller = Caller { account, pod: "web-1".to_owned(), uid: "u1".to_owned(), token_id: "JTI=7".to_owned() };
        assert_eq!(of(|_| ()), Ok(caller));
    }

    #[test]
    fn any_other_token_shows_none() {
        let refused = |change: &dyn Fn(&mut Value)| of(change).unwrap_err();
        let unbound =
            "the token is not bound to a pod: use one of a projected volume, which the kubelet requests for its pod";
        assert_eq!(refused(&|status| status["user"]["extra"] = json!({})), unbound);
        assert_eq!(refused(&|status| status["user"]["extra"][POD_UID] = json!([])), unbound);
        assert_eq!(refused(&|status| status["user"]["extra"][POD_NAME] = json!([""])), unbound);
        assert_eq!(
            refused(&|status| status["user"]["extra"][POD_NAME] = json!(["../x"])),
            "the token is not bound to a pod: its name is not a DNS name"
        );
        assert_eq!(
            refused(&|status| status["audiences"] = json!(["gmsa-tickets/admin"])),
            "the token is not for the audience gmsa-tickets/webapp1"
        );
        assert_eq!(
            refused(&|status| status["audiences"] = json!([])),
            "the token is not for the audience gmsa-tickets/webapp1"
        );
        for user in [
            "admin",
            "system:node:n1",
            "system:serviceaccount:a",
            "system:serviceaccount:a:b:c",
            "system:serviceaccount:../x:b",
        ] {
            assert_eq!(
                refused(&|status| status["user"]["username"] = json!(user)),
                "the token is not one of a service account",
                "{user}"
            );
        }
        assert_eq!(
            refused(&|status| *status = json!({"error": "token audiences [\"x\"] is invalid"})),
            "the API server does not accept the token for the audience gmsa-tickets/webapp1: token audiences [\"x\"] is invalid"
        );
        assert_eq!(
            refused(&|status| *status = json!({})),
            "the API server does not accept the token for the audience gmsa-tickets/webapp1"
        );
    }
}
