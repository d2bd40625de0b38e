//! The fields of a Pod that Windows does not have, as they are read.
//!
//! This is a second reader beside [`Pod`](super::Pod): a review reads a pod once and keeps what a decision needs; these fields are read only for
//! the warnings about a workload whose pods use GMSA, so no decision pays for them.
//!
//! A field of a security context is one line of the table below. Invariants: of a list, at most `MAX_FOUND` items that matter
//! are kept, each with its position.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use super::{super::tickets::Volume, LinuxField, MAX_FOUND, SlotKind};
use crate::json::{Object, Text, fold, fold_entries, null_is_default};

/// Whether a field is set: `None` where it is absent or null, and whether the value is another one than `false`.
fn set<'de, D: Deserializer<'de>>(input: D) -> Result<Option<bool>, D::Error> {
    input.deserialize_any(SetVisitor)
}

struct SetVisitor;

macro_rules! other_values {
    ($($visit:ident: $value:ty),*) => {
        $(fn $visit<E>(self, _: $value) -> Result<Option<bool>, E> {
            Ok(Some(true))
        })*
    };
}

impl<'de> Visitor<'de> for SetVisitor {
    type Value = Option<bool>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Option<bool>, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, set: bool) -> Result<Option<bool>, E> {
        Ok(Some(set))
    }

    other_values!(visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_seq<A: SeqAccess<'de>>(self, mut input: A) -> Result<Option<bool>, A::Error> {
        while input.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Some(true))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut input: A) -> Result<Option<bool>, A::Error> {
        while input.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Some(true))
    }
}

#[derive(Deserialize)]
pub(super) struct RawPod {
    #[serde(default, deserialize_with = "null_is_default")]
    pub spec: Object<RawSpec>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawSpec {
    #[serde(default, deserialize_with = "set", rename = "hostIPC")]
    pub host_ipc: Option<bool>,
    #[serde(default, deserialize_with = "set", rename = "hostPID")]
    pub host_pid: Option<bool>,
    #[serde(default, deserialize_with = "set")]
    pub host_users: Option<bool>,
    #[serde(default, deserialize_with = "set")]
    pub share_process_namespace: Option<bool>,
    #[serde(default, deserialize_with = "set")]
    pub resources: Option<bool>,
    #[serde(default, deserialize_with = "set")]
    pub host_network: Option<bool>,
    dns_policy: Option<Text>,
    #[serde(default, deserialize_with = "null_is_default")]
    pub security_context: Object<SecurityContext>,
    /// Volumes in memory, by position.
    #[serde(default, deserialize_with = "volumes")]
    pub volumes: Vec<(u16, ())>,
    #[serde(default, deserialize_with = "containers")]
    containers: Vec<(u16, RawContainer)>,
    #[serde(default, deserialize_with = "containers")]
    init_containers: Vec<(u16, RawContainer)>,
    #[serde(default, deserialize_with = "containers")]
    ephemeral_containers: Vec<(u16, RawContainer)>,
}

impl RawSpec {
    pub fn uses_host_dns(&self) -> bool {
        self.dns_policy.as_deref() == Some("ClusterFirstWithHostNet")
    }

