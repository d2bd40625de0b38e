//! What `doctor` says of credential specs, pods, namespaces and nodes.

use serde_json::{Value, json};

use super::{
    super::{
        cluster::{healthy, pod, run},
        support::{Fault, Verb},
        text,
    },
    complaints,
};

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_its_users_are_found() {
    let found = complaints(|api| {
        let mut wrong = api.object("gmsacredentialspecs", "", "webapp1").unwrap();
        wrong["metadata"] = json!({"name": "wrong"});
        wrong["credspec"]["DomainJoinConfig"]["Sid"] = json!("S-1-5-21-1-2-3-4");
        api.apply(wrong);
        api.apply(pod("bare", &json!({"gmsaCredentialSpecName": "webapp1"})));
        api.apply(pod("gone", &json!({"gmsaCredentialSpecName": "gone", "gmsaCredentialSpec": "{}"})));
        api.apply(pod("old", &json!({"gmsaCredentialSpecName": "webapp1", "gmsaCredentialSpec": "{}"})));
        let labels = json!({"node.kubernetes.io/windows-build": "10.0.17763"});
        api.apply(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "win2", "labels": labels}}));
        api.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "loose", "labels": {"kubernetes.io/metadata.name": "gmsa"}}}));
    })
    .await;
    assert_eq!(
        found,
        [
            "warn namespaces: pods are not reviewed in loose [namespaces-excluded]",
            "fail credential specs: wrong: credspec.DomainJoinConfig.Sid: \"S-1-5-21-1-2-3-4\" is an account's SID: one number too many [sid]",
            "fail pods: 1 name a credential spec and carry no contents: shop/bare [name-without-contents]",
            "warn pods: 1 carry other contents than their credential spec has now: shop/old [contents-outdated]",
            "warn pods: 1 carry contents, and there is no credential spec to compare them with: shop/gone [contents-outdated]",
            "warn Windows nodes: of several builds: 1 of 10.0.17763, 1 of 10.0.20348 [windows-build]",
        ]
    );
    let found = complaints(|api| api.fault(Verb::List, "/api/v1/nodes", usize::MAX, Fault::forbidden())).await;
    let refused = "could not be checked: the API server answered 403: not allowed here";
    assert_eq!(found, [format!("skip Windows nodes: {refused} [not-checked]")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_of_several_builds_that_run_the_same_images_are_no_fault() {
    let api = healthy().await;
    let labels = json!({"kubernetes.io/os": "windows", "node.kubernetes.io/windows-build": "10.0.26100"});
    api.apply(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "win2", "labels": labels}}));
    let output = run(&api, &["doctor"]).await;
    let line = "pass  Windows nodes      1 of 10.0.20348, 1 of 10.0.26100; all of them run images of 10.0.20348\n";
    assert!(text(&output.stdout).contains(line), "{}", text(&output.stdout));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_cannot_be_parsed_may_use_gmsa() {
    let api = healthy().await;
    // The only pod that used GMSA.
    let mut pod = pod("web", &json!({}));
    pod["spec"]["containers"] = json!("none");
    api.apply(pod);
    let output = run(&api, &["doctor", "--json"]).await;
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of_pods: Vec<_> =
        printed["checks"].as_array().unwrap().iter().filter(|check| check["about"] == "pods").collect();
    let remedy = "use a newer version of kubectl gmsa";
    let unparsed = json!({"status": "skip", "about": "pods", "text": "1 could not be parsed", "rule": "not-checked", "remedy": remedy});
    assert_eq!(of_pods, [&unparsed]);
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_that_windows_takes_for_one_computer_are_found() {
    let contents = |api: &super::super::support::SimulatedApi| {
        api.object("pods", "shop", "web").unwrap()["spec"]["securityContext"]["windowsOptions"].clone()
    };
    let found = complaints(|api| {
        let options = contents(api);
        for name in ["web-7d4b9c6f5d-abcde", "web-7d4b9c6f5d-fghij", "web-1", "web-2"] {
            api.apply(pod(name, &options));
        }
        // A host name of its own counts for the pod's, and one that has ended for nothing.
        let mut named = pod("web-7d4b9c6f5d-klmno", &options);
        named["spec"]["hostname"] = json!("k0h1b2n3v4x5y6z");
        api.apply(named);
        let mut ended = pod("web-7d4b9c6f5d-pqrst", &options);
        ended["status"] = json!({"phase": "Succeeded"});
        api.apply(ended);
    })
    .await;
    assert_eq!(
        found,
        [
            "warn host names: 2 pods share a credential spec and the first 15 characters of their host names with another, so they can lose their \
             trust: shop/web-7d4b9c6f5d-abcde, shop/web-7d4b9c6f5d-fghij [shared-hostname]"
        ]
    );
}
