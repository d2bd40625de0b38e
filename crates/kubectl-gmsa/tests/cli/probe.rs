//! `probe`, on simulated Windows nodes: each runs what is put on it, or says why not, as its kubelet does.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    path::Path,
    process::Output,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    cluster::{healthy, kind, run},
    program,
    support::{Fault, SimulatedApi, Verb},
    text,
    verify::{Ending, Transcript, answer_each, transcript},
};

/// What becomes of a pod on a node.
#[derive(Clone)]
enum Fate {
    /// Its container runs, and answers by this transcript.
    Runs(Transcript),
    /// Its sandbox is not created.
    NoSandbox(&'static str),
    /// Its image is not pulled.
    NoImage,
    /// Nothing happens to it.
    Waits,
}

/// A cluster whose nodes decide what becomes of pods. It has the node `win1`, of Windows Server 2022.
async fn cluster(fates: &[(&'static str, Fate)]) -> SimulatedApi {
    let api = healthy().await;
    for known in [kind("v1", "Event", "events", true), kind("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", false)]
    {
        api.define(known);
    }
    for (name, _) in fates.iter().filter(|(name, _)| *name != "win1") {
        api.apply(node(name, "10.0.26100"));
    }
    api
}

fn node(name: &str, build: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/os": "windows", "node.kubernetes.io/windows-build": build}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    })
}

const ON_NODE: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0";

/// Runs the program while the nodes do their work.
async fn probe(api: &SimulatedApi, fates: &[(&'static str, Fate)], arguments: &[&str]) -> Output {
    let arguments = [&["probe", "--credspec", "webapp1", "--serviceaccount", "shop:web"], arguments].concat();
    tokio::select! {
        output = run(api, &arguments) => output,
        () = kubelets(api, fates) => unreachable!("the nodes never end"),
    }
}

/// What the scheduler and the kubelets do with the pods that are created.
async fn kubelets(api: &SimulatedApi, fates: &[(&'static str, Fate)]) {
    let fates: HashMap<&str, Fate> = fates.iter().cloned().collect();
    let running: Arc<Mutex<HashMap<String, Transcript>>> = Arc::default();
    let transcripts = Arc::clone(&running);
    answer_each(api, move |path, command| {
        let pod = path.split('/').nth(6)?;
        transcripts.lock().unwrap().get(pod)?.get(command).cloned()
    });
    let mut seen = BTreeSet::new();
    loop {
        for created in api.requests(Verb::Create, "/namespaces/shop/pods") {
            let Some(name) = created.body["metadata"]["name"].as_str().map(str::to_owned) else { continue };
            let Some(mut pod) = api.object("pods", "shop", &name).filter(|_| seen.insert(name.clone())) else {
                continue;
            };
            let node = pod.pointer(ON_NODE).and_then(Value::as_str).unwrap_or("win1").to_owned();
            pod["spec"]["nodeName"] = json!(node);
            // What the webhook fills in.
            pod["spec"]["securityContext"]["windowsOptions"]["gmsaCredentialSpec"] = json!(
                json!({"DomainJoinConfig": {"DnsName": "contoso.com", "MachineAccountName": "WebApp1"}}).to_string()
            );
            let (status, event) = happens(&fates[&*node], &name, &running);
            pod["status"] = status;
            let uid = pod["metadata"]["uid"].clone();
            api.apply(pod);
            if let Some((reason, message)) = event {
                api.apply(json!({
                    "apiVersion": "v1", "kind": "Event", "metadata": {"name": format!("{name}.1"), "namespace": "shop"},
                    "involvedObject": {"uid": uid}, "type": "Warning", "reason": reason, "message": message,
                }));
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The status of a pod, and an event about it.
fn happens(
    fate: &Fate,
    pod: &str,
    running: &Mutex<HashMap<String, Transcript>>,
) -> (Value, Option<(&'static str, &'static str)>) {
    let waits = |reason: &str, message: &str| {
        json!({"phase": "Pending", "containerStatuses": [
            {"name": "probe", "image": "x", "imageID": "", "ready": false, "restartCount": 0, "state": {"waiting": {"reason": reason, "message": message}}}
        ]})
    };
    match fate {
        Fate::Runs(transcript) => {
            running.lock().unwrap().insert(pod.to_owned(), transcript.clone());
            let status = json!({"phase": "Running", "containerStatuses": [
                {"name": "probe", "image": "x", "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}}}
            ]});
            (status, None)
        }
        Fate::NoSandbox(message) => (waits("ContainerCreating", ""), Some(("FailedCreatePodSandBox", message))),
        Fate::NoImage => (waits("ImagePullBackOff", "Back-off pulling image \"x\""), None),
        Fate::Waits => (waits("ContainerCreating", ""), None),
    }
}

/// The pods of the probe that are there.
fn left(api: &SimulatedApi) -> usize {
    let created = api.requests(Verb::Create, "/namespaces/shop/pods");
    let names = created.iter().filter_map(|request| request.body["metadata"]["name"].as_str());
    names.filter(|name| api.object("pods", "shop", name).is_some()).count()
}

const RPC: &str = "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to create containerd task: hcs::CreateComputeSystem 5bd1: winapi error #3489792023: unknown";

#[tokio::test(flavor = "multi_thread")]
async fn each_node_has_its_first_cause() {
    let fates = [
        ("win1", Fate::Runs(transcript("network-service"))),
        ("win2", Fate::NoSandbox(RPC)),
        ("win3", Fate::Runs(transcript("no-secure-channel"))),
        ("win4", Fate::NoImage),
        ("win5", Fate::Waits),
    ];
    let api = cluster(&fates).await;
    let mut broken = node("win5", "10.0.26100");
    broken["status"]["conditions"][0] =
        json!({"type": "Ready", "status": "False", "message": "container runtime is down"});
    api.apply(broken);
    let mut cordoned = node("win6", "10.0.20348");
    cordoned["spec"]["unschedulable"] = json!(true);
    api.apply(cordoned);
    api.apply(node("win7", "10.0.18362"));
    let output = probe(&api, &fates, &["--all-nodes"]).await;
    assert_eq!(text(&output.stdout), "");
    assert_eq!((text(&output.stderr), output.status.code()), ("", Some(1)));
    assert_eq!((left(&api), api.count(Verb::Delete, "/namespaces/shop/pods/gmsa-probe-")), (0, 4));
}
