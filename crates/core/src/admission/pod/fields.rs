//! Fields of a Pod that Windows does not support, and its images on Nano Server.
//!
//! The list comes from the Kubernetes documentation (Windows containers in Kubernetes, API compatibility) and the API
//! reference (`PodSpec.os`). A review reads a pod once and keeps what a decision needs; these fields are read only for the warnings about a
//! workload whose pods use GMSA, so no decision pays for them. Invariants: at most `MAX_FOUND` fields of a pod are kept, each in less memory
//! than its JSON takes.

use std::fmt;

use serde::{
    Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use super::{Pod, Slot, SlotKind};
use crate::json::Text;

/// The most fields of one pod that are kept: more than any mistake sets; a bound for hostile objects.
const MAX_FOUND: usize = 64;

/// Below a longer pointer there is none of these fields.
const MAX_POINTER: usize = 128;

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

/// Reads a Pod, or the template of one.
///
/// # Errors
/// Where the input is not JSON.
pub fn read<'de, D: Deserializer<'de>>(pod: D) -> Result<Unsupported, D::Error> {
    let mut found = Unsupported::default();
    FieldWalk { pointer: &mut String::new(), left: &mut { MAX_VALUES }, found: &mut found }.deserialize(pod)?;
    found.fields.sort_unstable();
    found.fields.dedup();
    found.fields.shrink_to_fit();
    found.on_nano_server.shrink_to_fit();
    Ok(found)
}

/// A value of a pod; null is none.
enum FieldValue<'v> {
    Flag(bool),
    Text(&'v str),
    /// A number, a list or an object.
    Other,
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

    /// Looks at the value at a pointer, whose keys are not escaped.
    fn see(&mut self, pointer: &str, value: &FieldValue<'_>) {
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
            let is_on_it = matches!(value, FieldValue::Text(image) if image.contains("nanoserver"));
            self.on_nano_server.extend((is_on_it && self.on_nano_server.len() < MAX_FOUND).then_some(place));
        }
        let (set, is_false) = match (kind.is_some(), &*path, value) {
            // The API server cannot tell `false` from absent where a field is filtered.
            (false, "hostIPC" | "hostPID" | "hostNetwork", FieldValue::Flag(false)) => return,
            // Inverted: its default is `true`.
            (false, "hostUsers", FieldValue::Flag(is_default)) => (&*path, *is_default),
            (false, "dnsPolicy", FieldValue::Text("ClusterFirstWithHostNet")) => {
                ("dnsPolicy: ClusterFirstWithHostNet", false)
            }
            (false, "volumes.*.emptyDir.medium", FieldValue::Text("Memory")) => ("emptyDir.medium: Memory", false),
            (true, "volumeMounts.*.mountPropagation", FieldValue::Text(how)) if !["", "None"].contains(how) => {
                ("mountPropagation", false)
            }
            (true, "volumeDevices.*", _) => ("volumeDevices", false),
            (true, path, _)
                if path.starts_with("resources.limits.hugepages-")
                    || path.starts_with("resources.requests.hugepages-") =>
            {
                ("resources: hugepages", false)
            }
            (true, path, _) if !path.starts_with("securityContext.") => return,
            (_, path, value) => (path, matches!(value, FieldValue::Flag(false))),
        };
        let item = if ["emptyDir.medium: Memory", "mountPropagation"].contains(&set) { item } else { 0 };
        let field = FIELDS.iter().position(|known| known.path == set).and_then(|at| u8::try_from(at).ok());
        let room = MAX_FOUND.saturating_sub(self.fields.len());
        self.fields.extend(field.map(|field| Found { place, field, item, is_false }).into_iter().take(room));
    }
}

/// Shows each value of a pod, with its place, to [`Unsupported::see`].
struct FieldWalk<'w> {
    pointer: &'w mut String,
    /// How many more values are looked at.
    left: &'w mut usize,
    found: &'w mut Unsupported,
}

impl FieldWalk<'_> {
    /// The same for a value in this one.
    fn below(&mut self, step: &str) -> FieldWalk<'_> {
        self.pointer.push('/');
        self.pointer.push_str(step);
        FieldWalk { pointer: self.pointer, left: self.left, found: self.found }
    }

    fn see(self, value: &FieldValue<'_>) {
        self.found.see(self.pointer, value);
    }
}

impl<'de> DeserializeSeed<'de> for FieldWalk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        if self.pointer.len() > MAX_POINTER || *self.left == 0 {
            return input.deserialize_ignored_any(IgnoredAny).map(drop);
        }
        *self.left -= 1;
        input.deserialize_any(self)
    }
}

macro_rules! see {
    ($($visit:ident: $type:ty => $seen:expr),*) => {
        $(fn $visit<E>(self, value: $type) -> Result<(), E> {
            self.see(&$seen(value));
            Ok(())
        })*
    };
}

impl<'de> Visitor<'de> for FieldWalk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    see!(visit_bool: bool => FieldValue::Flag, visit_str: &str => FieldValue::Text, visit_i64: i64 => |_| FieldValue::Other, visit_u64: u64 => |_| FieldValue::Other, visit_f64: f64 => |_| FieldValue::Other);

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        let (length, mut index) = (self.pointer.len(), 0);
        while *self.left > 0 && items.next_element_seed(self.below(&index.to_string()))?.is_some() {
            self.pointer.truncate(length);
            index += 1;
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        self.pointer.truncate(length);
        self.see(&FieldValue::Other);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        let length = self.pointer.len();
        while *self.left > 0
            && let Some(key) = entries.next_key::<Text>()?
        {
            entries.next_value_seed(self.below(&key))?;
            self.pointer.truncate(length);
        }
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        self.see(&FieldValue::Other);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
