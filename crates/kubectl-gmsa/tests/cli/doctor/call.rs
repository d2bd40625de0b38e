//! What `doctor` sends as dry runs.

use serde_json::json;

use super::super::{
    cluster::{DRY_RUN, healthy, run},
    support::Verb,
    text,
};

/// What the Pod Security Standard `restricted` asks of a Windows pod: it is enforced before validating webhooks are called.
#[tokio::test(flavor = "multi_thread")]
async fn the_dry_runs_are_for_a_restricted_namespace_too() {
    let api = healthy().await;
    let output = run(&api, &["doctor", "-n", "shop"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    let sent = api.requests(Verb::Create, "/namespaces/shop/pods?dryRun=All");
    assert_eq!((sent.len(), api.count(Verb::Create, DRY_RUN)), (2, 2));
    let mut contents = Vec::new();
    for request in sent {
        let spec = &request.body["spec"];
        assert_eq!((&spec["os"]["name"], &spec["securityContext"]["runAsNonRoot"]), (&json!("windows"), &json!(true)));
        let options = &spec["securityContext"]["windowsOptions"];
        assert_eq!(options["gmsaCredentialSpecName"], "gmsa-webhook-test-does-not-exist");
        contents.push(options["gmsaCredentialSpec"].as_str().map(str::to_owned));
    }
    contents.sort();
    assert_eq!(contents, [None, Some("{}".to_owned())]);
}
