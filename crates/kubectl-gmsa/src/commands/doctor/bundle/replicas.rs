//! What runs behind the Services of the webhooks: Deployments, ReplicaSets and Pods with their state, events, metrics and logs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{Gathered, each, only, text};
use crate::shared::webhook::metrics;
use gmsa_core::credspec::{is_dns_label, is_dns_subdomain};

/// How much of a log is read.
const LOG: &str = "tailLines=200&limitBytes=65536";

/// The most events of a namespace, the newest of them.
const MAX_EVENTS: usize = 200;

/// Of each Service that a webhook is called by.
pub(super) async fn of_services(gathered: &mut Gathered<'_>, webhooks: &[(&'static str, Value)]) -> Vec<Value> {
    let services: BTreeSet<(&str, &str)> = webhooks
        .iter()
        .flat_map(|(_, configuration)| each(configuration, "/webhooks"))
        .map(|webhook| (text(webhook, "/clientConfig/service/namespace"), text(webhook, "/clientConfig/service/name")))
        // They become parts of paths.
        .filter(|(namespace, name)| is_dns_label(namespace) && is_dns_subdomain(name))
        .collect();
    let mut found = Vec::new();
    for (namespace, name) in services {
        found.push(of_service(gathered, namespace, name).await);
    }
    found
}

async fn of_service(gathered: &mut Gathered<'_>, namespace: &str, name: &str) -> Value {
    let path = format!("/api/v1/namespaces/{namespace}/services/{name}");
    let read = gathered.cluster.get::<Value>(&path).await;
    let service = gathered.noted(&path, read).unwrap_or_default();
    let selector = service.pointer("/spec/selector").and_then(Value::as_object).cloned().unwrap_or_default();
    let (core, apps) = (format!("/api/v1/namespaces/{namespace}"), format!("/apis/apps/v1/namespaces/{namespace}"));
    let deployments =
        selected(gathered, &format!("{apps}/deployments"), "/spec/template/metadata/labels", &selector).await;
    let sets = selected(gathered, &format!("{apps}/replicasets"), "/spec/template/metadata/labels", &selector).await;
    let pods = selected(gathered, &format!("{core}/pods"), "/metadata/labels", &selector).await;
    let names: BTreeSet<&str> = deployments
        .iter()
        .chain(&sets)
        .chain(&pods)
        .map(|object| text(object, "/metadata/name"))
        .chain([name])
        .collect();
    let mut events: Vec<Value> = gathered.list(&format!("{core}/events")).await;
    events.retain(|event| names.contains(text(event, "/involvedObject/name")));
    events.sort_by_key(|event| std::cmp::Reverse(text(event, "/lastTimestamp").to_owned()));
    events.truncate(MAX_EVENTS);
    let (mut metrics_of, mut logs) = (BTreeMap::new(), BTreeMap::new());
    for pod in &pods {
        let name = text(pod, "/metadata/name");
        metrics_of.insert(name, metrics_of_pod(gathered, namespace, name, pod).await);
        logs.insert(name, log(gathered, &core, name, text(pod, "/spec/containers/0/name")).await);
    }
    json!({
        "namespace": namespace,
        "service": name,
        "deployments": deployments.iter().map(workload).collect::<Vec<_>>(),
        "replicaSets": sets.iter().map(workload).collect::<Vec<_>>(),
        "pods": pods.iter().map(pod).collect::<Vec<_>>(),
        "events": events.iter().map(event).collect::<Vec<_>>(),
        "metrics": metrics_of,
        "logs": logs,
    })
}

/// The objects whose labels, at `pointer`, the Service selects. A Service without a selector selects none.
async fn selected(gathered: &mut Gathered<'_>, path: &str, pointer: &str, selector: &Map<String, Value>) -> Vec<Value> {
    if selector.is_empty() {
        return Vec::new();
    }
    let mut listed: Vec<Value> = gathered.list(path).await;
    let is_selected = |object: &Value| {
        let labels = object.pointer(pointer);
        selector.iter().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
    };
    listed.retain(|object| is_selected(object));
    listed
}

async fn metrics_of_pod(gathered: &mut Gathered<'_>, namespace: &str, name: &str, pod: &Value) -> Option<String> {
    let typed = serde_json::from_value(pod.clone()).ok()?;
    let read = metrics(gathered.cluster, namespace, name, &typed).await;
    if read.is_none() {
        gathered.not_read.push(format!("the metrics of pod {namespace}/{name}"));
    }
    read
}

async fn log(gathered: &mut Gathered<'_>, core: &str, name: &str, container: &str) -> Option<Vec<String>> {
    if !is_dns_subdomain(name) || !is_dns_label(container) {
        return None;
    }
    let path = format!("{core}/pods/{name}/log?container={container}&{LOG}");
    let read = gathered.cluster.read_text(&path).await;
    Some(gathered.noted(&path, read)?.lines().map(str::to_owned).collect())
}

fn conditions(object: &Value) -> Vec<Value> {
    let fields = ["type", "status", "reason", "message", "lastTransitionTime"];
    each(object, "/status/conditions").map(|condition| only(condition, &fields).into_value()).collect()
}

/// The containers of a Pod's specification: of their environment the names alone, and no arguments.
fn containers(spec: Option<&Value>) -> Vec<Value> {
    let spec = spec.unwrap_or(&Value::Null);
    let shown = |container: &Value| {
        let mut shown = only(container, &["name", "image", "ports", "resources"]);
        let names: Vec<&str> = each(container, "/env").map(|variable| text(variable, "/name")).collect();
        shown.insert("env", json!(names));
        shown.into_value()
    };
    each(spec, "/initContainers").chain(each(spec, "/containers")).map(shown).collect()
}

fn workload(object: &Value) -> Value {
    let fields = [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
    ];
    let status = object.get("status").unwrap_or(&Value::Null);
    json!({
        "name": text(object, "/metadata/name"),
        "generation": object.pointer("/metadata/generation"),
        "replicas": object.pointer("/spec/replicas"),
        "containers": containers(object.pointer("/spec/template/spec")),
        "status": only(status, &fields).into_value(),
        "conditions": conditions(object),
    })
}

fn pod(object: &Value) -> Value {
    let state = |status: &Value| {
        only(status, &["name", "ready", "restartCount", "image", "imageID", "state", "lastState"]).into_value()
    };
    let states = each(object, "/status/initContainerStatuses").chain(each(object, "/status/containerStatuses"));
    json!({
        "name": text(object, "/metadata/name"),
        "node": object.pointer("/spec/nodeName"),
        "containers": containers(object.get("spec")),
        "status": only(object.get("status").unwrap_or(&Value::Null), &["phase", "reason", "message", "startTime"]).into_value(),
        "conditions": conditions(object),
        "containerStatuses": states.map(state).collect::<Vec<_>>(),
    })
}

fn event(event: &Value) -> Value {
    let mut shown = only(event, &["type", "reason", "message", "count", "firstTimestamp", "lastTimestamp"]);
    let about = format!("{} {}", text(event, "/involvedObject/kind"), text(event, "/involvedObject/name"));
    shown.insert("about", about.into());
    shown.into_value()
}
