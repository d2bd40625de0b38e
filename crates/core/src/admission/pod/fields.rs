//! Fields of a Pod that Windows does not support, and its images on Nano Server.
//!
//! The list comes from the Kubernetes documentation (Windows containers in Kubernetes, API compatibility) and the API
//! reference (`PodSpec.os`). Invariants: at most `MAX_FOUND` fields of a pod are kept, each in less memory than its JSON takes.

use serde::{Deserialize as _, Deserializer};

use super::{Pod, Slot, SlotKind};
use crate::json::Object;

mod wire;

use wire::{RawContainer, SecurityContext};

/// The most fields of one pod that are kept: more than any mistake sets; a bound for hostile objects.
const MAX_FOUND: usize = 64;

/// A field that Windows does not have, or not with every value.
#[derive(Debug, PartialEq, Eq)]
pub struct LinuxField {
    /// Its path below the pod's `spec`, the container, the volume or the mount.
    pub path: &'static str,
    /// Whether the API server refuses it, with any value, where `spec.os.name` is `windows`.
    pub is_refused: bool,
    /// Why, or what Windows has instead.
    pub explanation: &'static str,
}

/// A place in a pod that sets a field that Windows does not have.
#[derive(Debug)]
pub struct Occurrence<'p> {
    pub field: &'static LinuxField,
    /// The place in the pod, as a JSON Pointer (RFC 6901).
    pub pointer: String,
    /// The container that sets it; `None` for the pod itself.
    pub container: Option<(SlotKind, &'p str)>,
    /// Whether the value is `false`.
    pub is_false: bool,
}

/// Fields and images of a pod that behave differently on Windows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unsupported {
    /// The fields that Windows does not have.
    fields: Vec<Found>,
    /// The containers whose image is built on Nano Server.
    on_nano_server: Vec<SlotIndex>,
}

/// The pod itself, or a container by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SlotIndex {
    kind: SlotKind,
    index: u16,
}

/// An [`Occurrence`], as it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    /// Its position in [`all`].
    field: u8,
    is_false: bool,
    place: SlotIndex,
    /// The position of the volume or of the mount, for fields of those.
    item: u16,
}

const _: () = assert!(size_of::<Found>() <= r#""fsGroup":1"#.len());

impl SlotIndex {
    const POD: Self = Self { kind: SlotKind::Pod, index: 0 };

    fn slot(self, pod: &Pod) -> Option<Slot<'_>> {
        pod.slots().find(|slot| slot.kind == self.kind && slot.index == usize::from(self.index))
    }
}

macro_rules! fields {
    ($($name:ident: $path:literal, $is_refused:literal, $explanation:literal;)*) => {
        $(static $name: LinuxField = LinuxField { path: $path, is_refused: $is_refused, explanation: $explanation };)*

        static OUTSIDE_SECURITY_CONTEXTS: &[&LinuxField] = &[$(&$name),*];
    };
}

fields! {
    HOST_IPC: "hostIPC", true, "Windows cannot share namespaces of the host";
    HOST_PID: "hostPID", true, "Windows cannot share namespaces of the host";
    HOST_USERS: "hostUsers", true, "user namespaces are part of Linux";
    SHARE_PROCESS_NAMESPACE: "shareProcessNamespace", true, "Windows containers cannot share processes";
    // Pod level, on since Kubernetes 1.34 (KEP-2837).
    RESOURCES: "resources", true, "Windows has the resources of each container";
    HOST_NETWORK: "hostNetwork", false, "Windows pods have a network of their own";
    DNS_POLICY: "dnsPolicy: ClusterFirstWithHostNet", false, "Windows pods have a network of their own";
    MEMORY_VOLUME: "emptyDir.medium: Memory", false, "Windows has no volumes in memory";
    VOLUME_DEVICES: "volumeDevices", false, "Windows cannot attach raw block devices";
    MOUNT_PROPAGATION: "mountPropagation", false, "Windows does not propagate mounts";
    HUGE_PAGES: "resources: hugepages", false, "Windows containers have no huge pages";
}

/// Every field that Windows does not have.
pub fn all() -> impl Iterator<Item = &'static LinuxField> {
    OUTSIDE_SECURITY_CONTEXTS.iter().copied().chain(SecurityContext::FIELDS)
}

