//! A Pod, as far as admission cares.
//!
//! [`Pod::slots`] is the only walk over the slots; [`fields`] walks over the same lists for fields that Windows does not have,
//! and reads no slot. No other code of the core lists the kinds of containers. Invariants: a Pod points to at most as many bytes as its JSON
//! has, and of each kind to at most [`MAX_SLOTS`] containers. How many credential specs they may name (`MAX_SPECS_PER_POD`, 24)
//! is checked in `preconditions.rs`.
//!
//! A new field of a Pod is:
//! - a field of the struct here that is read where it stands; a field of a container must keep the assertion below `Containers`;
//! - a method of [`Pod`], or a field of [`Slot`], for what is decided by it;
//! - its paths in `review/tests.rs`, which sets each field to null and to another type, and in `OBJECTS` of `tests/bounds.rs`;
//! - if pods without GMSA can set it and must be reviewed, `_cel.tpl` of the chart, which says which pods are sent.
//!
//! A field that Windows does not have is a line of a table in `fields.rs` instead;
//! `UPDATE_SNAPSHOTS=1 cargo test -p gmsa-core` writes it into `docs/windows-pods.md`.
//!
//! A new kind of slot is an entry in each of these:
//! - [`SlotKind`], with its `Display` in `slot.rs` and its [`SlotKind::field`] in this file;
//! - `PodSpec` and `PodSpec::lists` in this file, which [`Pod::slots`] and [`Pod::has_too_many_slots`] use;
//! - `added` in `mutate.rs`: on an update, only ephemeral containers are filled in;
//! - `gmsa-webhook.cel.slots` in the chart's `_cel.tpl`, and `_guard.tpl`, which lists what an update may add;
//! - `SLOT_LISTS` in `tests/server/layout.rs`, which keeps this the only walk;
//! - in `kubectl gmsa`, the fields that a bundle keeps (`POD` in `world/reads.rs`), and `commands/verify.rs`, which takes a `Container`
//!   where it is asked for none;
//! - `LISTS` of `oracle.rs` in test-support.

use serde::{Deserialize, Deserializer, de::IgnoredAny};

use crate::{
    credspec::{MAX_CONTENTS_BYTES, Verb},
    json::{Flag, Object, Text, Texts, fold, null_is_default},
};

pub mod fields;
mod placement;
pub(super) mod slot;
pub mod tickets;

use placement::AllowedNodes;
pub use placement::VERSION_LABELS;
pub use slot::{Slot, SlotKind};
use tickets::{SidecarFields, Volumes};

/// The most slots of a pod: the pod itself and its containers of every kind.
pub const MAX_SLOTS: usize = 1000;

/// The annotation of a pod that asks for a random host name by the value `true`, also where the webhook's setting is
/// off. Any other value is ignored.
pub const RANDOM_HOSTNAME: &str = "gmsa-webhook/random-hostname";

/// The parts of a `v1.Pod` that decisions rest on.
#[derive(Debug, Default, Deserialize)]
pub struct Pod {
    #[serde(default, deserialize_with = "null_is_default")]
    metadata: Object<Metadata>,
    #[serde(default, deserialize_with = "null_is_default")]
    spec: Object<PodSpec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: Option<Text>,
    generate_name: Option<Text>,
    #[serde(default, deserialize_with = "null_is_default")]
    annotations: Object<Annotations>,
}

