//! A small kubelet: the pods of a cluster as processes of this machine, with the volumes, users and environment that their specs say, and real tokens.
//!
//! It is the only node, and there is no scheduler, so it binds pods too. The image of a container is the built program of that name, or the folder that
//! Samba and MIT's programs are installed in. All pods share the machine's network, each with an address of its own. Not played: limits, liveness probes,
//! restarts, renewal of mounted files.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    process::Output,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt as _, pin_mut};
use gmsa_test_support::{
    SimulatedApi,
    control_plane::{Client, ControlPlane},
    exec::{Ending, answer_each},
};
use serde_json::{Value, json};
use tokio::task::{AbortHandle, spawn_blocking};

mod container;
mod proxy;
mod volumes;

use container::Container;

const NODE: &str = "node";
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

pub struct Kubelet {
    node: Arc<Node>,
    /// Where the API server passes `exec` on to.
    _api: SimulatedApi,
}

struct Node {
    client: Client,
    /// What the pods know of the API server.
    server: [(String, String); 2],
    folder: PathBuf,
    pods: Mutex<HashMap<String, (Arc<Pod>, AbortHandle)>>,
    addresses: AtomicU32,
}

/// A pod that runs here.
pub struct Pod {
    object: Value,
    /// `/api/v1/namespaces/NAMESPACE/pods/NAME`
    path: String,
    folder: PathBuf,
    address: String,
    containers: Mutex<HashMap<String, Container>>,
}

/// The items of a list that may be absent.
fn list<'v>(value: &'v Value, field: &str) -> std::slice::Iter<'v, Value> {
    value[field].as_array().map_or(&[][..], Vec::as_slice).iter()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

impl Kubelet {
    pub async fn start(plane: &ControlPlane, folder: PathBuf) -> Self {
        let (client, api) = (plane.client.clone(), SimulatedApi::start_with_tls().await);
        let node = json!({"metadata": {"name": NODE, "labels": {"kubernetes.io/os": "linux"}}});
        client.create("/api/v1/nodes", &node).await.unwrap();
        let status = json!({
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": api.address.port()}},
            "declaredFeatures": ["ExtendWebSocketsToKubelet"],
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        });
        client.merge(&format!("/api/v1/nodes/{NODE}/status"), &json!({"status": status})).await.unwrap();
        let server = [("HOST", plane.address().ip().to_string()), ("PORT", plane.address().port().to_string())];
        let server = server.map(|(name, value)| (format!("KUBERNETES_SERVICE_{name}"), value));
        let (pods, addresses) = (Mutex::default(), AtomicU32::default());
        let node = Arc::new(Node { client, server, folder, pods, addresses });
        let of_exec = Arc::clone(&node);
        answer_each(&api, move |path, command| {
            // /exec/NAMESPACE/POD/CONTAINER
            let [.., namespace, pod, container] = path.split('/').collect::<Vec<_>>()[..] else { return None };
            let output = of_exec.pod(namespace, pod)?.run(container, command)?;
            Some(([output.stdout, output.stderr].concat(), Ending::Exit(output.status.code()?.into())))
        });
        tokio::spawn(Arc::clone(&node).watch());
        tokio::spawn(proxy::serve(node.client.clone()));
        Self { node, _api: api }
    }

    /// The pods of a namespace whose name begins so.
    pub fn pods(&self, namespace: &str, prefix: &str) -> Vec<Arc<Pod>> {
        let pods = self.node.pods.lock().unwrap();
        let start = format!("/api/v1/namespaces/{namespace}/pods/{prefix}");
        pods.values().map(|(pod, _)| Arc::clone(pod)).filter(|pod| pod.path.starts_with(&start)).collect()
    }
}

impl Node {
    fn pod(&self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
        self.pods.lock().unwrap().values().map(|(pod, _)| Arc::clone(pod)).find(|pod| pod.path == path)
    }

    async fn watch(self: Arc<Self>) {
        // It fails when the API server ends, which is the end of the test.
        while let Ok(events) = self.client.watch("/api/v1/pods").await {
            pin_mut!(events);
            while let Some((is_there, object)) = events.next().await {
                self.see(is_there, object).await;
            }
        }
    }

    /// Does what the state of a pod asks for.
    async fn see(self: &Arc<Self>, is_there: bool, object: Value) {
        let metadata = &object["metadata"];
        let [uid, name, namespace] = ["uid", "name", "namespace"].map(|field| text(&metadata[field]));
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
        let known = self.pods.lock().unwrap().contains_key(&uid);
        if !is_there {
            self.pods.lock().unwrap().remove(&uid);
        } else if object["spec"]["nodeName"].is_null() {
            let binding = json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": NODE}});
            // It may be bound, or gone, meanwhile.
            if let Err(refusal) = self.client.create(&format!("{path}/binding"), &binding).await {
                assert!([404, 409].contains(&refusal.code), "{name}: {refusal:?}");
            }
        } else if !metadata["deletionTimestamp"].is_null() {
            tokio::spawn(Arc::clone(self).end(uid, path));
        } else if !known && !["Succeeded", "Failed"].contains(&object["status"]["phase"].as_str().unwrap()) {
            let number = self.addresses.fetch_add(1, Ordering::Relaxed);
            // See `tests/directory.sh`: the whole network is this machine's.
            let address = format!("10.0.{}.{}", 1 + number / 250, 1 + number % 250);
            let folder = self.folder.join(&uid);
            let pod = Arc::new(Pod { object, path, folder, address, containers: Mutex::default() });
            let task = tokio::spawn(Arc::clone(self).run(Arc::clone(&pod)));
            self.pods.lock().unwrap().insert(uid, (pod, task.abort_handle()));
        }
    }

