//! A simulated cluster in which all is well (`fixtures/healthy.yaml`), for the commands that ask one.

use std::{path::Path, process::Output};

use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::{
    program,
    support::{Fault, Kind, SimulatedApi, Table, Verb},
};

/// A kubeconfig for the server.
pub fn kubeconfig(api: &SimulatedApi) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), api.kubeconfig()).unwrap();
    file
}

/// Runs the program in a folder, with a kubeconfig for the server.
pub async fn run_in(folder: &Path, api: &SimulatedApi, arguments: &[&str]) -> Output {
    let kubeconfig = kubeconfig(api);
    let mut command = program(folder);
    command.arg("--kubeconfig").arg(kubeconfig.path()).args(arguments);
    tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap()
}

/// Runs the program with a kubeconfig for the server.
pub async fn run(api: &SimulatedApi, arguments: &[&str]) -> Output {
    run_in(Path::new("."), api, arguments).await
}

pub const fn kind(api_version: &'static str, kind: &'static str, plural: &'static str, namespaced: bool) -> Kind {
    Kind { api_version, kind, plural, namespaced }
}

/// What the simulated cluster has lists of.
pub const KINDS: [Kind; 26] = [
    kind("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", false),
    kind("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", false),
    kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", false),
    kind("apps/v1", "DaemonSet", "daemonsets", true),
    kind("apps/v1", "Deployment", "deployments", true),
    kind("apps/v1", "ReplicaSet", "replicasets", true),
    kind("apps/v1", "StatefulSet", "statefulsets", true),
    kind("batch/v1", "CronJob", "cronjobs", true),
    kind("batch/v1", "Job", "jobs", true),
    kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", true),
    kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", true),
    kind("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", false),
    kind("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", false),
    kind("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", false),
    kind("rbac.authorization.k8s.io/v1", "Role", "roles", true),
    kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", true),
    kind("v1", "ConfigMap", "configmaps", true),
    kind("v1", "Event", "events", true),
    kind("v1", "Namespace", "namespaces", false),
    kind("v1", "Node", "nodes", false),
    kind("v1", "Pod", "pods", true),
    kind("v1", "ReplicationController", "replicationcontrollers", true),
    kind("v1", "Secret", "secrets", true),
    kind("v1", "Service", "services", true),
    kind("v1", "ServiceAccount", "serviceaccounts", true),
    kind("windows.k8s.io/v1", "GMSACredentialSpec", "gmsacredentialspecs", false),
];

/// The objects of the healthy cluster.
pub fn objects() -> Vec<Value> {
    serde_saphyr::from_multiple(include_str!("../fixtures/healthy.yaml")).unwrap()
}

/// The pod `shop/web` by another name and with other options.
pub fn pod(name: &str, options: &Value) -> Value {
    let mut pod = objects().into_iter().find(|object| object["metadata"]["name"] == "web").unwrap();
    pod["metadata"]["name"] = json!(name);
    pod["spec"]["securityContext"]["windowsOptions"] = options.clone();
    pod
}

/// What the webhook says to the pods that `doctor` sends as dry runs, through the API server.
const REFUSED: Fault = Fault::Refuse {
    code: 404,
    reason: "NotFound",
    message: "admission webhook \"admission-webhook.windows-gmsa.sigs.k8s.io\" denied the request: cred spec gmsa-webhook-test-does-not-exist does not exist",
    retry_after: None,
};

/// What the static policies of a control plane say to the configuration that `doctor` sends as a dry run.
const PROTECTED: Fault = Fault::Refuse {
    code: 403,
    reason: "Forbidden",
    message: "validatingwebhookconfigurations.admissionregistration.k8s.io \"gmsa-static-policies\" is forbidden: ValidatingAdmissionPolicy \
              'gmsa-configurations.static.k8s.io' with binding 'gmsa-configurations.static.k8s.io' denied request: the static policies of the GMSA webhook gmsa are in force",
    retry_after: None,
};

/// Where `doctor` sends that configuration.
const PROTECTION: &str = "/validatingwebhookconfigurations?dryRun=All";

/// Where `doctor` sends its pods.
pub const DRY_RUN: &str = "/pods?dryRun=All";

/// Scripts what the simulated API server cannot do itself: its version, dry runs, and access reviews, which are allowed. What was scripted before comes
/// first.
pub fn answers(api: &SimulatedApi) {
    api.fault(Verb::Get, "/version", usize::MAX, Fault::Object(json!({"gitVersion": "v1.36.0"})));
    api.fault(Verb::Create, DRY_RUN, usize::MAX, REFUSED);
    api.fault(Verb::Create, PROTECTION, usize::MAX, PROTECTED);
    let allowed = Fault::Object(json!({"status": {"allowed": true}}));
    for reviews in ["/subjectaccessreviews", "/selfsubjectaccessreviews"] {
        api.fault(Verb::Create, reviews, usize::MAX, allowed.clone());
    }
}

/// A cluster in which all is well.
pub async fn healthy() -> SimulatedApi {
    let api = SimulatedApi::start().await;
    KINDS.into_iter().for_each(|kind| api.define(kind));
    for object in objects() {
        api.apply(object);
    }
    answers(&api);
    api.authorize_by(Table::of(&[("shop", "web", "webapp1")]));
    api
}
