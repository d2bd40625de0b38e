//! What of a Pod Windows does not have, field by field, and the images that matter.
//!
//! The list is that of the Kubernetes documentation (Windows containers in Kubernetes, API compatibility) and of the API
//! reference (`PodSpec.os`). Invariants: at most `MAX_FOUND` fields of a pod are kept.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::SlotKind;
use crate::json::{Object, Text, fold, null_is_default};

/// The most fields of one pod that are kept: enough for any honest mistake, a bound for a hostile object.
const MAX_FOUND: usize = 64;

/// A field that Windows does not have, or not with every value.
#[derive(Debug, PartialEq, Eq)]
pub struct Field {
    /// Its path below the pod's `spec`, the container, the volume or the mount.
    pub path: &'static str,
    /// Whether the API server refuses it, with any value, where `spec.os.name` is `windows`.
    pub is_refused: bool,
    /// What happens instead.
    pub reason: &'static str,
}

/// A field that Windows does not have, where a pod sets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The field.
    pub field: &'static Field,
    /// Its place in the pod, as a JSON Pointer (RFC 6901).
    pub pointer: String,
    /// The container that sets it; `None` for the pod itself.
    pub container: Option<(SlotKind, String)>,
    /// Whether it does nothing but say `false`.
    pub is_false: bool,
}

/// What a pod asks for that is not the same on Windows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unfit {
    /// The fields that Windows does not have.
    pub fields: Vec<Found>,
    /// The containers whose image is built on Nano Server: kind, position and name.
    pub on_nano_server: Vec<(SlotKind, usize, String)>,
}

macro_rules! fields {
    ($($name:ident: $path:literal, $is_refused:literal, $reason:literal;)*) => {
        $(static $name: Field = Field { path: $path, is_refused: $is_refused, reason: $reason };)*

        /// All of them.
        pub static FIELDS: &[&Field] = &[$(&$name),*];
    };
}

fields! {
    HOST_IPC: "hostIPC", true, "Windows cannot share namespaces of the host";
    HOST_PID: "hostPID", true, "Windows cannot share namespaces of the host";
    HOST_USERS: "hostUsers", true, "user namespaces are part of Linux";
    SHARE_PROCESS_NAMESPACE: "shareProcessNamespace", true, "Windows containers cannot share processes";
    HOST_NETWORK: "hostNetwork", false, "Windows pods have a network of their own";
    DNS_POLICY: "dnsPolicy: ClusterFirstWithHostNet", false, "Windows pods have a network of their own";
    MEMORY_VOLUME: "emptyDir.medium: Memory", false, "Windows has no volumes in memory";
    VOLUME_DEVICES: "volumeDevices", false, "Windows cannot attach raw block devices";
    MOUNT_PROPAGATION: "mountPropagation", false, "Windows does not propagate mounts";
    HUGE_PAGES: "resources: hugepages", false, "Windows containers have no huge pages";
    ALLOW_PRIVILEGE_ESCALATION: "securityContext.allowPrivilegeEscalation", true, "Windows has no capabilities";
    APP_ARMOR_PROFILE: "securityContext.appArmorProfile", true, "AppArmor is part of Linux";
    CAPABILITIES: "securityContext.capabilities", true, "Windows has no capabilities";
    FS_GROUP: "securityContext.fsGroup", true, "Windows has no group IDs";
    FS_GROUP_CHANGE_POLICY: "securityContext.fsGroupChangePolicy", true, "Windows has no group IDs";
    PRIVILEGED: "securityContext.privileged", true, "Windows has hostProcess instead";
    PROC_MOUNT: "securityContext.procMount", true, "Windows has no /proc";
    READ_ONLY_ROOT: "securityContext.readOnlyRootFilesystem", true, "Windows has to write to it";
    RUN_AS_GROUP: "securityContext.runAsGroup", true, "Windows has no group IDs";
    RUN_AS_USER: "securityContext.runAsUser", true, "Windows has runAsUserName instead";
    SE_LINUX_CHANGE_POLICY: "securityContext.seLinuxChangePolicy", true, "SELinux is part of Linux";
    SE_LINUX_OPTIONS: "securityContext.seLinuxOptions", true, "SELinux is part of Linux";
    SECCOMP_PROFILE: "securityContext.seccompProfile", true, "seccomp is part of Linux";
    SUPPLEMENTAL_GROUPS: "securityContext.supplementalGroups", true, "Windows has no group IDs";
    SUPPLEMENTAL_GROUPS_POLICY: "securityContext.supplementalGroupsPolicy", true, "Windows has no group IDs";
    SYSCTLS: "securityContext.sysctls", true, "sysctls are part of Linux";
}

