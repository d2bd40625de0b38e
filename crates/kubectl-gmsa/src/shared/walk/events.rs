//! The newest events about objects: failures of controllers, the scheduler and kubelets, and later successes.
//!
//! Invariant: for each object, container and reason, one event is kept, so their number is bounded.

use std::collections::HashMap;

use futures::future::join_all;
use k8s_openapi::{
    api::core::v1,
    apimachinery::pkg::apis::meta::v1::{MicroTime, Time},
    jiff::{SignedDuration, Timestamp},
};

use crate::shared::{unread::Unread, world::World};
use gmsa_core::diagnostic::Check;

/// The selectors of events: warnings, and normal events that end a warning or explain a delay.
const SELECTORS: [&str; 3] = ["type%3DWarning", "reason%3DSuccessfulCreate", "reason%3DPulling"];

/// The reasons of a kubelet for a missing sandbox. `Failed` is about a folder of the pod, or a container where the event names one.
const OF_SANDBOX: [&str; 11] = [
    "FailedCreatePodSandBox",
    "FailedPodSandBoxStatus",
    "FailedCreatePodContainer",
    "FailedPrepareDynamicResources",
    "FailedSync",
    "NetworkNotReady",
    "FailedMount",
    "FailedMountOnFilesystemMismatch",
    "FailedMapVolume",
    "FailedAttachVolume",
    "Failed",
];

/// Events that name no cause beside those that do: they repeat a status, or sum up the volumes of a pod.
const SUMS: [&str; 2] = ["Error: ", "Unable to attach or mount volumes"];

/// A failure, or a success after it.
pub struct Event {
    pub reason: String,
    pub message: String,
    /// `spec.containers{iis}`
    field_path: String,
    /// When it was last seen.
    pub at: Option<Timestamp>,
}

impl Event {
    /// `None` for an event that names no cause.
    fn of(event: v1::Event) -> Option<Self> {
        let reason = event.reason?;
        let message = event.message.filter(|message| !SUMS.iter().any(|sum| message.starts_with(sum)))?;
        let of_series = event.series.and_then(|series| series.last_observed_time);
        let precise = of_series.or(event.event_time).map(|MicroTime(at)| at);
        let last = event.last_timestamp.or(event.metadata.creation_timestamp).map(|Time(at)| at);
        Some(Self {
            reason,
            message,
            field_path: event.involved_object.field_path.unwrap_or_default(),
            at: precise.max(last),
        })
    }

    /// Whether it says why there is no sandbox.
    pub fn is_of_sandbox(&self) -> bool {
        OF_SANDBOX.contains(&self.reason.as_str())
    }

    /// Whether it is about the container of this name, or about no particular one.
    pub fn may_be_of_container(&self, name: &str) -> bool {
        self.field_path.is_empty() || self.field_path.ends_with(&format!("{{{name}}}"))
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
    pub async fn read(world: &World, namespace: Option<&str>) -> Self {
        let namespace = namespace.map(|name| format!("namespaces/{name}/")).unwrap_or_default();
        let path = |selector| format!("/api/v1/{namespace}events?fieldSelector={selector}");
        let reads = join_all(SELECTORS.map(async |selector| world.list::<v1::Event>(&path(selector)).await)).await;
        let mut kept = Self { taken: Some(world.taken()), ..Self::default() };
        for read in reads {
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
    pub fn not_read(&self) -> Option<Check> {
        self.unread.as_ref().map(|unread| unread.check("events"))
    }

    /// The words for a state that no event explains.
    pub fn none(&self) -> &'static str {
        if self.unread.is_some() { "its events could not be read" } else { "no event says why" }
    }

    fn add(&mut self, event: v1::Event) {
        let uid = event.involved_object.uid.clone().unwrap_or_default();
        let Some(event) = Event::of(event) else { return };
        let of_object = self.by_object.entry(uid).or_default();
        let is_same = |known: &&mut Event| known.reason == event.reason && known.field_path == event.field_path;
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
