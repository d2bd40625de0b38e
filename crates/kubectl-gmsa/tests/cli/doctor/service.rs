//! What `doctor` says of the Service of the webhook and of its permissions.

use serde_json::{Value, json};

use super::{
    super::cluster::{REFUSED, configurations, script},
    complaints,
};

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_the_service_are_found() {
    for (ready, complaint) in [
        ([true, false], "warn service: gmsa/webhook has 1 of 2 endpoints ready [endpoints]"),
        ([false, false], "fail service: gmsa/webhook has 0 of 2 endpoints ready [endpoints]"),
    ] {
        let found = complaints(|api| {
            let mut slice = api.object("endpointslices", "gmsa", "webhook-1").unwrap();
            for (place, ready) in ready.into_iter().enumerate() {
                slice["endpoints"][place]["conditions"]["ready"] = json!(ready);
            }
            api.apply(slice);
        })
        .await;
        assert_eq!(found, [complaint]);
    }
    let found = complaints(|api| {
        configurations(api, |webhook| {
            webhook["clientConfig"]["service"] = Value::Null;
            webhook["clientConfig"]["url"] = json!("https://localhost:8443/validate");
        });
    })
    .await;
    assert_eq!(
        found,
        [
            "warn service: the webhook is called at \"https://localhost:8443/validate\" [webhook-url]",
            "warn namespaces: pods are not reviewed in gmsa [namespaces-excluded]",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_permissions_are_found() {
    let found = complaints(|api| {
        script(api, REFUSED, &[r#""verb":"list""#, r#""resource":"gmsacredentialspecs","verb":"watch""#]);
    })
    .await;
    let reads = "gmsa:webhook may not list gmsacredentialspecs, watch gmsacredentialspecs: each pod costs a read";
    assert_eq!(found, [format!("warn permissions: {reads} [webhook-permissions]")]);
    let found = complaints(|api| script(api, REFUSED, &["localsubjectaccessreviews"])).await;
    let reviews = "gmsa:webhook may not create localsubjectaccessreviews";
    assert_eq!(found, [format!("fail permissions: {reviews} [webhook-permissions]")]);
}

/// The Role and the ClusterRole of the chart grant them by the arguments of the pod.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_role_is_found() {
    let found = complaints(|api| script(api, REFUSED, &[r#""resource":"secrets""#])).await;
    let secret = "get secrets/webhook-tls, watch secrets/webhook-tls, update secrets/webhook-tls";
    assert_eq!(found, [format!("fail permissions: gmsa:webhook may not {secret} [webhook-permissions]")]);
    let found =
        complaints(|api| script(api, REFUSED, &[r#""resource":"validatingwebhookconfigurations","verb":"patch""#]))
            .await;
    let patch = "gmsa:webhook may not patch validatingwebhookconfigurations/gmsa";
    assert_eq!(found, [format!("fail permissions: {patch} [webhook-permissions]")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_secret_is_found() {
    let found = complaints(|api| api.delete("secrets", "gmsa", "webhook-tls")).await;
    assert_eq!(found, ["fail secret: gmsa/webhook-tls does not exist [secret-missing]"]);

    // One that is mounted, of a pod that is not ready.
    let found = complaints(|api| {
        let mut pod = api.object("pods", "gmsa", "webhook-a").unwrap();
        pod["spec"]["containers"][0]["args"] = json!(["serve"]);
        pod["spec"]["volumes"] = json!([
            {"name": "tls", "secret": {"secretName": "cert"}},
            {"name": "more", "secret": {"secretName": "more", "optional": true}},
        ]);
        api.apply(pod);
        let mut slice = api.object("endpointslices", "gmsa", "webhook-1").unwrap();
        for place in [0, 1] {
            slice["endpoints"][place]["conditions"]["ready"] = json!(false);
        }
        api.apply(slice);
    })
    .await;
    assert_eq!(
        found,
        [
            "fail service: gmsa/webhook has 0 of 2 endpoints ready [endpoints]",
            "fail secret: gmsa/cert does not exist [secret-missing]",
        ]
    );
}
