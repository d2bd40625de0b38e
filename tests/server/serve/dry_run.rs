//! `gmsa-webhook test`: what it makes of each answer that an API server gives to its pods.

use serde_json::json;

use super::server_program;
use crate::support::{Fault, SimulatedApi, Verb};

const PODS: &str = "/api/v1/namespaces/apps/pods?dryRun=All";
const TEST: [&str; 3] = ["test", "--namespace", "apps"];
/// How an API server passes a webhook's refusal on.
const REFUSAL: &str = "admission webhook \"admission-webhook.windows-gmsa.sigs.k8s.io\" denied the request: \
    cred spec gmsa-webhook-test-does-not-exist does not exist";

/// What `/validate` says to a pod that carries contents already.
const UNAUTHORIZED: &str = "admission webhook \"admission-webhook.windows-gmsa.sigs.k8s.io\" denied the request: \
    service account \"default\" is not authorized to `use` GMSA cred spec \"gmsa-webhook-test-does-not-exist\"";

fn admitted() -> Fault {
    Fault::Object(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "gmsa-webhook-test-x"}}))
}

fn refused(code: u16, message: &'static str) -> Fault {
    Fault::Refuse { code, reason: "Whatever", message, retry_after: None }
}

/// An API server that gives these answers, one after the other, to pods in the namespace `apps`.
async fn answering(answers: impl IntoIterator<Item = Fault>) -> SimulatedApi {
    let api = SimulatedApi::start().await;
    for answer in answers {
        api.fault(Verb::Create, PODS, 1, answer);
    }
    api
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_is_asked_about_every_slot_passes() {
    let refusal = || refused(404, REFUSAL);
    let api = answering([admitted(), refusal(), refusal(), refusal(), refused(403, UNAUTHORIZED)]).await;
    let report = "\
pass  a pod without GMSA
pass  a pod that names a credential spec
pass  a container that names a credential spec
pass  an init container that names a credential spec
pass  a pod that brings contents of its own
";
    assert_eq!(server_program(Some(&api), &TEST).await, (0, report.to_owned(), String::new()));

    let name = json!("gmsa-webhook-test-does-not-exist");
    let sent: Vec<_> =
        api.requests(Verb::Create, PODS).into_iter().map(|request| request.body["spec"].clone()).collect();
    assert_eq!(api.requests(Verb::Create, "").len(), 5);
    // The last one is for /validate, which /mutate passes; in a slot that the Go webhook beside this one would pass over.
    let brings = json!({"gmsaCredentialSpecName": name, "gmsaCredentialSpec": "{}"});
    let (last, sent) = sent.split_last().unwrap();
    assert_eq!(last.pointer("/initContainers/0/securityContext/windowsOptions"), Some(&brings));
    let places = [
        "/securityContext/windowsOptions/gmsaCredentialSpecName",
        "/containers/0/securityContext/windowsOptions/gmsaCredentialSpecName",
        "/initContainers/0/securityContext/windowsOptions/gmsaCredentialSpecName",
    ];
    for (number, spec) in sent.iter().enumerate() {
        for (place, path) in places.iter().enumerate() {
            assert_eq!(spec.pointer(path), (number == place + 1).then_some(&name), "pod {number}, {path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_as_it_should_be_is_found() {
    let unreachable = "failed calling webhook \"w\": connection refused";
    let answers = [
        refused(400, "no Windows here"),
        admitted(),
        refused(404, REFUSAL),
        refused(422, unreachable),
        refused(422, unreachable),
    ];
    let api = answering(answers).await;
    let report = "\
FAIL  a pod without GMSA was refused with 400: no Windows here
FAIL  a pod that names a credential spec was admitted: the API server did not ask the webhook
pass  a container that names a credential spec
FAIL  an init container that names a credential spec was refused with 422: failed calling webhook \"w\": connection refused
FAIL  a pod that brings contents of its own was refused with 422: failed calling webhook \"w\": connection refused
";
    assert_eq!(server_program(Some(&api), &TEST).await, (1, report.to_owned(), String::new()));
}

/// A release whose validating webhook alone is broken admits what it must refuse, or refuses every pod.
#[tokio::test(flavor = "multi_thread")]
async fn the_validating_webhook_is_tested_by_itself() {
    let refusal = || refused(404, REFUSAL);
    let api = answering([admitted(), refusal(), refusal(), refusal(), admitted()]).await;
    let (code, report, _) = server_program(Some(&api), &TEST).await;
    let last = "FAIL  a pod that brings contents of its own was admitted: the API server did not ask the webhook";
    assert_eq!((code, report.lines().last()), (1, Some(last)));

    // With --enforcement=Warn a refusal says that denials are enforced.
    let api = answering([admitted(), refusal(), refusal(), refusal(), refused(403, UNAUTHORIZED)]).await;
    let warn = ["test", "--namespace", "apps", "--enforcement", "Warn"];
    let (code, report, _) = server_program(Some(&api), &warn).await;
    let last = "FAIL  a pod that brings contents of its own was refused: denials are enforced";
    assert_eq!((code, report.lines().last()), (1, Some(last)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_asked_is_an_error() {
    let forbidden =
        "pods is forbidden: User \"jo\" cannot create resource \"pods\" in API group \"\" in the namespace \"apps\"";
    let api = answering([refused(403, forbidden)]).await;
    let error = format!("error: cannot ask the API server: the API server answered 403: {forbidden}\n");
    assert_eq!(server_program(Some(&api), &TEST).await, (2, String::new(), error));

    let (code, report, error) = server_program(None, &TEST).await;
    assert_eq!((code, report.as_str()), (2, ""));
    assert!(error.starts_with("error: no cluster to test: no credentials for a cluster: not in a pod ("), "{error}");

    let (code, report, error) = server_program(None, &["test", "--namespace", "Apps"]).await;
    assert_eq!((code, report.as_str()), (2, ""));
    let reason = "error: invalid value 'Apps' for '--namespace <NAME>': expected a lower-case DNS name\n";
    assert!(error.starts_with(reason), "{error}");
}
