//! What `doctor` says of the configuration that the static policies of a control plane must refuse, and of a trial in some namespaces.

use serde_json::json;

use super::{
    super::{
        cluster::{REFUSED, script_all},
        support::{Fault, SimulatedApi},
    },
    complaints, explained,
};

fn answering(api: &SimulatedApi, protection: Fault) {
    script_all(api, REFUSED, REFUSED, protection, &[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn configurations_that_users_can_change_are_noted() {
    let admitted = Fault::Object(json!({"kind": "ValidatingWebhookConfiguration"}));
    let found = explained(|api| answering(api, admitted)).await;
    let text = "note protection: no static policies protect the webhook configurations of gmsa [static-policies]";
    let remedy = "On a control plane of your own, load the static policies of the chart, which no user of the API can change: docs/static-policies.md.";
    assert_eq!(found, [(text.to_owned(), remedy.to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_may_not_try_it_lacks_nothing_else() {
    let refused = |code, message| Fault::Refuse { code, reason: "Whatever", message, retry_after: None };
    let forbidden = "validatingwebhookconfigurations.admissionregistration.k8s.io is forbidden: User \"u\" cannot create resource \
        \"validatingwebhookconfigurations\" in API group \"admissionregistration.k8s.io\" at the cluster scope";
    let found = complaints(|api| answering(api, refused(403, forbidden))).await;
    let text = "note protection: you may not create validatingwebhookconfigurations, so it was not tried whether static policies protect the webhook \
        configurations of gmsa [static-policies]";
    assert_eq!(found, [text]);
    let found = complaints(|api| answering(api, refused(500, "no"))).await;
    assert_eq!(found, ["skip protection: could not be checked: the API server answered 500: no [not-checked]"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_in_some_namespaces_is_named() {
    let found = complaints(|api| {
        let mut pod = api.object("pods", "gmsa", "webhook-a").unwrap();
        pod["spec"]["containers"][0]["args"].as_array_mut().unwrap().push(json!("--warn-namespaces=shop,till"));
        api.apply(pod);
    })
    .await;
    assert_eq!(found, ["warn service: denials are not enforced in shop, till [not-enforced]"]);
}
