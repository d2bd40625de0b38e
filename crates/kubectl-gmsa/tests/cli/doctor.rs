//! `doctor` on the simulated API server: green where all is well, and what it says of each fault.

use serde_json::{Value, json};

use super::{
    live::{PROBE, configurations, good_credspec, healthy, pod, run},
    support::{Fault, SimulatedApi, Table, Verb, credential_spec},
    text,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_healthy_install_is_all_pass() {
    let api = healthy().await;
    let output = run(&api, &["doctor"]).await;
    let expected = "\
pass  API server           answers, v1.36.0
pass  custom resource      serves v1, v1alpha1
pass  configuration        gmsa/admission-webhook.windows-gmsa.sigs.k8s.io is complete
pass  certificate          the caBundle of gmsa/admission-webhook.windows-gmsa.sigs.k8s.io is good for N days
pass  configuration        gmsa/admission-webhook.windows-gmsa.sigs.k8s.io is complete
pass  certificate          the caBundle of gmsa/admission-webhook.windows-gmsa.sigs.k8s.io is good for N days
pass  call of the webhook  the API server reaches it and trusts its certificate (dry run in default)
pass  service              gmsa/webhook has 2 of 2 endpoints ready
pass  service              runs gmsa-webhook:0.1.0
pass  permissions          gmsa:webhook may do what it must
pass  namespaces           2 of 4 are looked at
pass  credential specs     no problems found in 1
pass  pods                 1 uses GMSA, as its credential spec is now
pass  Windows nodes        1 of 10.0.20348
";
    let days = |line: &str| match line.split_once(" is good for ") {
        Some((head, _)) => format!("{head} is good for N days\n"),
        None => format!("{line}\n"),
    };
    let found: String = text(&output.stdout).lines().map(days).collect::<Vec<_>>().concat();
    assert_eq!(found, expected, "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
}

/// The lines that do not pass, once `fault` is in the cluster.
async fn complaints(fault: impl FnOnce(&SimulatedApi)) -> Vec<String> {
    let api = healthy().await;
    fault(&api);
    let output = run(&api, &["doctor", "--json"]).await;
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let lines: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    lines
        .iter()
        .filter(|line| line["status"] != "pass")
        .map(|line| {
            format!(
                "{} {}: {}",
                line["status"].as_str().unwrap(),
                line["about"].as_str().unwrap(),
                line["text"].as_str().unwrap()
            )
        })
        .collect()
}

async fn healthy_validating() -> Value {
    healthy().await.object("validatingwebhookconfigurations", "", "gmsa").unwrap()
}

const NAME: &str = "gmsa/admission-webhook.windows-gmsa.sigs.k8s.io";

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_the_install_are_found() {
    let found = complaints(|api| api.undefine("customresourcedefinitions")).await;
    assert_eq!(found, ["fail custom resource: gmsacredentialspecs.windows.k8s.io is not installed"]);

    let found = complaints(|api| {
        let mut crd = api.object("customresourcedefinitions", "", "gmsacredentialspecs.windows.k8s.io").unwrap();
        crd["metadata"]["annotations"] = json!({});
        api.apply(crd);
    })
    .await;
    assert_eq!(
        found,
        ["warn custom resource: serves v1, v1alpha1, but is older than this release's (revision 0, not 1)"]
    );

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
    assert_eq!(
        found,
        [format!("warn configuration: the selectors of {NAME} were changed after the install, by admissionsenforcer")]
    );

    // On older clusters there is one for system namespaces, which does not hold up anything.
    let mut with_system = healthy_validating().await;
    with_system["webhooks"][0]["name"] = json!("system-namespaces.windows-gmsa.sigs.k8s.io");
    with_system["webhooks"][0]["failurePolicy"] = json!("Ignore");
    with_system["webhooks"][0].as_object_mut().unwrap().remove("matchConditions");
    let output = {
        let api = healthy().await;
        let mut configuration = api.object("validatingwebhookconfigurations", "", "gmsa").unwrap();
        configuration["webhooks"].as_array_mut().unwrap().push(with_system["webhooks"][0].take());
        api.apply(configuration);
        run(&api, &["doctor"]).await
    };
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));

    let found = complaints(|api| api.delete("mutatingwebhookconfigurations", "", "gmsa")).await;
    assert_eq!(found, ["fail configuration: no MutatingWebhookConfiguration sends pods to a GMSA webhook"]);

    // Two of one install stand by different names, those of two installs by the same.
    let found = complaints(|api| {
        for name in ["last.windows-gmsa.sigs.k8s.io", "admission-webhook.windows-gmsa.sigs.k8s.io"] {
            let mut more = api.object("mutatingwebhookconfigurations", "", "gmsa").unwrap();
            more["metadata"] = json!({"name": format!("other-{}", name.len())});
            more["webhooks"][0]["name"] = json!(name);
            api.apply(more);
        }
    })
    .await;
    let twice = "2 MutatingWebhookConfigurations of several installs are for GMSA";
    assert_eq!(found, [format!("warn configuration: {twice}: {NAME}, other-42/{}", &NAME["gmsa/".len()..])]);

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
            format!("{level} configuration: {NAME} does not look at UPDATE pods/ephemeralcontainers"),
            format!("fail configuration: {NAME} has failurePolicy Ignore: pods pass while the webhook is down"),
            format!("warn configuration: {NAME} has no matchConditions: every pod waits for the webhook"),
            format!("fail certificate: {NAME} has no caBundle"),
        ]
    };
    assert_eq!(found, [both("warn"), both("fail")].concat());

    let found = complaints(|api| {
        api.heal();
        api.fault(Verb::Get, "/version", usize::MAX, Fault::Object(json!({})));
        api.fault(Verb::Create, "/subjectaccessreviews", usize::MAX, Fault::Object(json!({"status": {"allowed": false}})));
        let message = "Internal error occurred: failed calling webhook \"admission-webhook.windows-gmsa.sigs.k8s.io\": x509: certificate signed by unknown authority";
        let refuse = Fault::Refuse { code: 500, reason: "InternalError", message, retry_after: None };
        api.fault(Verb::Create, "/pods?dryRun=All", usize::MAX, refuse);
        api.delete("endpointslices", "gmsa", "webhook-1");
    })
    .await;
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("fail call of the webhook: the API server answered 500: "), "{}", found[0]);
    assert!(found[0].contains("x509: certificate signed by unknown authority"), "{}", found[0]);
    assert_eq!(found[1], "fail service: gmsa/webhook has 0 of 0 endpoints ready");
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
    assert_eq!(found, ["fail custom resource: v1 is not served, only: v1alpha1"]);
    let found = complaints(|api| {
        api.apply(definition(&json!([{"name": "v1", "served": true}]), "False"));
    })
    .await;
    assert_eq!(found, ["fail custom resource: it is not established"]);
}