    /// The life of a pod.
    async fn run(self: Arc<Self>, pod: Arc<Pod>) {
        volumes::make(&self.client, &pod).await;
        let spec = &pod.object["spec"];
        for container in list(spec, "initContainers") {
            let name = self.start(&pod, container).await;
            if container["restartPolicy"] == "Always" {
                pod.until_it_passes(container, "startupProbe").await;
                pod.containers.lock().unwrap().get_mut(&name).unwrap().is_started = true;
            } else {
                pod.until_ended(std::slice::from_ref(&name)).await;
                assert_eq!(pod.ended(&name), Some(0), "{name}: {}", pod.log(&name));
            }
        }
        let mut names = Vec::new();
        for container in list(spec, "containers") {
            names.push(self.start(&pod, container).await);
        }
        for container in list(spec, "containers") {
            pod.until_it_passes(container, "startupProbe").await;
            pod.until_it_passes(container, "readinessProbe").await;
        }
        self.report(&pod, "Running", true).await;
        if spec["restartPolicy"] != "Always" {
            pod.until_ended(&names).await;
            let succeeded = names.iter().all(|name| pod.ended(name) == Some(0));
            self.report(&pod, if succeeded { "Succeeded" } else { "Failed" }, false).await;
        }
    }

    async fn start(&self, pod: &Pod, container: &Value) -> String {
        let name = text(&container["name"]);
        let started = Container::start(self, pod, container).await;
        pod.containers.lock().unwrap().insert(name.clone(), started);
        self.report(pod, "Pending", false).await;
        name
    }

    async fn report(&self, pod: &Pod, phase: &str, is_ready: bool) {
        let since = "2026-01-01T00:00:00Z";
        let of_list = |field| -> Vec<Value> { list(&pod.object["spec"], field).map(|one| pod.status(one)).collect() };
        let condition = |kind: &str, holds: bool| json!({"type": kind, "status": if holds { "True" } else { "False" }, "lastTransitionTime": since});
        let status = json!({
            "phase": phase, "startTime": since, "podIP": pod.address, "podIPs": [{"ip": pod.address}],
            "conditions": [condition("PodScheduled", true), condition("Initialized", phase != "Pending"), condition("Ready", is_ready)],
            "initContainerStatuses": of_list("initContainers"), "containerStatuses": of_list("containers"),
        });
        // It may be gone.
        let _ = self.client.merge(&format!("{}/status", pod.path), &json!({"status": status})).await;
    }

    /// Ends the processes of a pod, and then the pod.
    async fn end(self: Arc<Self>, uid: String, path: String) {
        let known = self.pods.lock().unwrap().get(&uid).map(|(pod, task)| (Arc::clone(pod), task.clone()));
        if let Some((pod, task)) = known {
            task.abort();
            pod.containers.lock().unwrap().values_mut().for_each(|container| container.process.terminate_if_running());
            let names: Vec<_> = pod.containers.lock().unwrap().keys().cloned().collect();
            pod.until_ended(&names).await;
        }
        // A second event of the same pod comes too late.
        let _ = self.client.delete(&path).await;
    }
}

impl Pod {
    /// Where its volumes and logs are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs the words of a line in a container, as `kubectl exec` does.
    pub fn run(&self, container: &str, line: &str) -> Option<Output> {
        let mut command = self.containers.lock().unwrap().get(container)?.inside();
        Some(command.args(line.split(' ')).output().unwrap())
    }

    pub fn log(&self, container: &str) -> String {
        self.containers.lock().unwrap().get(container).map_or(String::new(), |one| one.process.log())
    }

    /// The most memory that a container used, in MiB.
    pub fn peak(&self, container: &str) -> f64 {
        self.containers.lock().unwrap()[container].process.peak()
    }

    /// The exit code of a container that has ended; that of a signal is -1.
    fn ended(&self, container: &str) -> Option<i32> {
        self.containers.lock().unwrap().get_mut(container)?.process.ended().map(|status| status.code().unwrap_or(-1))
    }

    async fn until_ended(&self, containers: &[String]) {
        while containers.iter().any(|name| self.ended(name).is_none()) {
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    }

    fn status(&self, container: &Value) -> Value {
        let name = text(&container["name"]);
        let state = match (self.ended(&name), self.containers.lock().unwrap().contains_key(&name)) {
            (Some(code), _) => {
                json!({"terminated": {"exitCode": code, "reason": if code == 0 { "Completed" } else { "Error" }}})
            }
            (None, true) => json!({"running": {}}),
            (None, false) => json!({"waiting": {"reason": "PodInitializing"}}),
        };
        let is_started = self.containers.lock().unwrap().get(&name).is_some_and(|one| one.is_started);
        json!({"name": name, "image": container["image"], "imageID": "", "restartCount": 0, "state": state, "started": is_started, "ready": is_started})
    }

    async fn until_it_passes(self: &Arc<Self>, container: &Value, probe: &str) {
        let name = text(&container["name"]);
        loop {
            let passes = if container[probe].is_null() {
                true
            } else if let Some(path) = container[probe]["httpGet"]["path"].as_str() {
                let port = list(container, "ports").find(|port| port["name"] == container[probe]["httpGet"]["port"]);
                let address = format!("{}:{}", self.address, port.unwrap()["containerPort"]);
                Client::of_port(address.parse().unwrap()).text(path).await.is_ok()
            } else {
                let words = list(&container[probe]["exec"], "command").map(text).collect::<Vec<_>>().join(" ");
                let (pod, name) = (Arc::clone(self), name.clone());
                spawn_blocking(move || pod.run(&name, &words).unwrap().status.success()).await.unwrap()
            };
            if passes {
                return;
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    }
}
