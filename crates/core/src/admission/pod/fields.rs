//! Fields of a Pod that Windows does not support, and its images on Nano Server.
//!
//! The list comes from the Kubernetes documentation (Windows containers in Kubernetes, API compatibility) and the API
//! reference (`PodSpec.os`). A review reads a pod once and keeps what a decision needs; these fields are read only for the warnings about a
//! workload whose pods use GMSA, so no decision pays for them. Invariants: at most `MAX_FOUND` fields of a pod are kept, each in less memory
//! than its JSON takes.

use serde_json::{Deserializer, value::RawValue};

use super::{Pod, Slot, SlotKind};
use crate::json::{Text, fold, fold_entries};

/// The most fields of one pod that are kept: more than any mistake sets; a bound for hostile objects.
const MAX_FOUND: usize = 64;

/// The most steps of a pointer to one of these fields: `/spec/containers/0/resources/limits/hugepages-2Mi`.
const MAX_STEPS: usize = 6;

/// The longest pod that is looked at, in bytes: longer than any real one.
const MAX_BYTES: usize = 512 * 1024;

/// The most values of one pod that are looked at: more than any pod has, and milliseconds where a hostile object has a million.
const MAX_VALUES: usize = 1 << 15;

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

const fn field(path: &'static str, is_refused: bool, explanation: &'static str) -> LinuxField {
    LinuxField { path, is_refused, explanation }
}

/// Every field that Windows does not have, in the order of the warnings.
pub static FIELDS: [LinuxField; 27] = [
    field("hostIPC", true, "Windows cannot share namespaces of the host"),
    field("hostPID", true, "Windows cannot share namespaces of the host"),
    field("hostUsers", true, "user namespaces are part of Linux"),
    field("shareProcessNamespace", true, "Windows containers cannot share processes"),
    // Pod level, on since Kubernetes 1.34 (KEP-2837).
    field("resources", true, "Windows has the resources of each container"),
    field("hostNetwork", false, "Windows pods have a network of their own"),
    field("dnsPolicy: ClusterFirstWithHostNet", false, "Windows pods have a network of their own"),
    field("securityContext.allowPrivilegeEscalation", true, "Windows has no capabilities"),
    field("securityContext.appArmorProfile", true, "AppArmor is part of Linux"),
    field("securityContext.capabilities", true, "Windows has no capabilities"),
    field("securityContext.fsGroup", true, "Windows has no group IDs"),
    field("securityContext.fsGroupChangePolicy", true, "Windows has no group IDs"),
    field("securityContext.privileged", true, "Windows has hostProcess instead"),
    field("securityContext.procMount", true, "Windows has no /proc"),
    field("securityContext.readOnlyRootFilesystem", true, "Windows has to write to it"),
    field("securityContext.runAsGroup", true, "Windows has no group IDs"),
    field("securityContext.runAsUser", true, "Windows has runAsUserName instead"),
    field("securityContext.seLinuxChangePolicy", true, "SELinux is part of Linux"),
    field("securityContext.seLinuxOptions", true, "SELinux is part of Linux"),
    field("securityContext.seccompProfile", true, "seccomp is part of Linux"),
    field("securityContext.supplementalGroups", true, "Windows has no group IDs"),
    field("securityContext.supplementalGroupsPolicy", true, "Windows has no group IDs"),
    field("securityContext.sysctls", true, "sysctls are part of Linux"),
    field("emptyDir.medium: Memory", false, "Windows has no volumes in memory"),
    field("resources: hugepages", false, "Windows containers have no huge pages"),
    field("volumeDevices", false, "Windows cannot attach raw block devices"),
    field("mountPropagation", false, "Windows does not propagate mounts"),
];

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SlotIndex {
    kind: SlotKind,
    index: u16,
}

/// An [`Occurrence`], as it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    place: SlotIndex,
    /// Its position in [`FIELDS`].
    field: u8,
    /// The position of the volume or of the mount, for fields of those.
    item: u16,
    is_false: bool,
}

const _: () = assert!(size_of::<Found>() <= r#""fsGroup":1"#.len());

impl SlotIndex {
    fn slot(self, pod: &Pod) -> Option<Slot<'_>> {
        pod.slots().find(|slot| slot.kind == self.kind && slot.index == usize::from(self.index))
    }
}

/// Reads a Pod, or the template of one, from JSON.
pub fn read(pod: &str) -> Unsupported {
    let mut found = Unsupported::default();
    if pod.len() <= MAX_BYTES {
        found.walk("", pod, &mut { MAX_VALUES });
    }
    found.fields.sort_unstable();
    found.fields.dedup();
    found.fields.shrink_to_fit();
    found.on_nano_server.shrink_to_fit();
    found
}

