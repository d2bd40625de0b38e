//! Who asks: the pod that a token is bound to, by a `TokenReview` with the audience of one credential spec, and whether it may still get tickets.
//!
//! Invariants: only a token that the API server accepts for `gmsa-tickets/NAME`, or for `gmsa-keytab/NAME` where a keytab is asked for, and that is bound to a pod, shows a [`Caller`].
//! Tokens that are bound to nothing, to a node or to a Secret authenticate too, so pod name and uid are required. A token that says itself that it
//! cannot be accepted costs no review; nothing that it says is believed otherwise. A token is never logged, nor part of a message.
//!
//! A token of a pod that was deleted, or has ended, is accepted by the API server for a while. So the pod is read live for each request, and only one that exists
//! with the token's uid and service account, is not past the end of its grace (`deletionTimestamp`), has not ended, and has the audience in its
//! volumes gets an answer.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gmsa_cluster::apiserver::{ApiServer, CallKind, object_in, with_object};
use gmsa_core::{
    admission::{
        ServiceAccount,
        pod::tickets::{Volumes, volumes},
    },
    causes::chain,
    credspec::{SpecName, Verb, is_dns_label, is_dns_subdomain},
    quote::remark,
};
use http::Request;
use k8s_openapi::api::authentication::v1::TokenReviewStatus;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::json;
use time::{UtcDateTime, format_description::well_known::Rfc3339};
use tokio::time::Instant;

use crate::api::{Reason, Refusal};

/// The keys of `status.user.extra` that kube-apiserver sets for a token of a service account (Kubernetes: "Managing Service Accounts").
const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";
const TOKEN_ID: &str = "authentication.kubernetes.io/credential-id";

/// How long after its end a token is still sent to the API server: the clocks may differ.
const CLOCKS: i64 = 300;

const UNBOUND: &str =
    "the token is not bound to a pod: use one of a projected volume, which the kubelet requests for its pod";

/// The claims of a token of a service account (Kubernetes: "Managing Service Accounts"). Anyone can write them.
#[derive(Deserialize)]
struct TokenClaims {
    aud: Vec<String>,
    exp: i64,
    #[serde(default, rename = "kubernetes.io")]
    kubernetes: KubernetesClaims,
}

#[derive(Default, Deserialize)]
struct KubernetesClaims {
    pod: Option<IgnoredAny>,
}

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
struct TokenReviewAnswer {
    status: TokenReviewStatus,
}

/// The audience of the tokens for a credential spec.
pub fn audience(verb: Verb, spec: &SpecName) -> String {
    format!("{}{spec}", verb.product().audience)
}

/// Asks the API server whose token it is. The tokens of one address get a share of these calls.
///
/// # Errors
/// 401 where it shows no pod, 503 where the API server cannot be asked.
pub async fn review(
    api: &ApiServer,
    token: &str,
    source: Option<&str>,
    audience: &str,
    deadline: Instant,
) -> Result<Caller, Refusal> {
    may_be_accepted(token, audience, UtcDateTime::now())?;
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token, "audiences": [audience]},
    });
    let request = with_object(Request::post("/apis/authentication.k8s.io/v1/tokenreviews"), &review);
    let answer = api.exchange(CallKind::TokenReview, source, request, deadline).await;
    let review = answer.and_then(|answer| object_in(answer.body(), "a TokenReview with a status"));
    let mut review: TokenReviewAnswer = review.map_err(|error| unavailable(&chain(&error)))?;
    review.status.error = review.status.error.map(|error| error.replace(token, "TOKEN"));
    caller(&review.status, audience)
}

/// Whether the API server may accept a token that says this of itself.
fn may_be_accepted(token: &str, audience: &str, now: UtcDateTime) -> Result<(), Refusal> {
    let [_, claims, _] = token.split('.').collect::<Vec<_>>()[..] else { return Err(not_one_of_ours()) };
    let claims =
        URL_SAFE_NO_PAD.decode(claims).ok().and_then(|claims| serde_json::from_slice::<TokenClaims>(&claims).ok());
    let claims = claims.ok_or_else(not_one_of_ours)?;
    if now.unix_timestamp().saturating_sub(CLOCKS) >= claims.exp {
        return Err(Refusal::unauthenticated(format!(
            "the broker does not accept the token for the audience {audience}: it has expired"
        )));
    }
    if !claims.aud.iter().any(|accepted| accepted == audience) {
        return Err(Refusal::unauthenticated(format!("the token is not for the audience {audience}")));
    }
    claims.kubernetes.pod.map(drop).ok_or_else(|| Refusal::unauthenticated(UNBOUND))
}

fn not_one_of_ours() -> Refusal {
    Refusal::unauthenticated("the token is not one of a service account: use one of a projected volume")
}

fn unavailable(cause: &str) -> Refusal {
    Refusal::unavailable(Reason::TicketCheck, format!("the token cannot be checked: {cause}"))
}