/// The annotations that matter.
#[derive(Debug, Default, Deserialize)]
struct Annotations {
    /// [`RANDOM_HOSTNAME`].
    #[serde(rename = "gmsa-webhook/random-hostname")]
    random_hostname: Option<Text>,
    /// [`tickets::ANNOTATION`].
    #[serde(rename = "gmsa-webhook/tickets")]
    tickets: Option<Text>,
    /// [`tickets::KEYTAB`].
    #[serde(rename = "gmsa-webhook/keytab")]
    keytab: Option<Text>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec {
    os: Option<Object<Os>>,
    hostname: Option<Text>,
    hostname_override: Option<Text>,
    service_account_name: Option<Text>,
    runtime_class_name: Option<Text>,
    #[serde(default, deserialize_with = "null_is_default")]
    node_selector: AllowedNodes,
    #[serde(default, deserialize_with = "placement::affinity")]
    affinity: AllowedNodes,
    security_context: Option<Object<SecurityContext>>,
    #[serde(default, deserialize_with = "tickets::volumes")]
    volumes: Volumes,
    #[serde(default, deserialize_with = "containers")]
    containers: Containers,
    #[serde(default, deserialize_with = "containers")]
    init_containers: Containers,
    #[serde(default, deserialize_with = "containers")]
    ephemeral_containers: Containers,
}

impl PodSpec {
    /// The lists of containers, in the order in which their slots are decided.
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

/// The containers of one kind. Each stores only its name; few have fields or options that matter.
#[derive(Debug, Default)]
struct Containers {
    names: Texts,
    /// By position, where there are some.
    tickets: Vec<(u16, SidecarFields)>,
    /// By position.
    options: Vec<WindowsOptions>,
}

/// The shortest containers that have fields, and options.
const SHORTEST: [&str; 2] = [r#"{"env":[{}]}"#, r#"{"securityContext":{"windowsOptions":{"hostProcess":true}}}"#];
const _: () = assert!(size_of::<u16>() + size_of::<(u16, SidecarFields)>() <= SHORTEST[0].len());
const _: () = assert!(size_of::<u16>() + size_of::<WindowsOptions>() <= SHORTEST[1].len());

impl Containers {
    fn add(&mut self, container: Container) {
        // With the pod itself that is one too many.
        let Ok(position) = u16::try_from(self.names.len()) else { return };
        if usize::from(position) >= MAX_SLOTS {
            return;
        }
        self.names.push(container.name.as_deref().unwrap_or_default());
        let Container { env, env_from, volume_mounts, restart_policy, .. } = &container;
        let is_restarted = restart_policy.as_deref() == Some("Always");
        let fields = SidecarFields::of_container(*env, *env_from, *volume_mounts, is_restarted);
        if fields != SidecarFields::default() {
            self.tickets.push((position, fields));
        }
        let options = container.security_context.and_then(|Object(context)| context.windows_options);
        if let Some(Object(options)) = options.filter(|options| options.matter()) {
            self.options.push(WindowsOptions { position, ..options });
        }
    }

    fn shrink(&mut self) {
        self.names.shrink();
        self.tickets.shrink_to_fit();
        self.options.shrink_to_fit();
    }
}

/// A container, while it is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Container {
    name: Option<Text>,
    security_context: Option<Object<SecurityContext>>,
    restart_policy: Option<Text>,
    #[serde(default, deserialize_with = "tickets::env")]
    env: SidecarFields,
    #[serde(default, deserialize_with = "tickets::env_from")]
    env_from: bool,
    #[serde(default, deserialize_with = "tickets::volume_mounts")]
    volume_mounts: SidecarFields,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SecurityContext {
    windows_options: Option<Object<WindowsOptions>>,
    fs_group: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WindowsOptions {
    gmsa_credential_spec_name: Option<Text>,
    gmsa_credential_spec: Option<Text<MAX_CONTENTS_BYTES>>,
    run_as_user_name: Option<Text>,
    host_process: Option<Flag>,
    /// The container's index in its list; 0 in the pod itself.
    #[serde(skip)]
    position: u16,
}

impl WindowsOptions {
    fn matter(&self) -> bool {
        let Self { gmsa_credential_spec_name, gmsa_credential_spec, run_as_user_name, host_process, position: _ } =
            self;
        gmsa_credential_spec_name.is_some()
            || gmsa_credential_spec.is_some()
            || run_as_user_name.is_some()
            || host_process.is_some()
    }
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

    /// The kind of the slots that this field of `spec` lists.
    fn of_field(field: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.field() == Some(field))
    }
}

/// Reads a list of containers, and keeps at most [`MAX_SLOTS`].
fn containers<'de, D: Deserializer<'de>>(input: D) -> Result<Containers, D::Error> {
    let mut all = fold(input, Containers::default(), |all, Object(container)| all.add(container))?;
    all.shrink();
    Ok(all)
}

impl Pod {
    /// Reads a Pod.
    ///
    /// # Errors
    /// Where the string is not JSON, or a known field has the wrong type.
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
        self.spec.lists().iter().map(|(_, containers)| containers.names.len()).sum::<usize>() >= MAX_SLOTS
    }

    /// Every slot of the pod, in the order in which they are decided: the pod, then its containers, its init
    /// containers and its ephemeral containers.
    pub fn slots(&self) -> impl Iterator<Item = Slot<'_>> {
        let spec = &self.spec;
        let options = spec.security_context.as_ref().and_then(|context| context.windows_options.as_ref());
        let pod = slot_of(SlotKind::Pod, 0, self.name(), options.map(|Object(options)| options));
        let containers = spec.lists().into_iter().flat_map(|(kind, list)| {
            let (mut options, mut fields) = (list.options.iter().peekable(), list.tickets.iter().peekable());
            list.names.iter().enumerate().map(move |(index, owner)| {
                let options = options.next_if(|options| usize::from(options.position) == index);
                let tickets = fields.next_if(|(position, _)| usize::from(*position) == index);
                let tickets = tickets.map(|(_, fields)| *fields).unwrap_or_default();
                Slot { tickets, ..slot_of(kind, index, owner, options) }
            })
        });
        std::iter::once(pod).chain(containers)
    }

