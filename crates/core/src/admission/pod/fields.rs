//! What a Pod sets that Windows does not have, field by field, and the images that matter.
//!
//! The list is that of the Kubernetes documentation (Windows containers in Kubernetes, API compatibility) and of the API
//! reference (`PodSpec.os`). Invariants: at most `MAX_FOUND` fields of a pod are kept.

use super::SlotKind;
use crate::json::Object;

mod wire;

use wire::{Container, SecurityContext};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    pub field: &'static LinuxField,
    /// The place in the pod, as a JSON Pointer (RFC 6901).
    pub pointer: String,
    /// The container that sets it; `None` for the pod itself.
    pub container: Option<(SlotKind, String)>,
    /// Whether the value is `false`.
    pub is_false: bool,
}

/// What a pod asks for that is not the same on Windows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unsupported {
    /// The fields that Windows does not have.
    pub fields: Vec<Occurrence>,
    /// The containers whose image is built on Nano Server: kind, position and name.
    pub on_nano_server: Vec<(SlotKind, usize, String)>,
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
/// Where the string is not JSON, or a list is of another type.
pub fn read(json: &str) -> Result<Unsupported, serde_json::Error> {
    let Object(wire::Pod { spec: Object(spec) }) = serde_json::from_str(json)?;
    let mut found = Unsupported::default();
    let mut add = |set: Option<bool>, field| found.add("/spec", None, set, field);
    // The API server cannot tell `false` from absent where a field is filtered.
    add(spec.host_ipc.filter(|set| *set), &HOST_IPC);
    add(spec.host_pid.filter(|set| *set), &HOST_PID);
    // Its default is `true`, which is to it what `false` is to the others.
    add(spec.host_users.map(|set| !set), &HOST_USERS);
    add(spec.share_process_namespace, &SHARE_PROCESS_NAMESPACE);
    add(spec.resources, &RESOURCES);
    add(spec.host_network.filter(|set| *set), &HOST_NETWORK);
    add(spec.uses_host_dns().then_some(true), &DNS_POLICY);
    found.security_context("/spec", None, &spec.security_context);
    for (index, ()) in &spec.volumes {
        found.add(&format!("/spec/volumes/{index}"), None, Some(true), &MEMORY_VOLUME);
    }
    for (kind, index, container) in spec.containers() {
        found.container(kind, index, container);
    }
    Ok(found)
}

impl Unsupported {
    /// How many bytes this takes beside itself.
    pub(in crate::admission) fn bytes_kept(&self) -> usize {
        let of_field = |found: &Occurrence| {
            size_of::<Occurrence>() + found.pointer.len() + found.container.as_ref().map_or(0, |(_, name)| name.len())
        };
        let of_image = |(_, _, name): &(SlotKind, usize, String)| size_of::<(SlotKind, usize, String)>() + name.len();
        self.fields.iter().map(of_field).sum::<usize>() + self.on_nano_server.iter().map(of_image).sum::<usize>()
    }

    /// Adds a field that is set; `Some(false)` is the value `false`.
    fn add(
        &mut self,
        parent: &str,
        container: Option<(SlotKind, &str)>,
        set: Option<bool>,
        field: &'static LinuxField,
    ) {
        if let Some(set) = set
            && self.fields.len() < MAX_FOUND
        {
            // What follows a colon is a value, or what the names of several fields have in common.
            let path = field.path.split(':').next().unwrap_or_default().replace('.', "/");
            self.fields.push(Occurrence {
                field,
                pointer: format!("{parent}/{path}"),
                container: container.map(|(kind, name)| (kind, name.to_owned())),
                is_false: !set,
            });
        }
    }

    fn security_context(&mut self, parent: &str, container: Option<(SlotKind, &str)>, context: &SecurityContext) {
        for (set, field) in context.fields() {
            self.add(parent, container, set, field);
        }
    }

    fn container(&mut self, kind: SlotKind, index: usize, container: &Container) {
        let list = kind.field().unwrap_or_default();
        let parent = format!("/spec/{list}/{index}");
        let name = container.name.as_deref().unwrap_or_default();
        let owner = Some((kind, name));
        self.security_context(&parent, owner, &container.security_context);
        self.add(&parent, owner, container.has_huge_pages().then_some(true), &HUGE_PAGES);
        self.add(&parent, owner, container.volume_devices.then_some(true), &VOLUME_DEVICES);
        for (mount, ()) in &container.volume_mounts {
            self.add(&format!("{parent}/volumeMounts/{mount}"), owner, Some(true), &MOUNT_PROPAGATION);
        }
        if container.on_nano_server() && self.on_nano_server.len() < MAX_FOUND {
            self.on_nano_server.push((kind, index, name.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests;