impl Unsupported {
    /// The fields of `pod`, which this was read from, that Windows does not have.
    pub fn fields<'p>(&'p self, pod: &'p Pod) -> impl Iterator<Item = Occurrence<'p>> {
        self.fields.iter().filter_map(|found| {
            let Found { field, is_false, place, item } = *found;
            let field = FIELDS.get(usize::from(field))?;
            let (parent, container) = match place.kind.field() {
                None => ("/spec".to_owned(), None),
                Some(list) => {
                    let owner = place.slot(pod).map(|slot| slot.owner)?;
                    (format!("/spec/{list}/{}", place.index), Some((place.kind, owner)))
                }
            };
            let item = match field.path {
                "emptyDir.medium: Memory" => format!("/volumes/{item}"),
                "mountPropagation" => format!("/volumeMounts/{item}"),
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

    /// Looks at the value at a pointer, whose keys are not escaped, and at those in it; at no more than `left` values.
    fn walk(&mut self, pointer: &str, value: &str, left: &mut usize) {
        if value == "null" || pointer.matches('/').count() > MAX_STEPS {
            return;
        }
        *left -= 1;
        let input = &mut Deserializer::from_str(value);
        // Only lists and objects contain other values.
        if value.starts_with('{') {
            let below = |(): &mut (), key: Text, below: &RawValue| {
                if *left > 0 {
                    self.walk(&format!("{pointer}/{}", &*key), below.get(), left);
                }
            };
            let _ = fold_entries(input, (), below);
        } else if value.starts_with('[') {
            let below = |index: &mut usize, below: &RawValue| {
                if *left > 0 {
                    self.walk(&format!("{pointer}/{index}"), below.get(), left);
                }
                *index += 1;
            };
            let _ = fold(input, 0, below);
        }
        self.see(pointer, value);
    }

    fn see(&mut self, pointer: &str, value: &str) {
        let mut steps: Vec<&str> = pointer.split('/').skip(1).collect();
        let kind = steps.get(1).and_then(|list| SlotKind::of_field(list));
        let index = kind.map_or(Some(0), |_| steps.get(2)?.parse().ok());
        let (Some("spec"), Some(index)) = (steps.first().copied(), index) else { return };
        let place = SlotIndex { kind: kind.unwrap_or(SlotKind::Pod), index };
        let mut item = 0;
        for step in &mut steps {
            if let Ok(index) = step.parse() {
                (item, *step) = (index, "*");
            }
        }
        let path = steps.get(if kind.is_some() { 3 } else { 1 }..).unwrap_or_default().join(".");
        if kind.is_some() && path == "image" {
            let is_on_it = value.contains("nanoserver");
            self.on_nano_server.extend((is_on_it && self.on_nano_server.len() < MAX_FOUND).then_some(place));
        }
        let (set, is_false) = match (kind.is_some(), &*path, value) {
            // The API server cannot tell `false` from absent where a field is filtered.
            (false, "hostIPC" | "hostPID" | "hostNetwork", "false")
            | (true, "volumeMounts.*.mountPropagation", r#""""# | r#""None""#) => return,
            // Inverted: its default is `true`.
            (false, "hostUsers", value) => (&*path, value == "true"),
            (false, "dnsPolicy", r#""ClusterFirstWithHostNet""#) => ("dnsPolicy: ClusterFirstWithHostNet", false),
            (false, "volumes.*.emptyDir.medium", r#""Memory""#) => ("emptyDir.medium: Memory", false),
            (true, "volumeMounts.*.mountPropagation", _) => ("mountPropagation", false),
            (true, "volumeDevices.*", _) => ("volumeDevices", false),
            (true, path, _)
                if path.starts_with("resources.limits.hugepages-")
                    || path.starts_with("resources.requests.hugepages-") =>
            {
                ("resources: hugepages", false)
            }
            (true, path, _) if !path.starts_with("securityContext.") => return,
            (_, path, value) => (path, value == "false"),
        };
        let item = if ["emptyDir.medium: Memory", "mountPropagation"].contains(&set) { item } else { 0 };
        let field = FIELDS.iter().position(|known| known.path == set).and_then(|at| u8::try_from(at).ok());
        let room = MAX_FOUND.saturating_sub(self.fields.len());
        self.fields.extend(field.map(|field| Found { place, field, item, is_false }).into_iter().take(room));
    }
}

#[cfg(test)]
mod tests;
