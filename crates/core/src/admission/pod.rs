//! A Pod, as far as admission cares.
//!
//! [`Pod::slots`] is the only walk over the slots; [`fields`] walks over the same lists for fields that Windows does not have,
//! and reads no slot. No other code lists the kinds of containers. Invariants: a Pod takes at most as much memory as
//! [`MAX_SLOTS`] slots and the texts in them.
//!
//! A new kind of slot is an entry in each of these:
//! - [`SlotKind`], with its `Display` in `slot.rs` and its [`SlotKind::field`] in this file;
//! - `Spec` and `Spec::lists` in this file, which [`Pod::slots`], [`Pod::has_too_many_slots`] and `Pod::bytes_kept` use;
//! - `Spec` and `Spec::containers` in `fields/wire.rs`;
//! - `added` in `mutate.rs`: on an update, only ephemeral containers are filled in;
//! - `gmsa-webhook.cel.slots` in the chart's `_cel.tpl`, and `guard.yaml`, which lists what an update may add;
//! - `verify.rs` of `kubectl gmsa`, which runs commands only in a `Container`.

use serde::{Deserialize, Deserializer};

use crate::json::{Flag, Object, Text, fold, null_is_default};

mod contents;
pub mod fields;
mod placement;
mod slot;

use contents::ContentsText;
pub use contents::PodContents;
use placement::{Affinity, NodeSelector};
pub use slot::{Slot, SlotKind, SlotRef};

/// The most slots of a pod: the pod itself and its containers of every kind.
pub const MAX_SLOTS: usize = 1000;

/// The parts of a `v1.Pod` that decisions rest on.
#[derive(Debug, Default, Deserialize)]
pub struct Pod {
    #[serde(default, deserialize_with = "null_is_default")]
    metadata: Object<Metadata>,
    #[serde(default, deserialize_with = "null_is_default")]
    spec: Object<Spec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: Option<Text>,
    generate_name: Option<Text>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    os: Option<Object<Os>>,
    hostname: Option<Text>,
    hostname_override: Option<Text>,
    service_account_name: Option<Text>,
    runtime_class_name: Option<Text>,
    #[serde(default, deserialize_with = "null_is_default")]
    node_selector: Object<NodeSelector>,
    #[serde(default, deserialize_with = "null_is_default")]
    affinity: Object<Affinity>,
    security_context: Option<Object<SecurityContext>>,
    #[serde(default)]
    containers: Containers,
    #[serde(default)]
    init_containers: Containers,
    #[serde(default)]
    ephemeral_containers: Containers,
}

impl Spec {
    /// The lists of containers, in the order in which the contract checks their slots.
    fn lists(&self) -> [(SlotKind, &Containers); 3] {
        [
            (SlotKind::Container, &self.containers),
            (SlotKind::InitContainer, &self.init_containers),
            (SlotKind::EphemeralContainer, &self.ephemeral_containers),
        ]
    }
}

#[derive(Debug, Deserialize)]
struct Os {
    name: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Container {
    name: Option<Text>,
    security_context: Option<Object<SecurityContext>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SecurityContext {
    windows_options: Option<Object<WindowsOptions>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WindowsOptions {
    gmsa_credential_spec_name: Option<Text>,
    gmsa_credential_spec: Option<ContentsText>,
    run_as_user_name: Option<Text>,
    host_process: Option<Flag>,
}

impl SlotKind {
    /// The field of `spec` that lists the slots of this kind; `None` for the pod itself.
    pub fn field(self) -> Option<&'static str> {
        match self {
            Self::Pod => None,
            Self::Container => Some("containers"),
            Self::InitContainer => Some("initContainers"),
            Self::EphemeralContainer => Some("ephemeralContainers"),
        }
    }
}

/// A list of containers, of which at most [`MAX_SLOTS`] are kept.
#[derive(Debug, Default)]
struct Containers {
    kept: Vec<Object<Container>>,
    count: usize,
}

impl<'de> Deserialize<'de> for Containers {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        fold(input, Self::default(), |containers: &mut Self, container| {
            containers.count += 1;
            if containers.kept.len() < MAX_SLOTS {
                containers.kept.push(container);
            }
        })
    }
}

impl Pod {
    /// Reads a Pod.
    ///
    /// # Errors
    /// Where the text is not JSON, or a known field has the wrong type.
    pub fn from_json(json: &str) -> Result<Self, serde_json::Error> {
        let Object(pod) = serde_json::from_str(json)?;
        Ok(pod)
    }

    /// Whether some slot names a credential spec or carries contents.
    pub fn uses_gmsa(&self) -> bool {
        self.slots().any(|slot| slot.uses_gmsa())
    }

    /// Whether the pod has more than [`MAX_SLOTS`] slots. [`Pod::slots`] does not give all of them then.
    pub fn has_too_many_slots(&self) -> bool {
        self.spec.lists().iter().map(|(_, containers)| containers.count).sum::<usize>() >= MAX_SLOTS
    }

