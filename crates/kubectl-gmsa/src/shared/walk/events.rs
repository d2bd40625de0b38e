//! The newest events about objects: failures of controllers, the scheduler and kubelets, and later successes.
//!
//! Invariant: one event is kept for each object, container and reason, so the number of objects bounds them.

use std::collections::HashMap;

use k8s_openapi::{
    api::core::v1,
    apimachinery::pkg::apis::meta::v1::{MicroTime, Time},
    jiff::{SignedDuration, Timestamp},
};

use crate::shared::{snapshot::Snapshot, unread::Unread};
use gmsa_core::diagnostic::Check;

/// The selectors of events: warnings, and normal events that end a warning or explain a delay.
const SELECTORS: [&str; 3] = ["type%3DWarning", "reason%3DSuccessfulCreate", "reason%3DPulling"];

/// The reasons that explain missing or failing pods: from controllers (`pkg/controller/controller_utils.go` of Kubernetes), the
/// scheduler, and kubelets (`pkg/kubelet/events/event.go`).
const REASONS: [&str; 16] = [
    "SuccessfulCreate",
    "Pulling",
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

/// A failure, or a success after it.
pub struct Event {
    pub reason: String,
    pub message: String,
    /// `spec.containers{iis}`
    field_path: String,
    /// When it was last seen.
    pub at: Option<Timestamp>,
}

impl From<v1::Event> for Event {
    fn from(event: v1::Event) -> Self {
        let of_series = event.series.and_then(|series| series.last_observed_time);
        let precise = of_series.or(event.event_time).map(|MicroTime(at)| at);
        let last = event.last_timestamp.or(event.metadata.creation_timestamp).map(|Time(at)| at);
        Self {
            reason: event.reason.unwrap_or_default(),
            message: event.message.unwrap_or_default(),
            field_path: event.involved_object.field_path.unwrap_or_default(),
            at: precise.max(last),
        }
    }
}

impl Event {
    /// Whether it is about a container of this name.
    pub fn is_of_container(&self, name: &str) -> bool {
        self.field_path.ends_with(&format!("{{{name}}}"))
    }

    /// Whether it is about this container, or about no particular one.
    pub fn may_be_of_container(&self, name: &str) -> bool {
        self.field_path.is_empty() || self.is_of_container(name)
    }
}

#[derive(Default)]
pub struct Events {
    by_object: HashMap<String, Vec<Event>>,
    /// Why they could not be read, or not all.
    pub unread: Option<Unread>,
    /// When they were read.
    taken: Option<Timestamp>,
}

impl Events {
    /// Reads the events of a namespace, or of all.
    pub async fn read(snapshot: &Snapshot, namespace: Option<&str>) -> Self {
        let namespace = namespace.map(|name| format!("namespaces/{name}/")).unwrap_or_default();
        let path = |selector| format!("/api/v1/{namespace}events?fieldSelector={selector}");
        let [warnings, created, pulling] =
            SELECTORS.map(async |selector| snapshot.list::<v1::Event>(&path(selector)).await);
        let (warnings, created, pulling) = tokio::join!(warnings, created, pulling);
        let mut kept = Self { taken: Some(snapshot.taken()), ..Self::default() };
        for read in [warnings, created, pulling] {
            match read {
                Ok(events) => events.into_iter().for_each(|event| kept.add(event)),
                Err(unread) => kept.unread = kept.unread.take().or(Some(unread)),
            }
        }
        kept
    }

    /// The time from `at` until the events were read, if known.
    pub fn since(&self, at: Timestamp) -> Option<SignedDuration> {
        self.taken.map(|taken| taken.duration_since(at))
    }

    /// The line for unreadable events, which may contain the cause.
    pub fn lacking(&self) -> Option<Check> {
        self.unread.as_ref().map(|unread| unread.check("events"))
    }

    fn add(&mut self, event: v1::Event) {
        let uid = event.involved_object.uid.clone().unwrap_or_default();
        let event = Event::from(event);
        if !REASONS.contains(&event.reason.as_str()) {
            return;
        }
        let of_object = self.by_object.entry(uid).or_default();
        // A failed pull has two events of one reason: the message, and the failure itself. So have volumes: for each, and for all.
        let is_same = |known: &&mut Event| {
            known.reason == event.reason
                && known.field_path == event.field_path
                && ["Error: ", "Unable to attach"]
                    .iter()
                    .all(|start| known.message.starts_with(start) == event.message.starts_with(start))
        };
        match of_object.iter_mut().find(is_same) {
            Some(known) if known.at > event.at => {}
            Some(known) => *known = event,
            None => of_object.push(event),
        }
    }

    /// The newest event about an object.
    pub fn newest(&self, uid: &str, is_meant: impl Fn(&Event) -> bool) -> Option<&Event> {
        self.by_object.get(uid)?.iter().filter(|event| is_meant(event)).max_by_key(|event| event.at)
    }
}
