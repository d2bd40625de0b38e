//! The commands that ask a cluster, against the simulated API server: what they ask, and what they make of each fault.

use std::{path::Path, process::Output};

use serde_json::{Value, json};

use super::{
    portable, program,
    support::{Fault, Kind, SimulatedApi, Table, Verb, credential_spec},
    text,
};

/// Runs the program with a kubeconfig for the server.
pub async fn run(api: &SimulatedApi, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("config");
    std::fs::write(&kubeconfig, api.kubeconfig()).unwrap();
    let mut command = program(folder.path());
    command.arg("--kubeconfig").arg(&kubeconfig).args(arguments);
    tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap()
}

pub fn kind(api_version: &'static str, kind: &'static str, plural: &'static str, namespaced: bool) -> Kind {
    Kind { api_version, kind, plural, namespaced }
}

pub fn good_credspec() -> Value {
    json!({
        "ActiveDirectoryConfig": {"GroupManagedServiceAccounts": [
            {"Name": "WebApp1", "Scope": "contoso.com"}, {"Name": "WebApp1", "Scope": "CONTOSO"},
        ]},
        "CmsPlugins": ["ActiveDirectory"],
        "DomainJoinConfig": {
            "DnsName": "contoso.com", "DnsTreeName": "contoso.com", "Guid": "244818ae-87ac-4fcd-92ec-e79e5252348a",
            "MachineAccountName": "WebApp1", "NetBiosName": "CONTOSO", "Sid": "S-1-5-21-1-2-3",
        },
    })
}

pub fn pod(name: &str, options: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "serviceAccountName": "web", "nodeName": "win1", "nodeSelector": {"kubernetes.io/os": "windows"},
            "securityContext": {"windowsOptions": options}, "containers": [{"name": "iis"}],
        },
        "status": {"phase": "Running"},
    })
}

pub fn webhook(name: &str, bundle: &str) -> Value {
    json!({
        "name": name,
        "failurePolicy": "Fail",
        "matchConditions": [{"name": "uses-gmsa", "expression": "true"}],
        "clientConfig": {"caBundle": bundle, "service": {"namespace": "gmsa", "name": "webhook", "path": "/validate"}},
        "namespaceSelector": {"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "gmsa"]},
        ]},
        "rules": [{
            "apiGroups": [""], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"],
            "resources": ["pods", "pods/ephemeralcontainers"],
        }],
    })
}

pub fn configurations(api: &SimulatedApi, change: impl Fn(&mut Value)) {
    let ca = rcgen::CertificateParams::new(vec![]).unwrap().self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
    let bundle = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, ca.pem());
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        let mut webhook = webhook("admission-webhook.windows-gmsa.sigs.k8s.io", &bundle);
        change(&mut webhook);
        api.apply(json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "gmsa"},
            "webhooks": [webhook],
        }));
    }
}

pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}}})
}

pub const PROBE: &str = "admission webhook \"admission-webhook.windows-gmsa.sigs.k8s.io\" denied the request: cred spec kubectl-gmsa-doctor-probe does not exist";

/// A cluster in which all is well.
pub async fn healthy() -> SimulatedApi {
    let api = SimulatedApi::start().await;
    for known in [
        kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", false),
        kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", true),
        kind("v1", "Pod", "pods", true),
        kind("v1", "Node", "nodes", false),
        kind("v1", "Namespace", "namespaces", false),
    ] {
        api.define(known);
    }
    api.fault(Verb::Get, "/version", usize::MAX, Fault::Object(json!({"gitVersion": "v1.36.0"})));
    api.fault(Verb::Create, "/subjectaccessreviews", usize::MAX, Fault::Object(json!({"status": {"allowed": true}})));
    api.fault(
        Verb::Create,
        "/pods?dryRun=All",
        usize::MAX,
        Fault::Refuse { code: 404, reason: "NotFound", message: PROBE, retry_after: None },
    );
    api.apply(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "gmsacredentialspecs.windows.k8s.io", "annotations": {"gmsa-webhook/crd-revision": "1"}
        },
        "spec": {"versions": [{"name": "v1", "served": true}, {"name": "v1alpha1", "served": true}]},
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    }));
    configurations(&api, |_| {});
    let endpoint = |pod: &str| json!({"conditions": {"ready": true}, "targetRef": {"name": pod}});
    api.apply(json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": "webhook-1", "namespace": "gmsa"},
        "endpoints": [endpoint("webhook-a"), endpoint("webhook-b")],
    }));
    api.apply(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "webhook-a", "namespace": "gmsa"},
        "spec": {"serviceAccountName": "webhook", "containers": [{
            "name": "webhook", "image": "gmsa-webhook:0.1.0",
            "ports": [{"name": "https", "containerPort": 10250}, {"name": "admin", "containerPort": 9090}],
        }]},
    }));
    for name in ["default", "gmsa", "kube-system", "shop"] {
        api.apply(namespace(name));
    }
    api.apply(json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "win1", "labels": {"node.kubernetes.io/windows-build": "10.0.20348"}},
    }));
    api.apply(credential_spec("webapp1", good_credspec()));
    let contents = good_credspec().to_string();
    api.apply(pod("web", &json!({"gmsaCredentialSpecName": "webapp1", "gmsaCredentialSpec": contents})));
    api.authorize_by(Table::of(&[("shop", "web", "webapp1")]));
    api
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
        portable(text(&output.stderr)),
        "error: cannot read the kubeconfig none: failed to read kubeconfig from '\"none\"': No such file or directory (os error 2)\n"
    );
}