    /// Every slot of the pod, in the order in which the contract checks them: the pod, then its containers, its init
    /// containers and its ephemeral containers.
    pub fn slots(&self) -> impl Iterator<Item = Slot<'_>> {
        let spec = &self.spec;
        let pod = slot(SlotKind::Pod, 0, self.name(), spec.security_context.as_ref());
        std::iter::once(pod).chain(spec.lists().into_iter().flat_map(|(kind, containers)| walk(kind, containers)))
    }

    pub(super) fn bytes_kept(&self) -> usize {
        let Self { metadata, spec } = self;
        let os = spec.os.as_ref().and_then(|os| os.name.as_ref());
        let texts = [
            &metadata.name,
            &metadata.generate_name,
            &spec.hostname,
            &spec.hostname_override,
            &spec.service_account_name,
            &spec.runtime_class_name,
            &spec.node_selector.os,
            &spec.node_selector.build,
        ];
        let texts = texts.into_iter().flatten().chain(os).map(|text| text.len());
        let lists = spec.lists().map(|(_, containers)| containers.kept.capacity() * size_of::<Object<Container>>());
        let of_slot = |slot: Slot<'_>| {
            let texts = [Some(slot.owner), slot.name, slot.run_as_user, slot.contents.map(PodContents::text)];
            texts.into_iter().flatten().map(str::len).sum::<usize>()
        };
        size_of::<Self>()
            + texts.sum::<usize>()
            + lists.iter().sum::<usize>()
            + self.slots().map(of_slot).sum::<usize>()
    }

    /// The pod's name, or where it has none yet its generateName, or nothing.
    pub fn name(&self) -> &str {
        let name = as_str(self.metadata.name.as_ref()).filter(|name| !name.is_empty());
        name.or_else(|| as_str(self.metadata.generate_name.as_ref())).unwrap_or_default()
    }

    /// The name of the service account that the pod runs as: `default` where none is set. Not validated.
    pub fn service_account(&self) -> &str {
        as_str(self.spec.service_account_name.as_ref()).filter(|name| !name.is_empty()).unwrap_or("default")
    }

    /// Whether the pod says that it is for Linux (`spec.os.name`).
    pub fn is_linux(&self) -> bool {
        self.os() == Some("linux")
    }

    /// Whether the pod says that it is for Windows (`spec.os.name`).
    pub(super) fn is_windows(&self) -> bool {
        self.os() == Some("windows")
    }

    fn os(&self) -> Option<&str> {
        self.spec.os.as_ref().and_then(|os| as_str(os.name.as_ref()))
    }

    /// Whether the pod says in some way that it is for Windows nodes: a preference of the scheduler does not count.
    pub(super) fn keeps_to_windows(&self) -> bool {
        let Spec { node_selector, affinity, .. } = &*self.spec;
        self.is_windows() || node_selector.on_windows() || affinity.on_windows() || self.pins_build()
    }

    /// Whether the pod says which build of Windows it is for, or leaves that to a runtime class.
    pub fn pins_build(&self) -> bool {
        let Spec { node_selector, affinity, runtime_class_name, .. } = &*self.spec;
        let runtime_class = as_str(runtime_class_name.as_ref()).filter(|class| !class.is_empty());
        node_selector.build.is_some() || affinity.on_a_build() || runtime_class.is_some()
    }

    /// The host name that the pod's author chose for it.
    pub fn hostname(&self) -> Option<&str> {
        let Spec { hostname, hostname_override, .. } = &*self.spec;
        let names = [hostname_override.as_ref(), hostname.as_ref()].map(as_str);
        names.into_iter().flatten().find(|name| !name.is_empty())
    }
}

fn walk(kind: SlotKind, containers: &Containers) -> impl Iterator<Item = Slot<'_>> {
    containers.kept.iter().enumerate().map(move |(index, container)| {
        let owner = as_str(container.name.as_ref()).unwrap_or_default();
        slot(kind, index, owner, container.security_context.as_ref())
    })
}

fn slot<'p>(
    kind: SlotKind,
    index: usize,
    owner: &'p str,
    security_context: Option<&'p Object<SecurityContext>>,
) -> Slot<'p> {
    let options = security_context.and_then(|context| context.windows_options.as_ref());
    Slot {
        kind,
        index,
        owner,
        name: options.and_then(|options| as_str(options.gmsa_credential_spec_name.as_ref())),
        contents: options.and_then(|options| options.gmsa_credential_spec.as_ref()).map(ContentsText::as_contents),
        run_as_user: options.and_then(|options| as_str(options.run_as_user_name.as_ref())),
        host_process: options.and_then(|options| options.host_process).map(|Flag(value)| value),
    }
}

fn as_str(text: Option<&Text>) -> Option<&str> {
    text.map(|text| &**text)
}
