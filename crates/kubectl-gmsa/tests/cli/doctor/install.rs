//! What `doctor` says of the custom resource, the webhook configurations and the call of the webhook.

use serde_json::{Value, json};

use super::{
    super::{
        cluster::{configurations, healthy, run, script},
        support::Fault,
        text,
    },
    NAME, complaints,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_or_old_custom_resource_is_found() {
    let found = complaints(|api| api.undefine("customresourcedefinitions")).await;
    assert_eq!(found, ["fail custom resource: gmsacredentialspecs.windows.k8s.io is not installed [crd-missing]"]);

    let found = complaints(|api| {
        let mut crd = api.object("customresourcedefinitions", "", "gmsacredentialspecs.windows.k8s.io").unwrap();
        crd["metadata"]["annotations"] = json!({});
        api.apply(crd);
    })
    .await;
    let old = "serves v1, v1alpha1, but is older than this release's (revision 0, not 2)";
    assert_eq!(found, [format!("warn custom resource: {old} [crd-outdated]")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn selectors_that_another_manager_owns_are_found() {
    // AKS adds expressions to the selectors of webhooks. What the webhook itself writes is no change.
    let found = complaints(|api| {
        let mut configuration = api.object("validatingwebhookconfigurations", "", "gmsa").unwrap();
        let fields = |owned: Value| json!({"f:webhooks": {"k:{\"name\":\"admission-webhook.windows-gmsa.sigs.k8s.io\"}": owned}});
        configuration["metadata"]["managedFields"] = json!([
            {"manager": "helm", "fieldsV1": fields(json!({"f:rules": {}, "f:namespaceSelector": {}}))},
            {"manager": "gmsa-webhook", "fieldsV1": fields(json!({"f:clientConfig": {"f:caBundle": {}}}))},
            {"manager": "admissionsenforcer", "fieldsV1": fields(json!({"f:namespaceSelector": {"f:matchExpressions": {}}}))},
        ]);
        api.apply(configuration);
    })
    .await;
    let changed = format!("the selectors of {NAME} were changed after the installation, by admissionsenforcer");
    assert_eq!(found, [format!("warn configuration: {changed} [selectors-changed]")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_webhook_for_system_namespaces_is_not_of_pods() {
    let api = healthy().await;
    let mut configuration = api.object("validatingwebhookconfigurations", "", "gmsa").unwrap();
    let webhooks = configuration["webhooks"].as_array_mut().unwrap();
    let mut system = webhooks[0].clone();
    system["name"] = json!("system-namespaces.windows-gmsa.sigs.k8s.io");
    system["failurePolicy"] = json!("Ignore");
    system["matchConditions"] = Value::Null;
    webhooks.push(system);
    api.apply(configuration);
    let output = run(&api, &["doctor"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_and_duplicate_configurations_are_found() {
    let found = complaints(|api| api.delete("mutatingwebhookconfigurations", "", "gmsa")).await;
    let missing = "no MutatingWebhookConfiguration sends pods to a GMSA webhook";
    assert_eq!(found, [format!("fail configuration: {missing} [webhook-missing]")]);

    // The webhooks of one installation have different names, those of two installations have the same.
    let found = complaints(|api| {
        for name in ["last.windows-gmsa.sigs.k8s.io", "admission-webhook.windows-gmsa.sigs.k8s.io"] {
            let mut more = api.object("mutatingwebhookconfigurations", "", "gmsa").unwrap();
            more["metadata"] = json!({"name": format!("other-{}", name.len())});
            more["webhooks"][0]["name"] = json!(name);
            api.apply(more);
        }
    })
    .await;
    let twice = "2 MutatingWebhookConfigurations of several installations are for GMSA";
    let names = format!("{NAME}, other-42/{}", &NAME["gmsa/".len()..]);
    assert_eq!(found, [format!("warn configuration: {twice}: {names} [webhook-duplicate]")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_a_configuration_are_found() {
    let found = complaints(|api| {
        configurations(api, |webhook| {
            webhook["failurePolicy"] = json!("Ignore");
            webhook["matchConditions"] = Value::Null;
            webhook["clientConfig"]["caBundle"] = json!("");
            webhook["rules"][0]["resources"] = json!(["pods"]);
        });
    })
    .await;
    let both = |level: &str| {
        vec![
            format!("{level} configuration: {NAME} does not receive UPDATE pods/ephemeralcontainers [webhook-rules]"),
            format!(
                "fail configuration: {NAME} has failurePolicy Ignore: pods pass while the webhook is down [failure-policy]"
            ),
            format!(
                "warn configuration: {NAME} has no matchConditions: every pod waits for the webhook [match-conditions]"
            ),
            format!("fail certificate: {NAME} has no caBundle [ca-bundle]"),
        ]
    };
    assert_eq!(found, [both("warn"), both("fail")].concat());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selector_that_cannot_be_read_is_not_taken_for_one_that_selects_all() {
    let found = complaints(|api| {
        configurations(api, |webhook| {
            webhook["namespaceSelector"]["matchExpressions"][0]["operator"] = json!("Like");
        });
    })
    .await;
    let cause = "could not be checked: failed to parse value as expression: Invalid expression operator";
    assert_eq!(found, [format!("skip namespaces: {cause} [not-checked]")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_cannot_be_called_is_found() {
    let found = complaints(|api| {
        let message = "Internal error occurred: failed calling webhook \"admission-webhook.windows-gmsa.sigs.k8s.io\": x509: certificate signed by unknown authority";
        script(api, Fault::Refuse { code: 500, reason: "InternalError", message, retry_after: None }, &[]);
        api.delete("endpointslices", "gmsa", "webhook-1");
    })
    .await;
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("fail call of the webhook: the API server answered 500: "), "{}", found[0]);
    assert!(found[0].ends_with("x509: certificate signed by unknown authority [webhook-unreachable]"), "{}", found[0]);
    assert_eq!(found[1], "fail service: gmsa/webhook has 0 of 0 endpoints ready [endpoints]");
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_the_custom_resource_are_found() {
    let definition = |versions: &Value, established: &str| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "gmsacredentialspecs.windows.k8s.io"},
            "spec": {"versions": versions},
            "status": {"conditions": [{"type": "Established", "status": established}]},
        })
    };
    let old = json!([{"name": "v1alpha1", "served": true}, {"name": "v1", "served": false}]);
    let found = complaints(|api| {
        api.apply(definition(&old, "True"));
    })
    .await;
    assert_eq!(found, ["fail custom resource: v1 is not served, only: v1alpha1 [crd-not-served]"]);
    let found = complaints(|api| {
        api.apply(definition(&json!([{"name": "v1", "served": true}]), "False"));
    })
    .await;
    assert_eq!(found, ["fail custom resource: it is not established [crd-not-served]"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_is_not_called_is_found() {
    let found = complaints(|api| script(api, Fault::Object(json!({"kind": "Pod"})), &[])).await;
    let created = "a pod that names a credential spec that does not exist would be created in default";
    assert_eq!(found, [format!("fail call of the webhook: {created} [webhook-not-called]")]);
}
