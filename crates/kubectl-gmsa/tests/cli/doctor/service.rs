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

/// Of the four access reviews: get, list, watch, and the creation of access reviews.
#[tokio::test(flavor = "multi_thread")]
async fn missing_permissions_are_found() {
    let found = complaints(|api| script(api, REFUSED, &[true, false, false, true])).await;
    let reads = "gmsa:webhook may not list gmsacredentialspecs, watch gmsacredentialspecs: each pod costs a read";
    assert_eq!(found, [format!("warn permissions: {reads} [webhook-permissions]")]);
    let found = complaints(|api| script(api, REFUSED, &[true, true, true, false])).await;
    let reviews = "gmsa:webhook may not create localsubjectaccessreviews";
    assert_eq!(found, [format!("fail permissions: {reviews} [webhook-permissions]")]);
}