/// Reads a Pod, or the template of one.
pub(in crate::admission) fn read(json: &str) -> Result<Unfit, serde_json::Error> {
    let Object(Pod { spec: Object(spec) }) = serde_json::from_str(json)?;
    let mut unfit = Unfit::default();
    let mut add = |set: Set, field| unfit.add("/spec", None, set, field);
    add(spec.host_ipc.if_true(), &HOST_IPC);
    add(spec.host_pid.if_true(), &HOST_PID);
    add(spec.host_users.but_only_false_matters(), &HOST_USERS);
    add(spec.share_process_namespace, &SHARE_PROCESS_NAMESPACE);
    add(spec.host_network.if_true(), &HOST_NETWORK);
    let with_host_net = spec.dns_policy.as_deref() == Some("ClusterFirstWithHostNet");
    add(Set::true_if(with_host_net), &DNS_POLICY);
    unfit.security("/spec", None, &spec.security_context.0);
    for index in spec.volumes.in_memory {
        unfit.add(&format!("/spec/volumes/{index}"), None, Set::Other, &MEMORY_VOLUME);
    }
    for (kind, containers) in [
        (SlotKind::Container, spec.containers),
        (SlotKind::InitContainer, spec.init_containers),
        (SlotKind::EphemeralContainer, spec.ephemeral_containers),
    ] {
        for (index, container) in containers.0 {
            unfit.container(kind, index, &container);
        }
    }
    Ok(unfit)
}

impl Unfit {
    /// How many bytes this takes beside itself.
    pub(in crate::admission) fn bytes_kept(&self) -> usize {
        let of_field = |found: &Found| {
            size_of::<Found>() + found.pointer.len() + found.container.as_ref().map_or(0, |(_, name)| name.len())
        };
        let of_image = |(_, _, name): &(SlotKind, usize, String)| size_of::<(SlotKind, usize, String)>() + name.len();
        self.fields.iter().map(of_field).sum::<usize>() + self.on_nano_server.iter().map(of_image).sum::<usize>()
    }

    fn add(&mut self, parent: &str, container: Option<(SlotKind, &str)>, set: Set, field: &'static Field) {
        if set != Set::Absent && self.fields.len() < MAX_FOUND {
            // What follows a colon is a value, or what the names of several fields have in common.
            let path = field.path.split(':').next().unwrap_or_default().replace('.', "/");
            self.fields.push(Found {
                field,
                pointer: format!("{parent}/{path}"),
                container: container.map(|(kind, name)| (kind, name.to_owned())),
                is_false: set == Set::False,
            });
        }
    }

    fn security(&mut self, parent: &str, container: Option<(SlotKind, &str)>, context: &SecurityContext) {
        for (set, field) in [
            (context.allow_privilege_escalation, &ALLOW_PRIVILEGE_ESCALATION),
            (context.app_armor_profile, &APP_ARMOR_PROFILE),
            (context.capabilities, &CAPABILITIES),
            (context.fs_group, &FS_GROUP),
            (context.fs_group_change_policy, &FS_GROUP_CHANGE_POLICY),
            (context.privileged, &PRIVILEGED),
            (context.proc_mount, &PROC_MOUNT),
            (context.read_only_root_filesystem, &READ_ONLY_ROOT),
            (context.run_as_group, &RUN_AS_GROUP),
            (context.run_as_user, &RUN_AS_USER),
            (context.se_linux_change_policy, &SE_LINUX_CHANGE_POLICY),
            (context.se_linux_options, &SE_LINUX_OPTIONS),
            (context.seccomp_profile, &SECCOMP_PROFILE),
            (context.supplemental_groups, &SUPPLEMENTAL_GROUPS),
            (context.supplemental_groups_policy, &SUPPLEMENTAL_GROUPS_POLICY),
            (context.sysctls, &SYSCTLS),
        ] {
            self.add(parent, container, set, field);
        }
    }

    fn container(&mut self, kind: SlotKind, index: usize, container: &Container) {
        let list = kind.field().unwrap_or_default();
        let parent = format!("/spec/{list}/{index}");
        let name = container.name.as_deref().unwrap_or_default();
        let owner = Some((kind, name));
        self.security(&parent, owner, &container.security_context.0);
        let Resources { limits, requests } = &container.resources.0;
        self.add(&parent, owner, Set::true_if(limits.0 || requests.0), &HUGE_PAGES);
        self.add(&parent, owner, Set::true_if(container.volume_devices.0), &VOLUME_DEVICES);
        for mount in &container.volume_mounts.propagated {
            self.add(&format!("{parent}/volumeMounts/{mount}"), owner, Set::Other, &MOUNT_PROPAGATION);
        }
        if container.on_nano_server() && self.on_nano_server.len() < MAX_FOUND {
            self.on_nano_server.push((kind, index, name.to_owned()));
        }
    }
}

/// Whether a field is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Set {
    /// Absent, or null.
    #[default]
    Absent,
    /// `false`
    False,
    /// Any other value.
    Other,
}

impl Set {
    fn true_if(condition: bool) -> Self {
        if condition { Self::Other } else { Self::Absent }
    }

    /// Of fields that the API server cannot tell from absent ones where they are `false`.
    fn if_true(self) -> Self {
        Self::true_if(self == Self::Other)
    }

    /// Of a field whose default is `true`.
    fn but_only_false_matters(self) -> Self {
        match self {
            Self::Absent => Self::Absent,
            Self::False => Self::Other,
            Self::Other => Self::False,
        }
    }
}

