//! The scheduler and the kubelets of a simulated cluster, as far as the pods of `probe` need them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex},
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Value, json};

use super::support::{
    SimulatedApi, Verb,
    exec::{Transcript, answer_each, transcript},
};

/// What becomes of a pod on a node.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fate {
    /// Its container runs, and answers by the transcript of this case of `tests/verify`.
    Runs(String),
    /// Its sandbox is not created, with this message.
    NoSandbox(String),
    /// Its image is not pulled.
    NoImage,
    /// Nothing happens to it.
    Waits,
}

const ON_NODE: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0";

/// What the scheduler and the kubelets do with the pods that are created. They never end.
pub async fn kubelets(api: &SimulatedApi, fates: &BTreeMap<String, Fate>) {
    let running: Arc<Mutex<HashMap<String, Transcript>>> = Arc::default();
    let transcripts = Arc::clone(&running);
    answer_each(api, move |path, command| {
        let pod = path.split('/').nth(6)?;
        transcripts.lock().unwrap().get(pod)?.get(command).cloned()
    });
    let mut seen = BTreeSet::new();
    loop {
        for (namespace, name) in created(api) {
            let Some(pod) = api.object("pods", &namespace, &name).filter(|_| seen.insert(name.clone())) else {
                continue;
            };
            let node = pod.pointer(ON_NODE).and_then(Value::as_str).unwrap_or("win1").to_owned();
            let (state, event) = match &fates[&node] {
                Fate::Runs(case) => {
                    running.lock().unwrap().insert(name.clone(), transcript(case));
                    (json!({"running": {}}), None)
                }
                Fate::NoSandbox(message) => (waiting("ContainerCreating", ""), Some(message)),
                Fate::NoImage => (waiting("ImagePullBackOff", "Back-off pulling image \"x\""), None),
                Fate::Waits => (waiting("ContainerCreating", ""), None),
            };
            let uid = pod["metadata"]["uid"].clone();
            api.apply(started(pod, &node, &state));
            if let Some(message) = event {
                api.apply(json!({
                    "apiVersion": "v1", "kind": "Event", "metadata": {"name": format!("{name}.1"), "namespace": namespace},
                    "involvedObject": {"uid": uid}, "type": "Warning", "reason": "FailedCreatePodSandBox", "message": message,
                }));
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn waiting(reason: &str, message: &str) -> Value {
    json!({"waiting": {"reason": reason, "message": message}})
}

/// The pod on a node, with what the webhook fills in and its container in this state.
pub fn started(mut pod: Value, node: &str, state: &Value) -> Value {
    let contents = json!({"DomainJoinConfig": {"DnsName": "contoso.com", "MachineAccountName": "WebApp1"}});
    pod["spec"]["nodeName"] = json!(node);
    pod["spec"]["securityContext"]["windowsOptions"]["gmsaCredentialSpec"] = json!(contents.to_string());
    let runs = state.get("running").is_some();
    pod["status"] = json!({"phase": if runs { "Running" } else { "Pending" }, "containerStatuses": [
        {"name": "probe", "image": "x", "imageID": "", "ready": runs, "restartCount": 0, "state": state}
    ]});
    pod
}

/// The namespaces and names of the pods that were created.
pub fn created(api: &SimulatedApi) -> Vec<(String, String)> {
    let requests = api.requests(Verb::Create, "/pods").into_iter();
    let name = |body: &Value| Some(body["metadata"]["name"].as_str()?.to_owned());
    requests.filter_map(|request| Some((request.path.split('/').nth(4)?.to_owned(), name(&request.body)?))).collect()
}
