//! Whether the pod of a token may still get tickets: it is read live for each request.
//!
//! Invariant: a token of a pod that was deleted, or has ended, is accepted by the API server for a while, so only a pod that exists
//! with the token's uid and service account, is not past the end of its grace (`deletionTimestamp`), has not ended, and has the audience in its
//! volumes gets an answer.

use gmsa_cluster::apiserver::{ApiServer, CallKind};
use gmsa_core::{
    admission::pod::tickets::{Volumes, volumes},
    causes::chain,
    credspec::{SpecName, Verb},
    diagnostic::rules,
};
use http::Request;
use serde::Deserialize;
use time::{UtcDateTime, format_description::well_known::Rfc3339};
use tokio::time::Instant;

use super::token::{Caller, audience};
use crate::api::Refusal;

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
pub async fn check(
    api: &ApiServer,
    caller: &Caller,
    verb: Verb,
    spec: &SpecName,
    deadline: Instant,
) -> Result<(), Refusal> {
    let path = format!("/api/v1/namespaces/{}/pods/{}", caller.account.namespace, caller.pod);
    let unavailable = |cause: &str| {
        Refusal::unavailable(rules::TICKET_CHECK.id, format!("the pod {:?} cannot be read: {cause}", caller.pod))
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
    Refusal::forbidden(rules::TICKET_POD.id, format!("the pod {:?} {what}", caller.pod))
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

    use gmsa_core::admission::ServiceAccount;
    use serde_json::{Value, json};

    use super::*;

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
        checked.map_err(|refusal| (refusal.status.as_u16(), refusal.reason, refusal.message))
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
