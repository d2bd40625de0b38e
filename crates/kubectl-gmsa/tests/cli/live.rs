//! The commands that ask a cluster, against the simulated API server: what they ask, and what they make of each fault.

use std::path::Path;

use serde_json::{Value, json};

use super::{
    cluster::{healthy, kind, pod, run},
    program,
    support::{Fault, SimulatedApi, Verb},
    text,
};

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
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_is_applied_by_server_side_apply() {
    let api = SimulatedApi::start().await;
    api.fault(Verb::Patch, "/apis/rbac.authorization.k8s.io/v1/", usize::MAX, Fault::Object(json!({})));
    let output = run(&api, &["grant", "--credspec", "webapp1", "--serviceaccount", "shop:web", "--apply"]).await;
    assert_eq!(
        text(&output.stdout),
        "clusterrole/gmsa-use-webapp1 applied\nrolebinding/gmsa-use-webapp1-web applied in shop\n",
        "{}",
        text(&output.stderr)
    );
    let patches: Vec<String> = api.requests(Verb::Patch, "").into_iter().map(|request| request.path).collect();
    assert_eq!(
        patches,
        [
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/gmsa-use-webapp1?fieldManager=kubectl-gmsa&force=true",
            "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings/gmsa-use-webapp1-web?fieldManager=kubectl-gmsa&force=true",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn who_can_reads_the_cluster_s_roles() {
    let api = SimulatedApi::start().await;
    let group = "rbac.authorization.k8s.io/v1";
    for (name, plural, namespaced) in [
        ("ClusterRole", "clusterroles", false),
        ("Role", "roles", true),
        ("ClusterRoleBinding", "clusterrolebindings", false),
        ("RoleBinding", "rolebindings", true),
    ] {
        api.define(kind(group, name, plural, namespaced));
    }
    let yaml =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/who-can/rbac.yaml")).unwrap();
    let objects: Vec<Value> = serde_saphyr::from_multiple(&yaml).unwrap();
    for object in objects.into_iter().filter(|object| !object.is_null()) {
        api.apply(object);
    }
    let output = run(&api, &["who-can", "webapp1"]).await;
    let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/who-can/stdout");
    assert_eq!(text(&output.stdout), std::fs::read_to_string(written).unwrap(), "{}", text(&output.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_cluster_it_says_why() {
    let mut api = SimulatedApi::start().await;
    api.stop().await;
    let output = run(&api, &["doctor"]).await;
    assert!(text(&output.stderr).starts_with("error: the API server cannot be reached: "), "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(2));
    let output = run(&api, &["--context", "none", "doctor"]).await;
    assert_eq!(
        text(&output.stderr),
        "error: the kubeconfig does not lead to a cluster: failed to load current context: none\n"
    );
    let output = run(&api, &["doctor", "--pod", "a/b/c"]).await;
    assert_eq!(text(&output.stderr), "error: \"a/b/c\" is not NAMESPACE/NAME of a pod\n");
    let folder = tempfile::tempdir().unwrap();
    let output = program(folder.path()).args(["doctor", "--kubeconfig", "none"]).output().unwrap();
    assert_eq!(
        text(&output.stderr),
        "error: cannot read the kubeconfig none: failed to read kubeconfig from '\"none\"': No such file or directory (os error 2)\n"
    );
}
