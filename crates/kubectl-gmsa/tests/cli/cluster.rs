//! A simulated cluster in which all is well (`fixtures/healthy.yaml`), for the commands that ask one.

use std::{path::Path, process::Output, sync::LazyLock};

use gmsa_core::admission::workload::Kind as Workload;
use serde::Deserialize;
use serde_json::Value;
use tempfile::NamedTempFile;

use super::{
    program,
    support::{Fault, Kind, SimulatedApi, Verb},
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

/// What the simulated cluster has lists of.
pub static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let workloads = Workload::ALL
        .into_iter()
        .map(|kind| Kind::new(Box::leak(kind.api_version().into()), kind.as_str(), Box::leak(kind.plural().into())));
    OTHERS.into_iter().chain(workloads).collect()
});

const OTHERS: [Kind; 18] = [
    Kind::new("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    Kind::new("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    Kind::new("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions"),
    Kind::new("discovery.k8s.io/v1", "EndpointSlice", "endpointslices"),
    Kind::new("node.k8s.io/v1", "RuntimeClass", "runtimeclasses"),
    Kind::new("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles"),
    Kind::new("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings"),
    Kind::new("rbac.authorization.k8s.io/v1", "Role", "roles"),
    Kind::new("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings"),
    Kind::new("v1", "ConfigMap", "configmaps"),
    Kind::new("v1", "Event", "events"),
    Kind::new("v1", "Namespace", "namespaces"),
    Kind::new("v1", "Node", "nodes"),
    Kind::new("v1", "Pod", "pods"),
    Kind::new("v1", "Secret", "secrets"),
    Kind::new("v1", "Service", "services"),
    Kind::new("v1", "ServiceAccount", "serviceaccounts"),
    Kind::new("windows.k8s.io/v1", "GMSACredentialSpec", "gmsacredentialspecs"),
];

/// The objects of the healthy cluster.
pub fn objects() -> Vec<Value> {
    serde_saphyr::from_multiple(include_str!("../fixtures/healthy.yaml")).unwrap()
}

/// A fault of the API server.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trouble {
    /// `VERB PATH`, of which the path may be a part.
    on: String,
    /// A part of the body as JSON without white space.
    #[serde(default)]
    body: String,
    times: Option<usize>,
    answer: Answer,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Answer {
    Forbidden,
    TooManyRequests,
    Cut,
    /// Cut after the request was carried out.
    CutAfter,
    Silence,
    /// A code with a message.
    Refuse(u16, String),
    /// A code with a text.
    Text(u16, String),
    Object(Value),
}

impl Trouble {
    pub fn script(&self, api: &SimulatedApi) {
        let (verb, path) = asked(&self.on);
        // As long as the process of the test.
        let text = |text: &String| -> &'static str { text.clone().leak() };
        let fault = match &self.answer {
            Answer::Forbidden => Fault::forbidden(),
            Answer::TooManyRequests => Fault::too_many_requests(0),
            Answer::Cut => Fault::Cut,
            Answer::CutAfter => Fault::CutAfter,
            Answer::Silence => Fault::Silence,
            Answer::Refuse(code, message) => {
                Fault::Refuse { code: *code, reason: "Whatever", message: text(message), retry_after: Some(0) }
            }
            Answer::Text(code, said) => Fault::Text(*code, text(said)),
            Answer::Object(object) => Fault::Object(object.clone()),
        };
        if self.body.is_empty() {
            api.fault(verb, path, self.times.unwrap_or(usize::MAX), fault);
        } else {
            api.fault_of_body(verb, path, &self.body, fault);
        }
    }
}

/// `VERB PATH`.
pub fn asked(words: &str) -> (Verb, &str) {
    let (verb, path) = words.split_once(' ').unwrap_or((words, ""));
    let verb = match verb {
        "get" => Verb::Get,
        "list" => Verb::List,
        "create" => Verb::Create,
        "update" => Verb::Update,
        "patch" => Verb::Patch,
        "delete" => Verb::Delete,
        other => panic!("no verb: {other}"),
    };
    (verb, path)
}

/// Scripts what the simulated API server cannot do itself. What was scripted before comes first.
pub fn answers(api: &SimulatedApi) {
    let answers: Vec<Trouble> = serde_saphyr::from_str(include_str!("../fixtures/answers.yaml")).unwrap();
    for answer in answers {
        answer.script(api);
    }
}

/// A cluster in which all is well.
pub async fn healthy() -> SimulatedApi {
    let api = SimulatedApi::start().await;
    for kind in KINDS.iter() {
        api.define(kind.clone());
    }
    for object in objects() {
        api.apply(object);
    }
    answers(&api);
    api.grant_only(&[("shop", "web", "webapp1")]);
    api
}
