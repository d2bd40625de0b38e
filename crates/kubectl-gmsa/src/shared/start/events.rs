//! The newest warnings about objects: what controllers, the scheduler and kubelets could not do.
//!
//! Invariant: of each object one event of a reason is kept for each of its containers, so what is kept is bounded by the objects.

use std::collections::HashMap;

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{MicroTime, Time},
    jiff::Timestamp,
};
use serde::{Deserialize, Deserializer};

use crate::shared::{not_checked::Read, snapshot::Snapshot};

/// The reasons that say why a pod is not there or does not run: of controllers (`pkg/controller/controller_utils.go` of Kubernetes), the
/// scheduler, and kubelets (`pkg/kubelet/events/event.go`).
const REASONS: [&str; 14] = [
    "FailedCreate",
    "FailedDaemonPod",
    "FailedScheduling",
    "FailedCreatePodSandBox",
    "NetworkNotReady",
    "FailedMount",
    "FailedMapVolume",
    "FailedAttachVolume",
    "FailedCreatePodContainer",
    "FailedPostStartHook",
    "FailedToRetrieveImagePullSecret",
    "Failed",
    "BackOff",
    "Unhealthy",
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    involved_object: Involved,
    #[serde(default, deserialize_with = "text")]
    pub reason: String,
    #[serde(default, deserialize_with = "text")]
    pub message: String,
    last_timestamp: Option<Time>,
    #[serde(rename = "eventTime")]
    precise: Option<MicroTime>,
    series: Option<Series>,
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Involved {
    #[serde(default, deserialize_with = "text")]
    uid: String,
    /// `spec.containers{iis}`
    #[serde(default, deserialize_with = "text")]
    field_path: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Series {
    last_observed_time: Option<MicroTime>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    creation_timestamp: Option<Time>,
}

/// A text; null is an empty one.
fn text<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    Option::deserialize(input).map(Option::unwrap_or_default)
}

impl Event {
    /// When it was last seen.
    pub fn at(&self) -> Option<Timestamp> {
        let of_series = self.series.as_ref().and_then(|series| series.last_observed_time.as_ref());
        let precise = of_series.or(self.precise.as_ref()).map(|MicroTime(at)| *at);
        let last = self.last_timestamp.as_ref().or(self.metadata.creation_timestamp.as_ref()).map(|Time(at)| *at);
        precise.max(last)
    }

    /// Whether it is about a container of this name.
    pub fn is_of_container(&self, name: &str) -> bool {
        self.involved_object.field_path.ends_with(&format!("{{{name}}}"))
    }

    /// The same, or about no container by name.
    pub fn may_be_of_container(&self, name: &str) -> bool {
        self.involved_object.field_path.is_empty() || self.is_of_container(name)
    }
}

#[derive(Default)]
pub struct Events(HashMap<String, Vec<Event>>);

impl Events {
    /// Reads those of a namespace, or of all.
    pub async fn read(snapshot: &Snapshot, namespace: Option<&str>) -> Read<Self> {
        let namespace = namespace.map(|name| format!("namespaces/{name}/")).unwrap_or_default();
        let path = format!("/api/v1/{namespace}events?fieldSelector=type%3DWarning");
        let mut kept = Self::default();
        for event in snapshot.list::<Event>(&path).await? {
            kept.add(event);
        }
        Ok(kept)
    }

    fn add(&mut self, event: Event) {
        if !REASONS.contains(&event.reason.as_str()) {
            return;
        }
        let of_object = self.0.entry(event.involved_object.uid.clone()).or_default();
        // A pull that fails has two events of one reason: what it says, and that it failed. So have volumes: of each, and of all.
        let is_same = |known: &&mut Event| {
            known.reason == event.reason
                && known.involved_object.field_path == event.involved_object.field_path
                && ["Error: ", "Unable to attach"]
                    .iter()
                    .all(|start| known.message.starts_with(start) == event.message.starts_with(start))
        };
        match of_object.iter_mut().find(is_same) {
            Some(known) if known.at() > event.at() => {}
            Some(known) => *known = event,
            None => of_object.push(event),
        }
    }

    /// The newest one about an object.
    pub fn newest(&self, uid: &str, is_meant: impl Fn(&Event) -> bool) -> Option<&Event> {
        self.0.get(uid)?.iter().filter(|event| is_meant(event)).max_by_key(|event| event.at())
    }
}