impl<'de> Deserialize<'de> for Set {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let value = <&RawValue>::deserialize(input)?;
        Ok(match value.get() {
            "null" => Self::Absent,
            "false" => Self::False,
            _ => Self::Other,
        })
    }
}

#[derive(Deserialize)]
struct Pod {
    #[serde(default, deserialize_with = "null_is_default")]
    spec: Object<Spec>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default, rename = "hostIPC")]
    host_ipc: Set,
    #[serde(default, rename = "hostPID")]
    host_pid: Set,
    #[serde(default)]
    host_users: Set,
    #[serde(default)]
    share_process_namespace: Set,
    #[serde(default)]
    host_network: Set,
    dns_policy: Option<Text>,
    #[serde(default, deserialize_with = "null_is_default")]
    security_context: Object<SecurityContext>,
    #[serde(default)]
    volumes: Volumes,
    #[serde(default)]
    containers: Containers,
    #[serde(default)]
    init_containers: Containers,
    #[serde(default)]
    ephemeral_containers: Containers,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SecurityContext {
    allow_privilege_escalation: Set,
    app_armor_profile: Set,
    capabilities: Set,
    fs_group: Set,
    fs_group_change_policy: Set,
    privileged: Set,
    proc_mount: Set,
    read_only_root_filesystem: Set,
    run_as_group: Set,
    run_as_user: Set,
    se_linux_change_policy: Set,
    se_linux_options: Set,
    seccomp_profile: Set,
    supplemental_groups: Set,
    supplemental_groups_policy: Set,
    sysctls: Set,
}

/// The containers that set something, each with its position.
#[derive(Default)]
struct Containers(Vec<(usize, Container)>);

impl<'de> Deserialize<'de> for Containers {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let start = (0, Self::default());
        let (_, containers) =
            fold(input, start, |(index, containers): &mut (usize, Self), Object(item): Object<Container>| {
                if item.matters() && containers.0.len() < MAX_FOUND {
                    containers.0.push((*index, item));
                }
                *index += 1;
            })?;
        Ok(containers)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Container {
    name: Option<Text>,
    image: Option<Text>,
    #[serde(default, deserialize_with = "null_is_default")]
    security_context: Object<SecurityContext>,
    #[serde(default, deserialize_with = "null_is_default")]
    resources: Object<Resources>,
    #[serde(default)]
    volume_devices: AnyItem,
    #[serde(default)]
    volume_mounts: Mounts,
}

impl Container {
    fn on_nano_server(&self) -> bool {
        self.image.as_deref().is_some_and(|image| image.contains("nanoserver"))
    }

    fn matters(&self) -> bool {
        let mut found = Unfit::default();
        found.security("", None, &self.security_context.0);
        !found.fields.is_empty()
            || self.resources.limits.0
            || self.resources.requests.0
            || self.volume_devices.0
            || !self.volume_mounts.propagated.is_empty()
            || self.on_nano_server()
    }
}

#[derive(Default, Deserialize)]
struct Resources {
    #[serde(default, deserialize_with = "null_is_default")]
    limits: HugePages,
    #[serde(default, deserialize_with = "null_is_default")]
    requests: HugePages,
}

/// Whether a list of resources has huge pages.
#[derive(Default)]
struct HugePages(bool);

impl<'de> Deserialize<'de> for HugePages {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = HugePages;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<HugePages, A::Error> {
                let mut found = false;
                while let Some((key, IgnoredAny)) = entries.next_entry::<Text, IgnoredAny>()? {
                    found |= key.starts_with("hugepages-");
                }
                Ok(HugePages(found))
            }
        }
        input.deserialize_map(Keys)
    }
}

/// Whether a list has an item.
#[derive(Default)]
struct AnyItem(bool);

impl<'de> Deserialize<'de> for AnyItem {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        fold(input, Self(false), |any: &mut Self, IgnoredAny| any.0 = true)
    }
}

/// The positions of volumes in memory.
#[derive(Default)]
struct Volumes {
    count: usize,
    in_memory: Vec<usize>,
}

impl<'de> Deserialize<'de> for Volumes {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        fold(input, Self::default(), |volumes: &mut Self, Object(Volume { empty_dir })| {
            let medium = empty_dir.and_then(|Object(dir)| dir.medium);
            if medium.as_deref() == Some("Memory") && volumes.in_memory.len() < MAX_FOUND {
                volumes.in_memory.push(volumes.count);
            }
            volumes.count += 1;
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Volume {
    empty_dir: Option<Object<EmptyDir>>,
}

#[derive(Deserialize)]
struct EmptyDir {
    medium: Option<Text>,
}

/// The positions of mounts that propagate.
#[derive(Default)]
struct Mounts {
    count: usize,
    propagated: Vec<usize>,
}

impl<'de> Deserialize<'de> for Mounts {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        fold(input, Self::default(), |mounts: &mut Self, Object(Mount { mount_propagation })| {
            let propagates = mount_propagation.is_some_and(|how| !how.is_empty() && &*how != "None");
            if propagates && mounts.propagated.len() < MAX_FOUND {
                mounts.propagated.push(mounts.count);
            }
            mounts.count += 1;
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Mount {
    mount_propagation: Option<Text>,
}

#[cfg(test)]
mod tests;
