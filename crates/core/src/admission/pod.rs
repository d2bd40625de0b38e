//! A Pod, as far as admission cares, and its slots.
//!
//! A slot is one place in a Pod that can carry `securityContext.windowsOptions`: the pod itself and every container of
//! every kind. [`Pod::slots`] is the only walk over them: code that lists the kinds of containers anywhere else is wrong.

use std::fmt;

use serde::Deserialize;

use super::review::{Object, Text, null_is_default};

mod carried;
mod placement;

pub use carried::Carried;
use placement::{Affinity, NodeSelector};

/// The parts of a `v1.Pod` that decisions rest on, borrowed from the request.
#[derive(Debug, Default, Deserialize)]
pub struct Pod<'a> {
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    metadata: Object<Metadata<'a>>,
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    spec: Object<Spec<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    generate_name: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    #[serde(borrow)]
    os: Option<Object<Os<'a>>>,
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    node_selector: NodeSelector<'a>,
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    affinity: Affinity<'a>,
    #[serde(borrow)]
    runtime_class_name: Option<Text<'a>>,
    #[serde(borrow)]
    hostname: Option<Text<'a>>,
    #[serde(borrow)]
    hostname_override: Option<Text<'a>>,
    #[serde(borrow)]
    service_account_name: Option<Text<'a>>,
    #[serde(borrow)]
    security_context: Option<Object<SecurityContext<'a>>>,
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    containers: Vec<Object<Container<'a>>>,
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    init_containers: Vec<Object<Container<'a>>>,
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    ephemeral_containers: Vec<Object<Container<'a>>>,
}

#[derive(Debug, Deserialize)]
struct Os<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Container<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    security_context: Option<Object<SecurityContext<'a>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SecurityContext<'a> {
    #[serde(borrow)]
    windows_options: Option<Object<WindowsOptions<'a>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WindowsOptions<'a> {
    #[serde(borrow)]
    gmsa_credential_spec_name: Option<Text<'a>>,
    #[serde(borrow)]
    gmsa_credential_spec: Option<Carried<'a>>,
    #[serde(borrow)]
    run_as_user_name: Option<Text<'a>>,
    host_process: Option<bool>,
}

/// What kind of place a slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlotKind {
    /// The pod's own security context.
    Pod,
    /// An entry of `spec.containers`.
    Container,
    /// An entry of `spec.initContainers`, sidecars included.
    InitContainer,
    /// An entry of `spec.ephemeralContainers`.
    EphemeralContainer,
}

impl SlotKind {
    /// The field of `spec` that lists the slots of this kind; `None` for the pod itself.
    #[must_use]
    pub fn field(self) -> Option<&'static str> {
        match self {
            Self::Pod => None,
            Self::Container => Some("containers"),
            Self::InitContainer => Some("initContainers"),
            Self::EphemeralContainer => Some("ephemeralContainers"),
        }
    }
}

impl fmt::Display for SlotKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pod => "pod",
            Self::Container => "container",
            Self::InitContainer => "init container",
            Self::EphemeralContainer => "ephemeral container",
        })
    }
}

/// One place in a Pod that can carry GMSA settings. An absent field and JSON null are `None`; an empty string is a value.
#[derive(Clone, Copy, Debug)]
pub struct Slot<'p> {
    /// What kind of place it is.
    pub kind: SlotKind,
    /// Its position in the list of its kind; 0 for the pod itself.
    pub index: usize,
    /// The container's name, or the pod's name, or where that is not given yet its generateName. Not validated.
    pub owner: &'p str,
    /// `windowsOptions.gmsaCredentialSpecName`. Not validated.
    pub name: Option<&'p str>,
    /// `windowsOptions.gmsaCredentialSpec`. Not validated.
    pub contents: Option<Carried<'p>>,
    /// `windowsOptions.runAsUserName`. Not validated.
    pub run_as_user: Option<&'p str>,
    /// `windowsOptions.hostProcess`
    pub host_process: Option<bool>,
}

impl<'p> Slot<'p> {
    /// Where its `windowsOptions` stand in the Pod, as a JSON Pointer (RFC 6901).
    #[must_use]
    pub fn pointer(&self) -> String {
        match self.kind.field() {
            None => "/spec/securityContext/windowsOptions".to_owned(),
            Some(list) => format!("/spec/{list}/{}/securityContext/windowsOptions", self.index),
        }
    }

