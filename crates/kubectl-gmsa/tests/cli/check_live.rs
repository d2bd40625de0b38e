//! `check --live`, against the simulated API server: what it asks, what it finds in the cluster, and what it makes of each fault.

use std::process::Output;

use serde_json::{Value, json};

use super::{
    assert_printed,
    cluster::{configurations, healthy, kind, pod, run},
    shown,
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

fn folder_with(objects: &[Value]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let objects: Vec<String> = objects.iter().map(Value::to_string).collect();
    std::fs::write(folder.path().join("manifests.yaml"), objects.join("\n---\n")).unwrap();
    folder
}

async fn check(api: &SimulatedApi, objects: &[Value]) -> Output {
    let folder = folder_with(objects);
    run(api, &["check", "--live", "-f", folder.path().to_str().unwrap(), "-o", "json"]).await
}

/// What `check` prints of these objects, and its exit code.
async fn printed(api: &SimulatedApi, objects: &[Value]) -> String {
    let folder = folder_with(objects);
    let output = run(api, &["check", "--live", "-f", folder.path().to_str().unwrap()]).await;
    let folder = format!("{}{}", folder.path().display(), std::path::MAIN_SEPARATOR);
    shown(&output).replace(&folder, "FOLDER/")
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
    let pods = [
        pod("a", &json!({"gmsaCredentialSpecName": "webapp1"})),
        pod("b", &json!({"gmsaCredentialSpecName": "webapp1"})),
    ];
    let output = check(&api, &pods).await;
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
    let mut pod = pod("a", &json!({"gmsaCredentialSpecName": "webapp1"}));
    pod["spec"]["runtimeClassName"] = json!("isolated");
    let mut runs = vec![("both are read", printed(&api, std::slice::from_ref(&pod)).await)];
    // A user who may not read them learns that they were not checked.
    api.fault(Verb::Get, "/serviceaccounts/", 1, Fault::forbidden());
    api.fault(Verb::Get, "/runtimeclasses/", 1, Fault::forbidden());
    runs.push(("neither may be read", printed(&api, &[pod]).await));
    assert_printed("check-references", &runs);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_user_may_not_read_could_not_be_checked() {
    let api = healthy().await;
    api.fault(Verb::Get, "/gmsacredentialspecs/", usize::MAX, Fault::forbidden());
    let pod = [named("shop:ltsc2022")];
    let mut runs = vec![("credential specs may not be read", printed(&api, &pod).await)];
    // What is refused in any case is refused.
    api.authorize_by(Table::of(&[]));
    runs.push(("and the service account may not use any", printed(&api, &pod).await));

    let api = healthy().await;
    api.fault(Verb::Create, "/localsubjectaccessreviews", usize::MAX, Fault::forbidden());
    runs.push(("no access review may be made", printed(&api, &pod).await));
    assert_printed("check-unread", &runs);
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
    let mut runs = vec![("another label of the pod is selected", printed(&api, &pod).await)];
    let mut labelled = named("shop:ltsc2022");
    labelled["metadata"]["labels"] = json!({"gmsa": "yes"});
    runs.push(("the label of the pod is selected", printed(&api, &[labelled]).await));
    configurations(&api, |webhook| {
        webhook["objectSelector"] = json!({});
        webhook["namespaceSelector"] = json!({"matchLabels": {"gmsa": "yes"}});
    });
    runs.push(("another label of the namespace is selected", printed(&api, &pod).await));
    changed("validatingwebhookconfigurations", &|webhook| webhook["namespaceSelector"] = json!({}));
    runs.push(("the validating webhook alone reviews it", printed(&api, &pod).await));
    changed("mutatingwebhookconfigurations", &|webhook| webhook["namespaceSelector"] = json!({}));
    api.delete("validatingwebhookconfigurations", "", "gmsa");
    runs.push(("there is no validating webhook", printed(&api, &pod).await));
    api.delete("mutatingwebhookconfigurations", "", "gmsa");
    runs.push(("there is no webhook", printed(&api, &pod).await));
    // Who may not read them learns that they were not read.
    api.fault(Verb::List, "/mutatingwebhookconfigurations", usize::MAX, Fault::forbidden());
    runs.push(("the configurations may not be read", printed(&api, &pod).await));
    assert_printed("check-not-reviewed", &runs);
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
    let mut runs = vec![("in neither", printed(&api, std::slice::from_ref(&pod)).await)];
    let beside = [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "web", "namespace": "shop"}}),
        json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "windows-2022"}, "handler": "runhcs-wcow-process"}),
        pod,
    ];
    runs.push(("in the manifests", printed(&api, &beside).await));
    assert_printed("check-references-missing", &runs);
}

#[tokio::test(flavor = "multi_thread")]
async fn images_are_compared_with_the_builds_of_the_nodes() {
    let api = healthy().await;
    let add = |name: &str, build: &str| {
        let labels = json!({"kubernetes.io/os": "windows", "node.kubernetes.io/windows-build": build});
        api.apply(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}));
    };
    let runs = std::cell::RefCell::new(Vec::new());
    let of = async |nodes: &str, image: &str| {
        let printed = printed(&api, &[named(image)]).await;
        runs.borrow_mut().push((format!("{image} on {nodes}"), printed));
    };
    for image in ["shop:ltsc2022", "shop:4.2", "shop:ltsc2025"] {
        of("2022", image).await;
    }
    // Those of 2025 run images of 2022 too.
    add("win-2025", "10.0.26100");
    for image in ["shop:ltsc2022", "shop:ltsc2025", "shop:4.2"] {
        of("2022 and 2025", image).await;
    }
    // Of three, two fit: neither is pinned alone.
    add("win-2019", "10.0.17763");
    of("2019, 2022 and 2025", "shop:ltsc2022").await;
    assert_printed("check-builds", &runs.into_inner());
}