/// A CA that is valid from a number of days ago until a number of days from now, in a bundle as configurations hold it.
fn bundle_until(days: i64) -> String {
    let mut params = rcgen::CertificateParams::new(vec![]).unwrap();
    let now = time::OffsetDateTime::now_utc();
    params.not_before = now - time::Duration::days(365);
    params.not_after = now + time::Duration::days(days) + time::Duration::hours(1);
    let ca = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
    base64::Engine::encode(&base64::prelude::BASE64_STANDARD, ca.pem())
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_that_end_are_found() {
    for (bundle, complaint) in [
        (bundle_until(-1), format!("fail certificate: the caBundle of {NAME} has expired")),
        (bundle_until(13), format!("warn certificate: the caBundle of {NAME} expires in 13 days")),
        ("bm9uZQ==".to_owned(), format!("fail certificate: the caBundle of {NAME} holds no certificate")),
    ] {
        let found = complaints(|api| {
            configurations(api, |webhook| webhook["clientConfig"]["caBundle"] = json!(bundle));
        })
        .await;
        assert_eq!(found, [complaint.clone(), complaint]);
    }
}

/// What a replica says on its admin port of a certificate that is valid for this many more days.
fn serves_until(api: &SimulatedApi, days: i64) {
    let end = time::OffsetDateTime::now_utc() + time::Duration::days(days) + time::Duration::hours(1);
    let metrics = format!("gmsa_webhook_certificate_expiry_timestamp_seconds {}\n# EOF\n", end.unix_timestamp());
    api.fault(Verb::Get, "/pods/webhook-a:9090/proxy/metrics", usize::MAX, Fault::Text(200, metrics.leak()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_served_certificate_is_looked_at_where_it_can_be_seen() {
    for (days, complaint) in [
        (-1, "fail certificate: the certificate that webhook-a serves has expired"),
        (6, "warn certificate: the certificate that webhook-a serves expires in 6 days"),
    ] {
        assert_eq!(complaints(|api| serves_until(api, days)).await, [complaint]);
    }

    let api = healthy().await;
    serves_until(&api, 7);
    let output = run(&api, &["doctor"]).await;
    let line = "\npass  certificate          the certificate that webhook-a serves is good for 7 days\n";
    assert!(text(&output.stdout).contains(line), "{}", text(&output.stdout));
    assert_eq!(output.status.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_the_service_are_found() {
    let slice = |ready: [bool; 2]| {
        let endpoint = |(pod, ready): (&str, bool)| json!({"conditions": {"ready": ready}, "targetRef": {"name": pod}});
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": "webhook-1", "namespace": "gmsa"},
            "endpoints": [endpoint(("webhook-a", ready[0])), endpoint(("webhook-b", ready[1]))],
        })
    };
    let found = complaints(|api| {
        api.apply(slice([true, false]));
    })
    .await;
    assert_eq!(found, ["warn service: gmsa/webhook has 1 of 2 endpoints ready"]);
    let found = complaints(|api| {
        api.apply(slice([false, false]));
    })
    .await;
    assert_eq!(found, ["fail service: gmsa/webhook has 0 of 2 endpoints ready"]);
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
            "warn service: the webhook is called at \"https://localhost:8443/validate\"",
            "warn namespaces: pods are not looked at in gmsa",
        ]
    );
}

/// The answers to the four questions about the webhook's permissions, in their order: get, list, watch, access reviews.
fn permissions(api: &SimulatedApi, allowed: [bool; 4]) {
    api.heal();
    api.fault(Verb::Get, "/version", usize::MAX, Fault::Object(json!({"gitVersion": "v1.36.0"})));
    let refuse = Fault::Refuse { code: 404, reason: "NotFound", message: PROBE, retry_after: None };
    api.fault(Verb::Create, "/pods?dryRun=All", usize::MAX, refuse);
    for allowed in allowed {
        let answer = Fault::Object(json!({"status": {"allowed": allowed}}));
        api.fault(Verb::Create, "/subjectaccessreviews", 1, answer);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_permissions_are_found() {
    let found = complaints(|api| permissions(api, [true, false, false, true])).await;
    assert_eq!(
        found,
        [
            "warn permissions: gmsa:webhook may not list gmsacredentialspecs, watch gmsacredentialspecs: each pod costs a read"
        ]
    );
    let found = complaints(|api| permissions(api, [true, true, true, false])).await;
    assert_eq!(found, ["fail permissions: gmsa:webhook may not create localsubjectaccessreviews"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unasked_webhook_is_found() {
    let found = complaints(|api| {
        api.heal();
        api.fault(Verb::Get, "/version", usize::MAX, Fault::Object(json!({"gitVersion": "v1.36.0"})));
        let allowed = Fault::Object(json!({"status": {"allowed": true}}));
        api.fault(Verb::Create, "/subjectaccessreviews", usize::MAX, allowed);
        api.fault(Verb::Create, "/pods?dryRun=All", usize::MAX, Fault::Object(json!({"kind": "Pod"})));
    })
    .await;
    assert_eq!(
        found,
        [
            "fail call of the webhook: a pod that names a credential spec that does not exist would be created in default"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_its_users_are_found() {
    let found = complaints(|api| {
        let mut credspec = good_credspec();
        credspec["DomainJoinConfig"]["Sid"] = json!("S-1-5-21-1-2-3-4");
        api.apply(credential_spec("wrong", credspec));
        api.apply(pod("bare", &json!({"gmsaCredentialSpecName": "webapp1"})));
        api.apply(pod("old", &json!({"gmsaCredentialSpecName": "webapp1", "gmsaCredentialSpec": "{}"})));
        let labels = json!({"node.kubernetes.io/windows-build": "10.0.17763"});
        api.apply(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "win2", "labels": labels}}));
        api.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "loose", "labels": {"kubernetes.io/metadata.name": "gmsa"}}}));
    })
    .await;
    assert_eq!(
        found,
        [
            "warn namespaces: pods are not looked at in loose",
            "fail credential specs: wrong: credspec.DomainJoinConfig.Sid: \"S-1-5-21-1-2-3-4\" is an account's SID: one number too many",
            "fail pods: 1 name a credential spec and carry no contents: shop/bare",
            "warn pods: 1 carry other contents than their credential spec has now: shop/old",
            "warn Windows nodes: of several builds: 1 of 10.0.17763, 1 of 10.0.20348",
        ]
    );
    let found = complaints(|api| api.fault(Verb::List, "/api/v1/nodes", usize::MAX, Fault::forbidden())).await;
    assert_eq!(found, ["warn Windows nodes: could not be looked at: the API server answered 403: not allowed here"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_pod_is_explained() {
    let api = healthy().await;
    let output = run(&api, &["doctor", "--pod", "shop/web"]).await;
    assert_eq!(
        text(&output.stdout),
        "\
pass  admission   the pod carries the contents of its credential spec
pass  permission  shop:web may use webapp1
pass  node        Running on win1
pass  in the pod  ask it:
kubectl exec -n shop web -- nltest /query
kubectl exec -n shop web -- nltest /sc_verify:contoso.com
kubectl exec -n shop web -- klist get WebApp1
kubectl exec -n shop web -- whoami
"
    );
    assert_eq!(output.status.code(), Some(0));
    api.authorize_by(Table::default());
    let output = run(&api, &["doctor", "--pod", "shop/web"]).await;
    assert!(text(&output.stdout).contains(
        "fail  permission  shop:web may not use webapp1\n                  -> kubectl gmsa grant --credspec webapp1 --serviceaccount shop:web --apply\n"
    ));
    api.apply(pod("bare", &json!({"gmsaCredentialSpecName": "gone"})));
    let mut waiting = pod("old", &json!({"gmsaCredentialSpecName": "webapp1", "gmsaCredentialSpec": "{}"}));
    waiting["status"] = json!({"phase": "Pending", "containerStatuses": [
        {"state": {"waiting": {"reason": "CreateContainerError", "message": "winapi error #3489792023"}}},
    ]});
    api.apply(waiting);
    api.authorize_by(Table::of(&[("shop", "web", "webapp1"), ("shop", "web", "gone")]));
    let output = run(&api, &["doctor", "--pod", "shop/bare"]).await;
    assert_eq!(
        text(&output.stdout),
        "\
fail  admission        the pod names a credential spec and carries no contents: the webhook did not see it
                       -> delete it: its controller makes a new one; then run doctor without --pod
fail  credential spec  gone does not exist
                       -> kubectl gmsa credspec new gone
pass  permission       shop:web may use gone
pass  node             Running on win1
"
    );
    let output = run(&api, &["doctor", "--pod", "shop/old"]).await;
    assert_eq!(
        text(&output.stdout),
        "\
warn  admission   the pod carries other contents than its credential spec has now
                  -> delete it: its controller makes a new one
pass  permission  shop:web may use webapp1
fail  node        Pending on win1, waiting: CreateContainerError: winapi error #3489792023
                  -> see docs/troubleshooting.md
"
    );
    let output = run(&api, &["doctor", "--pod", "shop/none"]).await;
    assert_eq!((text(&output.stderr), output.status.code()), ("error: there is no pod shop/none\n", Some(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_ends_when_the_install_is_ready() {
    let api = healthy().await;
    let pod = "/namespaces/gmsa/endpointslices";
    api.fault(Verb::List, pod, 1, Fault::Object(json!({"items": []})));
    let output = run(&api, &["doctor", "--wait", "60"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    assert_eq!(text(&output.stderr), "waiting: service: gmsa/webhook has 0 of 0 endpoints ready\n");
    assert_eq!(api.count(Verb::List, pod), 2);
}