    fn new(
        kind: SlotKind,
        index: usize,
        owner: &'p str,
        security_context: Option<&'p Object<SecurityContext<'_>>>,
    ) -> Self {
        let options = security_context.and_then(|context| context.windows_options.as_ref());
        Self {
            kind,
            index,
            owner,
            name: options.and_then(|options| as_str(options.gmsa_credential_spec_name.as_ref())),
            contents: options.and_then(|options| options.gmsa_credential_spec),
            run_as_user: options.and_then(|options| as_str(options.run_as_user_name.as_ref())),
            host_process: options.and_then(|options| options.host_process),
        }
    }
}

fn as_str<'p>(text: Option<&'p Text<'_>>) -> Option<&'p str> {
    text.map(|Text(text)| &**text)
}

impl Pod<'_> {
    /// Every slot of the pod, in the order in which the contract checks them: the pod, then its containers, its init
    /// containers and its ephemeral containers.
    pub fn slots(&self) -> impl Iterator<Item = Slot<'_>> {
        let spec = &self.spec;
        let pod = Slot::new(SlotKind::Pod, 0, self.name(), spec.security_context.as_ref());
        std::iter::once(pod)
            .chain(walk(SlotKind::Container, &spec.containers))
            .chain(walk(SlotKind::InitContainer, &spec.init_containers))
            .chain(walk(SlotKind::EphemeralContainer, &spec.ephemeral_containers))
    }

    /// The pod's name, or where it has none yet its generateName, or nothing.
    #[must_use]
    pub fn name(&self) -> &str {
        let name = as_str(self.metadata.name.as_ref()).filter(|name| !name.is_empty());
        name.or_else(|| as_str(self.metadata.generate_name.as_ref())).unwrap_or_default()
    }

    /// The name of the service account that the pod runs as: `default` where none is set. Not validated.
    #[must_use]
    pub fn service_account(&self) -> &str {
        as_str(self.spec.service_account_name.as_ref()).filter(|name| !name.is_empty()).unwrap_or("default")
    }

    /// Whether the pod says that it is for Linux (`spec.os.name`).
    #[must_use]
    pub fn is_linux(&self) -> bool {
        self.spec.os.as_ref().and_then(|os| as_str(os.name.as_ref())) == Some("linux")
    }

    /// Whether the pod says in some way that it is for Windows nodes: a preference of the scheduler does not count.
    #[must_use]
    pub fn keeps_to_windows(&self) -> bool {
        let spec = &self.spec;
        spec.os.as_ref().and_then(|os| as_str(os.name.as_ref())) == Some("windows")
            || spec.node_selector.is_windows()
            || spec.affinity.is_windows()
            || self.pins_build()
    }

    /// Whether the pod says which build of Windows it is for, or leaves that to a runtime class.
    #[must_use]
    pub fn pins_build(&self) -> bool {
        let class = as_str(self.spec.runtime_class_name.as_ref()).is_some_and(|class| !class.is_empty());
        class || self.spec.node_selector.has_build() || self.spec.affinity.has_build()
    }

    /// Whether the pod's author chose its host name.
    #[must_use]
    pub fn has_hostname(&self) -> bool {
        [&self.spec.hostname, &self.spec.hostname_override]
            .into_iter()
            .any(|hostname| as_str(hostname.as_ref()).is_some_and(|name| !name.is_empty()))
    }
}

fn walk<'p>(kind: SlotKind, containers: &'p [Object<Container<'_>>]) -> impl Iterator<Item = Slot<'p>> {
    containers.iter().enumerate().map(move |(index, container)| {
        let owner = as_str(container.name.as_ref()).unwrap_or_default();
        Slot::new(kind, index, owner, container.security_context.as_ref())
    })
}

/// A slot as a message names it: `container "web"`. The name comes from a pod: it is quoted, and cut where it is longer
/// than any valid name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotRef {
    kind: SlotKind,
    owner: Quoted,
}

impl From<&Slot<'_>> for SlotRef {
    fn from(slot: &Slot<'_>) -> Self {
        Self { kind: slot.kind, owner: Quoted::new(slot.owner) }
    }
}

impl fmt::Display for SlotRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.owner)
    }
}

/// A text from a pod, fit for a message: in quotes, control characters escaped, at most 253 characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quoted(String);

impl Quoted {
    /// The longest valid Kubernetes name.
    const MAX: usize = 253;

    /// Quotes a text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut chars = text.chars();
        let head: String = chars.by_ref().take(Self::MAX).collect();
        let cut = if chars.next().is_some() { "…" } else { "" };
        Self(format!("{head:?}{cut}"))
    }

    /// Escapes and cuts a text without putting it in quotes: for a kind, which the API server gives.
    #[must_use]
    pub fn bare(text: &str) -> Self {
        Self(text.chars().take(Self::MAX).flat_map(char::escape_debug).collect())
    }
}

impl fmt::Display for Quoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
