//! A simulated cluster in which all is well (`fixtures/healthy.yaml`), for the commands that ask one.

use std::process::Output;

use serde_json::{Value, json};

use super::{
    program,
    support::{Fault, Kind, SimulatedApi, Table, Verb},
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

/// Changes the webhook of both configurations.
pub fn configurations(api: &SimulatedApi, change: impl Fn(&mut Value)) {
    for plural in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        let mut configuration = api.object(plural, "", "gmsa").unwrap();
        change(&mut configuration["webhooks"][0]);
        api.apply(configuration);
    }
}

/// What the webhook says to the pods that `doctor` sends as dry runs, through the API server.
pub const REFUSED: Fault = Fault::Refuse {
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

/// Scripts what the simulated API server cannot do itself: its version, the dry run of pods, and access reviews, which are allowed
/// but for those whose JSON contains one of `denied`.
pub fn script(api: &SimulatedApi, dry_run: Fault, denied: &[&str]) {
    script_each(api, dry_run.clone(), dry_run, denied);
}

/// The same, with the answers to the pod that `/mutate` must refuse and to the one that `/validate` must refuse.
pub fn script_each(api: &SimulatedApi, mutate: Fault, validate: Fault, denied: &[&str]) {
    script_all(api, mutate, validate, PROTECTED, denied);
}

/// The same, with the answer to the configuration that static policies must refuse.
pub fn script_all(api: &SimulatedApi, mutate: Fault, validate: Fault, protection: Fault, denied: &[&str]) {
    let access = |allowed: bool| Fault::Object(json!({"status": {"allowed": allowed}}));
    api.heal();
    api.fault(Verb::Get, "/version", usize::MAX, Fault::Object(json!({"gitVersion": "v1.36.0"})));
    api.fault_of_body(Verb::Create, DRY_RUN, "\"gmsaCredentialSpec\":", validate);
    api.fault(Verb::Create, DRY_RUN, usize::MAX, mutate);
    api.fault(Verb::Create, PROTECTION, usize::MAX, protection);
    for review in denied {
        api.fault_of_body(Verb::Create, "/subjectaccessreviews", review, access(false));
    }
    api.fault(Verb::Create, "/subjectaccessreviews", usize::MAX, access(true));
}

/// A cluster in which all is well.
pub async fn healthy() -> SimulatedApi {
    let api = SimulatedApi::start().await;
    for known in [
        kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", false),
        kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", true),
        kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", true),
        kind("v1", "Pod", "pods", true),
        kind("v1", "Node", "nodes", false),
        kind("v1", "Secret", "secrets", true),
        kind("apps/v1", "Deployment", "deployments", true),
        kind("apps/v1", "StatefulSet", "statefulsets", true),
        kind("apps/v1", "DaemonSet", "daemonsets", true),
        kind("apps/v1", "ReplicaSet", "replicasets", true),
        kind("batch/v1", "Job", "jobs", true),
        kind("batch/v1", "CronJob", "cronjobs", true),
        kind("v1", "Event", "events", true),
        kind("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", false),
        kind("v1", "ServiceAccount", "serviceaccounts", true),
        kind("v1", "Namespace", "namespaces", false),
        kind("v1", "ConfigMap", "configmaps", true),
    ] {
        api.define(known);
    }
    for object in objects() {
        api.apply(object);
    }
    script(&api, REFUSED, &[]);
    api.authorize_by(Table::of(&[("shop", "web", "webapp1")]));
    api
}