fn caller(status: &TokenReviewStatus, audience: &str) -> Result<Caller, Refusal> {
    if status.authenticated != Some(true) {
        let error = remark(status.error.as_deref().unwrap_or_default());
        let because = if error.is_empty() { String::new() } else { format!(": {error}") };
        return Err(Refusal::unauthenticated(format!(
            "the API server does not accept the token for the audience {audience}{because}"
        )));
    }
    // An API server that knows no audiences returns none.
    if !status.audiences.iter().flatten().any(|accepted| accepted == audience) {
        return Err(Refusal::unauthenticated(format!("the token is not for the audience {audience}")));
    }
    let user = status.user.as_ref();
    let name = user.and_then(|user| user.username.as_deref()?.strip_prefix("system:serviceaccount:")?.split_once(':'));
    let name = name.filter(|(namespace, name)| is_dns_label(namespace) && is_dns_subdomain(name));
    let (namespace, name) =
        name.ok_or_else(|| Refusal::unauthenticated("the token is not one of a service account"))?;
    let extra = |key| user?.extra.as_ref()?.get(key)?.first().filter(|value| !value.is_empty());
    let (Some(pod), Some(uid)) = (extra(POD_NAME), extra(POD_UID)) else {
        return Err(Refusal::unauthenticated(UNBOUND));
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

#[derive(Default, Deserialize)]
#[serde(default)]
struct LivePod {
    metadata: PodMetadata,
    spec: LivePodSpec,
    status: LivePodStatus,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodMetadata {
    uid: String,
    /// Where the pod is being deleted, the end of its grace (RFC 3339).
    deletion_timestamp: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LivePodSpec {
    service_account_name: String,
    #[serde(deserialize_with = "volumes")]
    volumes: Volumes,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LivePodStatus {
    phase: String,
}

/// Reads the pod, and checks it.
///
/// # Errors
/// 403 where it may get no tickets, 503 where the API server cannot be asked.
pub async fn check_pod(
    api: &ApiServer,
    caller: &Caller,
    verb: Verb,
    spec: &SpecName,
    deadline: Instant,
) -> Result<(), Refusal> {
    let path = format!("/api/v1/namespaces/{}/pods/{}", caller.account.namespace, caller.pod);
    let unavailable = |cause: &str| {
        Refusal::unavailable(Reason::TicketCheck, format!("the pod {:?} cannot be read: {cause}", caller.pod))
    };
    let request = Request::get(path).body(Vec::new());
    let answer = match api.exchange(CallKind::KnownSpec, Some(&caller.account.user()), request, deadline).await {
        Ok(answer) => answer,
        Err(error) if error.code() == Some(404) => return Err(refused(caller, "does not exist any more")),
        Err(error) => return Err(unavailable(&chain(&error))),
    };
    let pod: LivePod = serde_json::from_slice(answer.body()).map_err(|_| unavailable("the answer is not a Pod"))?;
    checked(&pod, caller, verb, spec, UtcDateTime::now())
}

fn refused(caller: &Caller, what: &str) -> Refusal {
    Refusal::forbidden(Reason::TicketPod, format!("the pod {:?} {what}", caller.pod))
}

fn checked(pod: &LivePod, caller: &Caller, verb: Verb, spec: &SpecName, now: UtcDateTime) -> Result<(), Refusal> {
    if pod.metadata.uid != caller.uid {
        return Err(refused(caller, "has another uid than the token: it was replaced"));
    }
    if pod.spec.service_account_name != *caller.account.name {
        return Err(refused(caller, "has another service account than the token"));
    }
    let grace = pod.metadata.deletion_timestamp.as_deref();
    if grace.is_some_and(|end| UtcDateTime::parse(end, &Rfc3339).map_or(true, |end| now >= end)) {
        return Err(refused(caller, "is being deleted, and its grace has ended"));
    }
    if matches!(pod.status.phase.as_str(), "Succeeded" | "Failed") {
        return Err(refused(caller, "has ended"));
    }
    if !pod.spec.volumes.project(verb, spec) {
        let what = format!("has no projected token with the audience {} in its volumes", audience(verb, spec));
        return Err(refused(caller, &what));
    }
    Ok(())
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
            assert_eq!((refusal.status.as_u16(), refusal.reason.as_str()), (401, "ticket-token"));
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
        assert_eq!(refused(&|status| status["user"]["extra"] = json!({})), UNBOUND);
        assert_eq!(refused(&|status| status["user"]["extra"][POD_UID] = json!([])), UNBOUND);
        assert_eq!(refused(&|status| status["user"]["extra"][POD_NAME] = json!([""])), UNBOUND);
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
    #[test]
    fn a_token_that_cannot_be_accepted_is_not_reviewed() {
        let now = UtcDateTime::from_unix_timestamp(1_000_000).unwrap();
        let said = |claims: Value| {
            let token = format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()));
            may_be_accepted(&token, "gmsa-tickets/webapp1", now).map_err(|refusal| {
                assert_eq!((refusal.status.as_u16(), refusal.reason.as_str()), (401, "ticket-token"));
                refusal.message
            })
        };
        let pod = json!({"namespace": "shop", "pod": {"name": "web-1", "uid": "u1"}});
        let claims = |exp: i64, aud: Value| json!({"aud": aud, "exp": exp, "kubernetes.io": pod.clone()});
        let ours = json!(["x", "gmsa-tickets/webapp1"]);
        assert_eq!(said(claims(1_000_600, ours.clone())), Ok(()));
        // The clocks may differ by five minutes.
        assert_eq!(said(claims(999_701, ours.clone())), Ok(()));
        let expired = "the broker does not accept the token for the audience gmsa-tickets/webapp1: it has expired";
        assert_eq!(said(claims(999_700, ours.clone())), Err(expired.to_owned()));
        let other = Err("the token is not for the audience gmsa-tickets/webapp1".to_owned());
        assert_eq!(said(claims(1_000_600, json!(["gmsa-tickets/webapp", "GMSA-tickets/webapp1"]))), other);
        for kubernetes in [json!({}), json!({"pod": null}), json!({"node": {"name": "n1"}})] {
            let claims = json!({"aud": ours, "exp": 1_000_600, "kubernetes.io": kubernetes});
            assert_eq!(said(claims), Err(UNBOUND.to_owned()));
        }
        assert_eq!(said(json!({"aud": ours, "exp": 1_000_600})), Err(UNBOUND.to_owned()));
        let not_ours = Err("the token is not one of a service account: use one of a projected volume".to_owned());
        for claims in
            [json!({}), json!([]), json!({"aud": "gmsa-tickets/webapp1", "exp": 1_000_600}), json!({"aud": ours})]
        {
            assert_eq!(said(claims), not_ours);
        }
        for token in
            ["", "x", "e30.e30", "e30.e30.c2ln.x", "e30.=.c2ln", "..", &format!("e30.{}.c2ln", "e".repeat(6000))]
        {
            let refused = may_be_accepted(token, "gmsa-tickets/webapp1", now).map_err(|refusal| refusal.message);
            assert_eq!(refused, not_ours, "{token}");
        }
    }

    fn checked_with(change: impl Fn(&mut Value)) -> Result<(), (u16, &'static str, String)> {
        let mut pod = json!({
            "metadata": {"uid": "u1"},
            "spec": {"serviceAccountName": "web", "volumes": [
                {"name": "x", "emptyDir": {}},
                {"name": "t", "projected": {"sources": [
                    {"configMap": {"name": "c"}}, {"serviceAccountToken": {"audience": "gmsa-tickets/webapp1", "path": "token"}},
                ]}},
            ]},
            "status": {"phase": "Pending"},
        });
        change(&mut pod);
        let account = ServiceAccount { namespace: "shop".into(), name: "web".into() };
        let caller = Caller { account, pod: "web-1".to_owned(), uid: "u1".to_owned(), token_id: String::new() };
        let pod: LivePod = serde_json::from_value(pod).unwrap();
        let now = UtcDateTime::parse("2026-01-01T00:00:30Z", &Rfc3339).unwrap();
        let checked = checked(&pod, &caller, Verb::Use, &SpecName::parse("webapp1").unwrap(), now);
        checked.map_err(|refusal| (refusal.status.as_u16(), refusal.reason.as_str(), refusal.message))
    }

    fn refused_with(what: &str) -> Result<(), (u16, &'static str, String)> {
        Err((403, "ticket-pod", format!("the pod \"web-1\" {what}")))
    }

    #[test]
    fn only_a_pod_that_lives_and_projects_the_token_gets_tickets() {
        assert_eq!(checked_with(|_| ()), Ok(()));
        assert_eq!(checked_with(|pod| pod["status"]["phase"] = json!("Running")), Ok(()));
        let other = refused_with("has another uid than the token: it was replaced");
        assert_eq!(checked_with(|pod| pod["metadata"]["uid"] = json!("u2")), other);
        assert_eq!(checked_with(|pod| pod["metadata"] = json!({})), other);
        let deleted = |end: &'static str| checked_with(move |pod| pod["metadata"]["deletionTimestamp"] = json!(end));
        assert_eq!(deleted("2026-01-01T00:00:31Z"), Ok(()));
        for end in ["2026-01-01T00:00:30Z", "2025-12-31T23:00:00Z", "soon"] {
            assert_eq!(deleted(end), refused_with("is being deleted, and its grace has ended"));
        }
        for phase in ["Succeeded", "Failed"] {
            assert_eq!(checked_with(|pod| pod["status"]["phase"] = json!(phase)), refused_with("has ended"));
        }
        let other = refused_with("has another service account than the token");
        assert_eq!(checked_with(|pod| pod["spec"]["serviceAccountName"] = json!("admin")), other);
        let without = refused_with("has no projected token with the audience gmsa-tickets/webapp1 in its volumes");
        assert_eq!(checked_with(|pod| pod["spec"]["volumes"] = json!([])), without);
        let token = "/spec/volumes/1/projected/sources/1/serviceAccountToken/audience";
        assert_eq!(checked_with(|pod| *pod.pointer_mut(token).unwrap() = json!("gmsa-tickets/webapp")), without);
    }
}