    /// The pod's name; its generateName before it has a name; otherwise empty.
    pub fn name(&self) -> &str {
        let name = self.metadata.name.as_deref().filter(|name| !name.is_empty());
        name.or(self.metadata.generate_name.as_deref()).unwrap_or_default()
    }

    /// The name of the pod's service account; `default` if unset. Not validated.
    pub fn service_account(&self) -> &str {
        self.spec.service_account_name.as_deref().filter(|name| !name.is_empty()).unwrap_or("default")
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
        self.spec.os.as_ref().and_then(|os| os.name.as_deref())
    }

    /// Whether the pod stays on Windows nodes: the scheduler reads neither `spec.os` nor, for this, preferences.
    pub(super) fn keeps_to_windows(&self) -> bool {
        let PodSpec { node_selector, affinity, .. } = &*self.spec;
        node_selector.are_windows() || affinity.are_windows() || self.pins_build()
    }

    /// Whether it is for an operating system no node has.
    pub(super) fn fits_no_node(&self) -> bool {
        self.spec.node_selector.are_none() || self.spec.affinity.are_none()
    }

    /// Whether the pod says which build of Windows it is for, or leaves that to a runtime class.
    pub fn pins_build(&self) -> bool {
        let PodSpec { node_selector, affinity, runtime_class_name, .. } = &*self.spec;
        let runtime_class = runtime_class_name.as_deref().filter(|class| !class.is_empty());
        node_selector.are_of_a_build() || affinity.are_of_a_build() || runtime_class.is_some()
    }

    /// The host name that the pod's author chose for it.
    pub fn hostname(&self) -> Option<&str> {
        let PodSpec { hostname, hostname_override, .. } = &*self.spec;
        let names = [hostname_override, hostname].map(Option::as_deref);
        names.into_iter().flatten().find(|name| !name.is_empty())
    }

    /// The credential spec that the pod's author asks tickets of ([`tickets::ANNOTATION`]). Not validated.
    pub fn tickets(&self) -> Option<&str> {
        self.metadata.annotations.tickets.as_deref()
    }

    /// What the pod's author asks `/mutate` for: each verb with the credential spec in its annotation ([`tickets::Product::annotation`]). Not validated.
    pub fn asks(&self) -> impl Iterator<Item = (Verb, &str)> {
        let keytab = self.metadata.annotations.keytab.as_deref();
        self.tickets().map(|name| (Verb::Use, name)).into_iter().chain(keytab.map(|name| (Verb::Export, name)))
    }

    /// The volumes, as far as tickets and keytabs go.
    pub fn volumes(&self) -> &Volumes {
        &self.spec.volumes
    }

    /// The verbs of its tokens, with the names after [`tickets::Product::audience`] in their audiences, each once. Not validated.
    pub fn tokens(&self) -> impl Iterator<Item = (Verb, &str)> {
        self.spec.volumes.tokens()
    }

    /// The names in [`Self::tokens`]. May repeat.
    pub fn audiences(&self) -> impl Iterator<Item = &str> {
        self.tokens().map(|(_, name)| name)
    }

    /// The credential specs that it asks tickets or a keytab of, by its annotations and by the audiences of its tokens. May repeat; not validated.
    pub fn asks_tickets_of(&self) -> impl Iterator<Item = &str> {
        self.wants().map(|(_, name)| name)
    }

    /// The same with their verbs.
    pub fn wants(&self) -> impl Iterator<Item = (Verb, &str)> {
        self.asks().chain(self.tokens())
    }

    /// Whether it names the group of the files in its volumes (`fsGroup`).
    pub(crate) fn has_fs_group(&self) -> bool {
        self.spec.security_context.as_ref().is_some_and(|context| context.fs_group.is_some())
    }

    /// Whether the pod is for Windows: by `spec.os`, its node selector or its required node affinity.
    pub fn is_for_windows(&self) -> bool {
        self.is_windows() || self.spec.node_selector.are_windows() || self.spec.affinity.are_windows()
    }

    /// Whether the pod's author asks for a random host name ([`RANDOM_HOSTNAME`]).
    pub fn asks_for_random_hostname(&self) -> bool {
        self.metadata.annotations.random_hostname.as_deref() == Some("true")
    }
}

fn slot_of<'p>(kind: SlotKind, index: usize, owner: &'p str, options: Option<&'p WindowsOptions>) -> Slot<'p> {
    Slot {
        kind,
        index,
        owner,
        name: options.and_then(|options| options.gmsa_credential_spec_name.as_deref()),
        contents: options.and_then(|options| options.gmsa_credential_spec.as_deref()),
        run_as_user: options.and_then(|options| options.run_as_user_name.as_deref()),
        host_process: options.and_then(|options| options.host_process).map(|Flag(value)| value),
        tickets: SidecarFields::default(),
    }
}
