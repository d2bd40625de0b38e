//! `check --live`, against the simulated API server: what it asks, what it finds in the cluster, and what it makes of each fault.

use std::process::Output;

use serde_json::{Value, json};

use super::{
    cluster::{configurations, healthy, kind, pod, run},
    support::{Fault, SimulatedApi, Table, Verb},
    text,
};

const NAMED: &str = "webapp1";

/// A pod that names a credential spec, and runs `image`.
fn named(image: &str) -> Value {
    let mut pod = pod("a", &json!({"gmsaCredentialSpecName": NAMED}));
    pod["spec"]["containers"][0]["image"] = json!(image);
    pod["spec"]["nodeSelector"] = json!({"kubernetes.io/os": "windows"});
    pod
}

async fn check(api: &SimulatedApi, objects: &[Value]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("manifests.yaml");
    let objects: Vec<String> = objects.iter().map(Value::to_string).collect();
    std::fs::write(&file, objects.join("\n---\n")).unwrap();
    run(api, &["check", "--live", "-f", file.to_str().unwrap(), "-o", "json"]).await
}

/// The results for places, the findings, and the exit code.
fn said(output: &Output) -> (Vec<String>, Vec<String>, i32) {
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    let results = report["places"].as_array().unwrap().iter().map(|place| place["result"].as_str().unwrap().to_owned());
    let findings = report["findings"].as_array().unwrap().iter().map(|found| {
        let part = |key: &str| found[key].as_str().unwrap();
        // What is in no file is named by its object.
        let object = Some(part("object")).filter(|_| part("file").is_empty()).map(|object| format!("{object} "));
        format!("{} {}: {}{}", part("level"), part("rule"), object.unwrap_or_default(), part("message"))
    });
    (results.collect(), findings.collect(), output.status.code().unwrap())
}

fn all(results: &[&str], findings: &[&str], code: i32) -> (Vec<String>, Vec<String>, i32) {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    (owned(results), owned(findings), code)
}

