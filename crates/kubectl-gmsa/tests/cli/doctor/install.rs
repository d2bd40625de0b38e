//! What `doctor` says of the custom resource and of the webhook configurations.

use serde_json::{Value, json};

use super::{
    super::{
        cluster::{configurations, healthy, run},
        support::SimulatedApi,
        text,
    },
    NAME, complaints, explained,
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
    let change = |api: &SimulatedApi, selector: Value| {
        let mut configuration = api.object("validatingwebhookconfigurations", "", "gmsa").unwrap();
        configuration["webhooks"][0]["namespaceSelector"] = selector;
        let fields = |owned: Value| json!({"f:webhooks": {"k:{\"name\":\"admission-webhook.windows-gmsa.sigs.k8s.io\"}": owned}});
        configuration["metadata"]["managedFields"] = json!([
            {"manager": "helm", "fieldsV1": fields(json!({"f:rules": {}, "f:namespaceSelector": {}}))},
            {"manager": "gmsa-webhook", "fieldsV1": fields(json!({"f:clientConfig": {"f:caBundle": {}}}))},
            {"manager": "admissionsenforcer", "fieldsV1": fields(json!({"f:namespaceSelector": {"f:matchExpressions": {}}}))},
        ]);
        api.apply(configuration);
    };
    let expression =
        json!({"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "gmsa"]});
    let found = explained(|api| change(api, json!({"matchExpressions": [expression]}))).await;
    let changed = format!("the selectors of {NAME} were changed after the installation, by admissionsenforcer");
    let remedy = "`kubectl patch validatingwebhookconfiguration gmsa --type=json -p '[{\"op\":\"test\",\"path\":\"/webhooks/0/name\",\
        \"value\":\"admission-webhook.windows-gmsa.sigs.k8s.io\"},{\"op\":\"remove\",\"path\":\"/webhooks/0/namespaceSelector\"}]'`, then \
        `helm upgrade webhook CHART -n gmsa --force-conflicts`, which brings back those of the chart's values.";
    assert_eq!(found, [(format!("warn configuration: {changed} [selectors-changed]"), remedy.to_owned())]);

    // After that patch the selector is the API server's default, and belongs to whoever made the patch.
    assert_eq!(explained(|api| change(api, json!({}))).await, []);
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
async fn what_is_missing_is_created_again_by_what_installed_the_rest() {
    let missing = |kind: &str| format!("fail configuration: no {kind} sends pods to a GMSA webhook [webhook-missing]");
    let found = explained(|api| api.delete("mutatingwebhookconfigurations", "", "gmsa")).await;
    let again = "`helm upgrade webhook CHART -n gmsa` creates it again.".to_owned();
    assert_eq!(found, [(missing("MutatingWebhookConfiguration"), again.clone())]);

    let delete_both = |api: &SimulatedApi| {
        for plural in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
            api.delete(plural, "", "gmsa");
        }
    };
    let both = |remedy: &str| {
        ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]
            .map(|kind| (missing(kind), remedy.to_owned()))
    };
    let install =
        "Install the chart: `helm install gmsa-webhook charts/gmsa-webhook -n gmsa-webhook --create-namespace`.";
    assert_eq!(explained(delete_both).await, both(install));

    // Only the Deployment of the chart is left.
    let left = |annotations: Value| {
        let metadata = json!({"name": "webhook", "namespace": "gmsa", "annotations": annotations});
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata})
    };
    let helm = json!({"meta.helm.sh/release-name": "webhook", "meta.helm.sh/release-namespace": "gmsa"});
    let manifest = "`kubectl apply --server-side -f` with the manifest that installed it creates it again.";
    for (annotations, remedy) in [(helm, again.as_str()), (json!({}), manifest)] {
        let found = explained(|api| {
            delete_both(api);
            api.apply(left(annotations));
        })
        .await;
        assert_eq!(found, both(remedy));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_installations_are_found_and_each_is_checked() {
    // The webhooks of one installation have different names, those of two installations have the same.
    let found = explained(|api| {
        let mut more = api.object("mutatingwebhookconfigurations", "", "gmsa").unwrap();
        more["metadata"]["name"] = json!("gmsa-last");
        more["webhooks"][0]["name"] = json!("last.windows-gmsa.sigs.k8s.io");
        api.apply(more);
        let mut other = api.object("mutatingwebhookconfigurations", "", "gmsa").unwrap();
        other["metadata"] = json!({
            "name": "other",
            "annotations": {"meta.helm.sh/release-name": "other", "meta.helm.sh/release-namespace": "elsewhere"},
        });
        other["webhooks"][0]["clientConfig"]["service"] = json!({"namespace": "elsewhere", "name": "other"});
        api.apply(other);
    })
    .await;
    let twice = format!(
        "warn configuration: 2 MutatingWebhookConfigurations of several installations are for GMSA: {NAME}, other/{} [webhook-duplicate]",
        &NAME["gmsa/".len()..]
    );
    let remedy = "All of them must admit a Pod. Keep one, and uninstall the others: `helm uninstall webhook -n gmsa` or `helm uninstall other -n \
        elsewhere`.";
    let down = "fail service: elsewhere/other has 0 of 0 endpoints ready [endpoints]";
    let describe = "kubectl describe pods -n elsewhere";
    assert_eq!(found, [(twice, remedy.to_owned()), (down.to_owned(), describe.to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_webhook_that_aks_manages_stays() {
    for mark in [
        json!({"labels": {"kubernetes.azure.com/managedby": "aks"}}),
        json!({"labels": {"app.kubernetes.io/managed-by": "aks"}}),
        json!({"labels": {"addonmanager.kubernetes.io/mode": "Reconcile"}}),
        json!({"annotations": {"meta.helm.sh/release-name": "aks-managed-gmsa", "meta.helm.sh/release-namespace": "kube-system"}}),
    ] {
        let api = healthy().await;
        let mut managed = api.object("mutatingwebhookconfigurations", "", "gmsa").unwrap();
        managed["metadata"] = mark;
        managed["metadata"]["name"] = json!("aks-gmsa");
        managed["webhooks"][0]["matchConditions"] = Value::Null;
        managed["webhooks"][0]["clientConfig"]["service"] = json!({"namespace": "kube-system", "name": "gmsa-webhook"});
        api.apply(managed);
        let output = run(&api, &["doctor"]).await;
        let said = "pass  configuration      aks-gmsa/admission-webhook.windows-gmsa.sigs.k8s.io is managed by AKS (--enable-windows-gmsa), which \
            also gives the nodes their plugin and DNS: keep it. Every webhook for GMSA must admit a pod, and while this one does not answer, no \
            pod is created at all\n";
        assert!(text(&output.stdout).contains(said), "{}", text(&output.stdout));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    }
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