    /// The containers that set something, each with its position in the list of its kind.
    pub fn containers(&self) -> impl Iterator<Item = (SlotKind, u16, &RawContainer)> {
        [
            (SlotKind::Container, &self.containers),
            (SlotKind::InitContainer, &self.init_containers),
            (SlotKind::EphemeralContainer, &self.ephemeral_containers),
        ]
        .into_iter()
        .flat_map(|(kind, list)| list.iter().map(move |(index, container)| (kind, *index, container)))
    }
}

macro_rules! security_context {
    ($($field:ident: $key:literal, $explanation:literal;)*) => {
        /// The fields of a security context that Windows does not have.
        #[derive(Default, Deserialize)]
        #[serde(default)]
        pub(super) struct SecurityContext {
            $(#[serde(rename = $key, deserialize_with = "set")] $field: Option<bool>,)*
        }

        impl SecurityContext {
            pub const FIELDS: &[LinuxField] = &[$(
                LinuxField { path: concat!("securityContext.", $key), is_refused: true, explanation: $explanation }
            ),*];

            pub fn fields(&self) -> impl Iterator<Item = (Option<bool>, &'static LinuxField)> {
                [$(self.$field),*].into_iter().zip(Self::FIELDS)
            }
        }
    };
}

security_context! {
    allow_privilege_escalation: "allowPrivilegeEscalation", "Windows has no capabilities";
    app_armor_profile: "appArmorProfile", "AppArmor is part of Linux";
    capabilities: "capabilities", "Windows has no capabilities";
    fs_group: "fsGroup", "Windows has no group IDs";
    fs_group_change_policy: "fsGroupChangePolicy", "Windows has no group IDs";
    privileged: "privileged", "Windows has hostProcess instead";
    proc_mount: "procMount", "Windows has no /proc";
    read_only_root_filesystem: "readOnlyRootFilesystem", "Windows has to write to it";
    run_as_group: "runAsGroup", "Windows has no group IDs";
    run_as_user: "runAsUser", "Windows has runAsUserName instead";
    se_linux_change_policy: "seLinuxChangePolicy", "SELinux is part of Linux";
    se_linux_options: "seLinuxOptions", "SELinux is part of Linux";
    seccomp_profile: "seccompProfile", "seccomp is part of Linux";
    supplemental_groups: "supplementalGroups", "Windows has no group IDs";
    supplemental_groups_policy: "supplementalGroupsPolicy", "Windows has no group IDs";
    sysctls: "sysctls", "sysctls are part of Linux";
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawContainer {
    #[serde(default, deserialize_with = "is_on_nano_server", rename = "image")]
    pub on_nano_server: bool,
    #[serde(default, deserialize_with = "null_is_default")]
    pub security_context: Object<SecurityContext>,
    #[serde(default, deserialize_with = "null_is_default")]
    resources: Object<RawResources>,
    #[serde(default, deserialize_with = "any_item")]
    pub volume_devices: bool,
    /// Only mounts that propagate.
    #[serde(default, deserialize_with = "mounts")]
    pub volume_mounts: Vec<(u16, ())>,
}

impl RawContainer {
    pub fn has_huge_pages(&self) -> bool {
        self.resources.limits.0 || self.resources.requests.0
    }

    fn matters(&self) -> bool {
        self.security_context.fields().any(|(set, _)| set.is_some())
            || self.has_huge_pages()
            || self.volume_devices
            || !self.volume_mounts.is_empty()
            || self.on_nano_server
    }
}

fn is_on_nano_server<'de, D: Deserializer<'de>>(input: D) -> Result<bool, D::Error> {
    Ok(Option::<Text>::deserialize(input)?.is_some_and(|image| image.contains("nanoserver")))
}

fn containers<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<(u16, RawContainer)>, D::Error> {
    indexed(input, |Object(container): Object<RawContainer>| container.matters().then_some(container))
}

#[derive(Default, Deserialize)]
struct RawResources {
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
        fold_entries(input, Self(false), |found, key, IgnoredAny| found.0 |= key.starts_with("hugepages-"))
    }
}

fn volumes<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<(u16, ())>, D::Error> {
    indexed(input, |Object(volume): Object<Volume>| volume.is_in_memory().then_some(()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Mount {
    mount_propagation: Option<Text>,
}

fn mounts<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<(u16, ())>, D::Error> {
    indexed(input, |Object(Mount { mount_propagation })| {
        mount_propagation.is_some_and(|how| !how.is_empty() && &*how != "None").then_some(())
    })
}

/// Whether a list has an item.
fn any_item<'de, D: Deserializer<'de>>(input: D) -> Result<bool, D::Error> {
    fold(input, false, |any, IgnoredAny| *any = true)
}

/// Reads a list into what `keep` makes of its items, each with its position. Items after the 65,536th are dropped.
fn indexed<'de, D: Deserializer<'de>, T: Deserialize<'de>, K>(
    input: D,
    keep: impl Fn(T) -> Option<K>,
) -> Result<Vec<(u16, K)>, D::Error> {
    let (_, kept) = fold(input, (0, Vec::new()), |(index, kept): &mut (usize, Vec<(u16, K)>), item| {
        if let Some(item) = keep(item)
            && let Ok(index) = u16::try_from(*index)
            && kept.len() < MAX_FOUND
        {
            kept.push((index, item));
        }
        *index += 1;
    })?;
    Ok(kept)
}