/// Reads a Pod, or the template of one.
///
/// # Errors
/// Where a list is of another type.
pub fn read<'de, D: Deserializer<'de>>(pod: D) -> Result<Unsupported, D::Error> {
    let Object(wire::RawPod { spec: Object(spec) }) = Object::deserialize(pod)?;
    let mut found = Unsupported::default();
    let mut add = |set: Option<bool>, field| found.add(SlotIndex::POD, 0, set, field);
    // The API server cannot tell `false` from absent where a field is filtered.
    add(spec.host_ipc.filter(|set| *set), &HOST_IPC);
    add(spec.host_pid.filter(|set| *set), &HOST_PID);
    // Inverted: its default is `true`.
    add(spec.host_users.map(|set| !set), &HOST_USERS);
    add(spec.share_process_namespace, &SHARE_PROCESS_NAMESPACE);
    add(spec.resources, &RESOURCES);
    add(spec.host_network.filter(|set| *set), &HOST_NETWORK);
    add(spec.uses_host_dns().then_some(true), &DNS_POLICY);
    found.security_context(SlotIndex::POD, &spec.security_context);
    for (volume, ()) in &spec.volumes {
        found.add(SlotIndex::POD, *volume, Some(true), &MEMORY_VOLUME);
    }
    for (kind, index, container) in spec.containers() {
        found.container(SlotIndex { kind, index }, container);
    }
    found.fields.shrink_to_fit();
    found.on_nano_server.shrink_to_fit();
    Ok(found)
}

impl Unsupported {
    /// The fields of `pod`, which this was read from, that Windows does not have.
    pub fn fields<'p>(&'p self, pod: &'p Pod) -> impl Iterator<Item = Occurrence<'p>> {
        self.fields.iter().filter_map(|found| {
            let Found { field, is_false, place, item } = *found;
            let field = all().nth(field.into())?;
            let (parent, container) = match place.kind.field() {
                None => ("/spec".to_owned(), None),
                Some(list) => {
                    let owner = place.slot(pod).map(|slot| slot.owner)?;
                    (format!("/spec/{list}/{}", place.index), Some((place.kind, owner)))
                }
            };
            let item = match field.path {
                path if path == MEMORY_VOLUME.path => format!("/volumes/{item}"),
                path if path == MOUNT_PROPAGATION.path => format!("/volumeMounts/{item}"),
                _ => String::new(),
            };
            // After a colon comes a value, or the common part of several field names.
            let path = field.path.split(':').next().unwrap_or_default().replace('.', "/");
            Some(Occurrence { field, pointer: format!("{parent}{item}/{path}"), container, is_false })
        })
    }

    /// The containers of `pod`, which this was read from, whose image is built on Nano Server.
    pub fn on_nano_server<'p>(&'p self, pod: &'p Pod) -> impl Iterator<Item = Slot<'p>> {
        self.on_nano_server.iter().filter_map(|place| place.slot(pod))
    }

    /// Adds a field that is set; `Some(false)` is the value `false`.
    fn add(&mut self, place: SlotIndex, item: u16, set: Option<bool>, field: &LinuxField) {
        if let Some(set) = set
            && self.fields.len() < MAX_FOUND
            && let Some(field) = all().position(|known| known == field).and_then(|at| u8::try_from(at).ok())
        {
            self.fields.push(Found { field, is_false: !set, place, item });
        }
    }

    fn security_context(&mut self, place: SlotIndex, context: &SecurityContext) {
        for (set, field) in context.fields() {
            self.add(place, 0, set, field);
        }
    }

    fn container(&mut self, place: SlotIndex, container: &RawContainer) {
        self.security_context(place, &container.security_context);
        self.add(place, 0, container.has_huge_pages().then_some(true), &HUGE_PAGES);
        self.add(place, 0, container.volume_devices.then_some(true), &VOLUME_DEVICES);
        for (mount, ()) in &container.volume_mounts {
            self.add(place, *mount, Some(true), &MOUNT_PROPAGATION);
        }
        if container.on_nano_server && self.on_nano_server.len() < MAX_FOUND {
            self.on_nano_server.push(place);
        }
    }
}

#[cfg(test)]
mod tests;
