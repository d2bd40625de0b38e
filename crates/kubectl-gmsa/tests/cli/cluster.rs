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
fn objects() -> Vec<Value> {
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

/// What the webhook says to the pod that `doctor` sends as a dry run, through the API server.
pub const REFUSED: Fault = Fault::Refuse {
    code: 404,
    reason: "NotFound",
    message: "admission webhook \"admission-webhook.windows-gmsa.sigs.k8s.io\" denied the request: cred spec kubectl-gmsa-doctor-probe does not exist",
    retry_after: None,
};

/// Scripts what the simulated API server cannot do itself: its version, the dry run of a pod, and the answers to the first
/// access reviews; those after them are allowed.
pub fn script(api: &SimulatedApi, dry_run: Fault, allowed: &[bool]) {
    let access = |allowed: bool| Fault::Object(json!({"status": {"allowed": allowed}}));
    api.heal();
    api.fault(Verb::Get, "/version", usize::MAX, Fault::Object(json!({"gitVersion": "v1.36.0"})));
    api.fault(Verb::Create, "/pods?dryRun=All", usize::MAX, dry_run);
    for allowed in allowed {
        api.fault(Verb::Create, "/subjectaccessreviews", 1, access(*allowed));
    }
    api.fault(Verb::Create, "/subjectaccessreviews", usize::MAX, access(true));
}

/// A cluster in which all is well.
pub async fn healthy() -> SimulatedApi {
    let api = SimulatedApi::start().await;
    for known in [
        kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", false),
        kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", true),
        kind("v1", "Pod", "pods", true),
        kind("v1", "Node", "nodes", false),
        kind("v1", "ServiceAccount", "serviceaccounts", true),
        kind("v1", "Namespace", "namespaces", false),
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