#[tokio::test(flavor = "multi_thread")]
async fn check_asks_the_cluster_once_for_each_thing() {
    let api = healthy().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pods.yaml");
    let pods = [
        pod("a", &json!({"gmsaCredentialSpecName": "webapp1"})),
        pod("b", &json!({"gmsaCredentialSpecName": "webapp1"})),
    ];
    std::fs::write(&file, pods.map(|pod| pod.to_string()).join("\n---\n")).unwrap();
    let output = run(&api, &["check", "--live", "-f", file.to_str().unwrap(), "-o", "json"]).await;
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let results: Vec<&Value> = report["places"].as_array().unwrap().iter().map(|place| &place["result"]).collect();
    assert_eq!(results, ["gets its contents", "gets its contents"]);
    assert_eq!(output.status.code(), Some(0), "{report}");
    assert_eq!(api.count(Verb::Get, "/gmsacredentialspecs/webapp1"), 1);
    assert_eq!(api.count(Verb::Create, "/namespaces/shop/localsubjectaccessreviews"), 1);
    assert_eq!(api.count(Verb::Get, "/namespaces/shop/serviceaccounts/web"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn check_looks_up_what_a_pod_refers_to() {
    let api = healthy().await;
    api.define(kind("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", false));
    api.apply(json!({
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "isolated"},
        "handler": "runhcs-wcow-hypervisor",
    }));
    api.delete("serviceaccounts", "shop", "web");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pod.yaml");
    let mut pod = pod("a", &json!({"gmsaCredentialSpecName": "webapp1"}));
    pod["spec"]["runtimeClassName"] = json!("isolated");
    std::fs::write(&file, pod.to_string()).unwrap();
    let check = ["check", "--live", "-f", file.to_str().unwrap(), "-o", "json"];
    let findings = |output: &Output| -> Vec<String> {
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let found = report["findings"].as_array().unwrap().iter();
        found.map(|found| format!("{} {}: {}", found["level"], found["rule"], found["message"])).collect()
    };
    let output = run(&api, &check).await;
    assert_eq!(
        findings(&output),
        [
            r#""error" "service-account-missing": "there is no service account \"web\" in namespace \"shop\" in the cluster""#,
            r#""warning" "hyper-v": "runtime class \"isolated\" isolates containers by Hyper-V (handler \"runhcs-wcow-hypervisor\")""#,
        ]
    );
    // A user who may not read them learns that they were not checked.
    api.fault(Verb::Get, "/serviceaccounts/", 1, Fault::forbidden());
    api.fault(Verb::Get, "/runtimeclasses/", 1, Fault::forbidden());
    let output = run(&api, &check).await;
    assert_eq!(
        findings(&output),
        [r#""note" "not-checked": "could not be checked: the API server answered 403: not allowed here""#,]
    );
    assert_eq!(output.status.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_user_may_not_read_could_not_be_checked() {
    let api = healthy().await;
    api.fault(Verb::Get, "/gmsacredentialspecs/", usize::MAX, Fault::forbidden());
    let unread = "warning not-checked: unable to retrieve the contents of cred spec webapp1: the API server answered 403: not allowed here";
    let output = check(&api, &[named("shop:ltsc2022")]).await;
    assert_eq!(said(&output), all(&["could not be checked"], &[unread], 2));
    // What is refused in any case is refused.
    api.authorize_by(Table::of(&[]));
    let refused = "error not-authorized: service account \"web\" is not authorized to `use` GMSA cred spec \"webapp1\"";
    assert_eq!(
        said(&check(&api, &[named("shop:ltsc2022")]).await),
        all(&["refused, 403: not-authorized"], &[refused], 1)
    );

    let api = healthy().await;
    api.fault(Verb::Create, "/localsubjectaccessreviews", usize::MAX, Fault::forbidden());
    let output = check(&api, &[named("shop:ltsc2022")]).await;
    let unasked = "warning not-checked: unable to check whether service account \"web\" is authorized to `use` GMSA cred spec \"webapp1\": the API server answered 403: not allowed here";
    assert_eq!(said(&output), all(&["could not be checked"], &[unasked], 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_is_down_refuses_nothing() {
    let mut api = healthy().await;
    api.stop().await;
    let output = check(&api, &[named("shop:ltsc2022")]).await;
    let (results, findings, code) = said(&output);
    assert_eq!((results, code), (vec!["could not be checked".to_owned()], 2));
    // The builds of the nodes are unknown, as without a cluster.
    let starts = [
        "warning not-checked: unable to retrieve the contents of cred spec webapp1: the API server cannot be reached: ",
        "note not-checked: the configurations of the webhooks, namespace shop, service account shop/web, the builds of the nodes \
         could not be checked: the API server cannot be reached: ",
        "note windows-build: no node.kubernetes.io/windows-build selector: ",
    ];
    assert_eq!(findings.len(), starts.len(), "{findings:#?}");
    for (found, start) in findings.iter().zip(starts) {
        assert!(found.starts_with(start), "{found}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_contents_are_promised_where_no_webhook_reviews_the_pod() {
    let api = healthy().await;
    let pod = [named("shop:ltsc2022")];
    let changed = |configuration: &str, change: &dyn Fn(&mut Value)| {
        let mut object = api.object(configuration, "", "gmsa").unwrap();
        change(&mut object["webhooks"][0]);
        api.apply(object);
    };
    // The label of the pod is not the one that is selected.
    configurations(&api, |webhook| webhook["objectSelector"] = json!({"matchLabels": {"gmsa": "yes"}}));
    let excluded =
        "no webhook for GMSA reviews this pod: the selectors in its configuration leave out the namespace, or the pod";
    assert_eq!(
        said(&check(&api, &pod).await),
        all(&["is not reviewed: gets no contents"], &[&format!("warning namespaces-excluded: {excluded}")], 1)
    );
    let mut labelled = named("shop:ltsc2022");
    labelled["metadata"]["labels"] = json!({"gmsa": "yes"});
    assert_eq!(said(&check(&api, &[labelled]).await), all(&["gets its contents"], &[], 0));
    configurations(&api, |webhook| {
        webhook["objectSelector"] = json!({});
        webhook["namespaceSelector"] = json!({"matchLabels": {"gmsa": "yes"}});
    });
    assert_eq!(
        said(&check(&api, &pod).await),
        all(&["is not reviewed: gets no contents"], &[&format!("warning namespaces-excluded: {excluded}")], 1)
    );
    // One of the two reviews it.
    changed("validatingwebhookconfigurations", &|webhook| webhook["namespaceSelector"] = json!({}));
    let (results, findings, code) = said(&check(&api, &pod).await);
    assert_eq!((results, code), (vec!["refused, 422: name-without-contents".to_owned()], 1));
    assert!(
        findings
            .iter()
            .any(|found| found.starts_with("warning namespaces-excluded: no mutating webhook for GMSA reviews"))
    );
    changed("mutatingwebhookconfigurations", &|webhook| webhook["namespaceSelector"] = json!({}));
    api.delete("validatingwebhookconfigurations", "", "gmsa");
    assert_eq!(
        said(&check(&api, &pod).await),
        all(
            &["gets its contents"],
            &["error webhook-missing: no validating webhook for GMSA reviews this pod: the cluster has none"],
            1
        )
    );
    api.delete("mutatingwebhookconfigurations", "", "gmsa");
    assert_eq!(
        said(&check(&api, &pod).await),
        all(
            &["is not reviewed: gets no contents"],
            &["error webhook-missing: no webhook for GMSA reviews this pod: the cluster has none"],
            1
        )
    );
    // Who may not read them learns that they were not read.
    api.fault(Verb::List, "/mutatingwebhookconfigurations", usize::MAX, Fault::forbidden());
    let unread = "note not-checked: the configurations of the webhooks could not be checked: the API server answered 403: not allowed here";
    assert_eq!(said(&check(&api, &pod).await), all(&["gets its contents, if the webhook reviews it"], &[unread], 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_does_not_exist_yet_has_the_labels_of_its_manifest() {
    let api = healthy().await;
    api.authorize_by(Table::of(&[("new", "default", NAMED)]));
    configurations(&api, |webhook| webhook["namespaceSelector"] = json!({"matchLabels": {"gmsa": "yes"}}));
    let mut pod = named("shop:ltsc2022");
    pod["metadata"]["namespace"] = json!("new");
    pod["spec"]["serviceAccountName"] = json!("default");
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new", "labels": {"gmsa": "yes"}}});
    assert_eq!(said(&check(&api, &[namespace, pod.clone()]).await), all(&["gets its contents"], &[], 0));
    assert_eq!(said(&check(&api, &[pod]).await).0, ["is not reviewed: gets no contents"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_class_and_a_service_account_exist_in_the_cluster_or_in_the_manifests() {
    let api = healthy().await;
    api.define(kind("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", false));
    api.delete("serviceaccounts", "shop", "web");
    let mut pod = named("shop:ltsc2022");
    pod["spec"]["runtimeClassName"] = json!("windows-2022");
    assert_eq!(
        said(&check(&api, std::slice::from_ref(&pod)).await),
        all(
            &["gets its contents"],
            &[
                "error service-account-missing: there is no service account \"web\" in namespace \"shop\" in the cluster",
                "error runtime-class-missing: there is no runtime class \"windows-2022\" in the cluster: the API server refuses the pod",
            ],
            1
        )
    );
    let beside = [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "web", "namespace": "shop"}}),
        json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "windows-2022"}, "handler": "runhcs-wcow-process"}),
        pod,
    ];
    assert_eq!(said(&check(&api, &beside).await), all(&["gets its contents"], &[], 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn images_are_compared_with_the_builds_of_the_nodes() {
    let api = healthy().await;
    let add = |name: &str, build: &str| {
        let labels = json!({"kubernetes.io/os": "windows", "node.kubernetes.io/windows-build": build});
        api.apply(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}));
    };
    let of = async |image: &str| {
        let output = check(&api, &[named(image)]).await;
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let fix = report["findings"].get(0).map_or("", |found| found["fix"].as_str().unwrap_or(""));
        (said(&output).1, fix.to_owned(), output.status.code().unwrap())
    };
    let nothing = (vec![], String::new(), 0);
    // All nodes are of 2022.
    assert_eq!(of("shop:ltsc2022").await, nothing);
    assert_eq!(of("shop:4.2").await, nothing);
    let none = "warning windows-build: no node of the cluster runs the image of container \"iis\", of 10.0.26100: they are of 10.0.20348";
    assert_eq!(of("shop:ltsc2025").await, (vec![none.to_owned()], String::new(), 1));
    // Those of 2025 run images of 2022 too.
    add("win-2025", "10.0.26100");
    assert_eq!(of("shop:ltsc2022").await, nothing);
    let some = "warning windows-build: the pod may land on a node of 10.0.20348, which does not run the image of container \"iis\", of 10.0.26100";
    let pinned = "spec:\n  nodeSelector: {node.kubernetes.io/windows-build: 10.0.26100}";
    assert_eq!(of("shop:ltsc2025").await, (vec![some.to_owned()], pinned.to_owned(), 1));
    let unknown = "note windows-build: no node.kubernetes.io/windows-build selector: where nodes differ in build, the container may not start";
    assert_eq!(of("shop:4.2").await, (vec![unknown.to_owned()], String::new(), 0));
    // Of three, two fit: neither is pinned alone.
    add("win-2019", "10.0.17763");
    let (findings, fix, code) = of("shop:ltsc2022").await;
    let some = "warning windows-build: the pod may land on a node of 10.0.17763, which does not run the image of container \"iis\", of 10.0.20348";
    assert_eq!((findings, code), (vec![some.to_owned()], 1));
    assert!(fix.ends_with("operator: In, values: [10.0.20348, 10.0.26100]}"), "{fix}");
}
