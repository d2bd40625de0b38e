//! What a Pod says about tickets for Linux pods: the audiences of its projected tokens, the volumes of the sidecar, and what each container
//! mounts and sets.
//!
//! Invariants: of the audiences, at most one more than a pod may name is kept; a container costs one byte.

use serde::{Deserialize, Deserializer};

use crate::{
    admission::MAX_SPECS_PER_POD,
    json::{Flag, Object, Text, Texts, fold, null_is_default},
};

/// The annotation of a pod that asks `/mutate` for the sidecar: the name of a credential spec.
pub const ANNOTATION: &str = "gmsa-webhook/tickets";

/// The name of the sidecar, and of the volume into which it writes the tickets.
pub const SIDECAR: &str = "gmsa-tickets";

/// The name of the volume with the sidecar's token.
pub const TOKEN_VOLUME: &str = "gmsa-tickets-token";

/// The audience of a token that the broker takes is this, followed by the name of a credential spec.
pub const AUDIENCE: &str = "gmsa-tickets/";

/// Where the containers find the tickets.
pub const FOLDER: &str = "/var/run/gmsa";

/// The variable that names the credential cache.
pub const CACHE_VARIABLE: &str = "KRB5CCNAME";

/// The variable that lists the files of the Kerberos configuration.
pub const CONFIGURATION_VARIABLE: &str = "KRB5_CONFIG";

/// The volumes of a pod, as far as tickets go.
#[derive(Debug, Default)]
pub struct Volumes {
    /// Whether the pod has any volume.
    pub are_some: bool,
    /// Whether the volume [`SIDECAR`] is in memory; `None` where there is no such volume.
    pub is_in_memory: Option<bool>,
    /// What follows [`AUDIENCE`] in the audience of the token that is all of [`TOKEN_VOLUME`]; empty where the volume is another, `None` where there is none.
    pub token: Option<Box<str>>,
    audiences: Audiences,
}

impl Volumes {
    /// What follows [`AUDIENCE`] in the audiences of the pod's tokens, each once. Not validated.
    pub fn audiences(&self) -> impl Iterator<Item = &str> {
        self.audiences.0.iter()
    }

    fn add(&mut self, Volume { name, empty_dir, projected }: Volume) {
        self.are_some = true;
        let Sources { count, audiences } = projected.map(|Object(projected)| projected.sources).unwrap_or_default();
        match name.as_deref() {
            Some(SIDECAR) => self.is_in_memory = Some(empty_dir.is_some_and(|Object(volume)| volume.is_in_memory())),
            Some(TOKEN_VOLUME) => {
                let only = audiences.0.iter().next().filter(|_| count == 1);
                self.token = Some(Box::from(only.unwrap_or_default()));
            }
            _ => {}
        }
        audiences.0.iter().for_each(|name| self.audiences.add(name));
    }
}

/// Reads the volumes of a pod.
pub(super) fn volumes<'de, D: Deserializer<'de>>(input: D) -> Result<Volumes, D::Error> {
    let mut all = fold(input, Volumes::default(), |all: &mut Volumes, Object(volume)| all.add(volume))?;
    all.audiences.0.shrink();
    Ok(all)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Volume {
    name: Option<Text>,
    empty_dir: Option<Object<EmptyDir>>,
    projected: Option<Object<Projected>>,
}

#[derive(Deserialize)]
pub(super) struct EmptyDir {
    medium: Option<Text>,
}

impl EmptyDir {
    pub fn is_in_memory(&self) -> bool {
        self.medium.as_deref() == Some("Memory")
    }
}

#[derive(Deserialize)]
struct Projected {
    #[serde(default, deserialize_with = "sources")]
    sources: Sources,
}

#[derive(Default)]
struct Sources {
    count: usize,
    audiences: Audiences,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Source {
    #[serde(default, deserialize_with = "null_is_default")]
    service_account_token: Object<Token>,
}

#[derive(Default, Deserialize)]
struct Token {
    audience: Option<Text>,
}

fn sources<'de, D: Deserializer<'de>>(input: D) -> Result<Sources, D::Error> {
    fold(input, Sources::default(), |all: &mut Sources, Object(source): Object<Source>| {
        all.count += 1;
        let audience = source.service_account_token.audience.as_deref();
        all.audiences.add_of(audience.unwrap_or_default());
    })
}

/// Names that follow [`AUDIENCE`], without repetitions.
#[derive(Debug, Default)]
struct Audiences(Texts);

impl Audiences {
    fn add_of(&mut self, audience: &str) {
        audience.strip_prefix(AUDIENCE).into_iter().for_each(|name| self.add(name));
    }

    fn add(&mut self, name: &str) {
        if self.0.len() <= MAX_SPECS_PER_POD && self.0.iter().all(|known| known != name) {
            self.0.push(name);
        }
    }
}

/// What a container says about tickets: a set of the constants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TicketFields(u8);

impl TicketFields {
    /// It has environment variables.
    pub const ENV: Self = Self(1);
    /// It has mounts.
    pub const MOUNTS: Self = Self(1 << 1);
    /// It sets [`CACHE_VARIABLE`].
    pub const CACHE: Self = Self(1 << 2);
    /// It sets [`CONFIGURATION_VARIABLE`].
    pub const CONFIGURATION: Self = Self(1 << 3);
    /// It mounts the tickets in [`FOLDER`], read-only.
    pub const TICKETS: Self = Self(1 << 4);
    /// It mounts [`TOKEN_VOLUME`].
    pub const TOKEN: Self = Self(1 << 5);
    /// It mounts the tickets in another way, or something else in their folder.
    pub const OTHER: Self = Self(1 << 6);

    /// Whether it has one of those in `fields`.
    pub fn has(self, fields: Self) -> bool {
        self.0 & fields.0 != 0
    }

    /// Together with others.
    pub fn and(self, fields: Self) -> Self {
        Self(self.0 | fields.0)
    }
}

#[derive(Deserialize)]
struct EnvVar {
    name: Option<Text>,
}

pub(super) fn env<'de, D: Deserializer<'de>>(input: D) -> Result<TicketFields, D::Error> {
    fold(input, TicketFields::default(), |all: &mut TicketFields, Object(variable): Object<EnvVar>| {
        *all = all.and(TicketFields::ENV).and(match variable.name.as_deref() {
            Some(CACHE_VARIABLE) => TicketFields::CACHE,
            Some(CONFIGURATION_VARIABLE) => TicketFields::CONFIGURATION,
            _ => TicketFields::default(),
        });
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VolumeMount {
    name: Option<Text>,
    mount_path: Option<Text>,
    read_only: Option<Flag>,
    sub_path: Option<Text>,
    sub_path_expr: Option<Text>,
}

pub(super) fn volume_mounts<'de, D: Deserializer<'de>>(input: D) -> Result<TicketFields, D::Error> {
    fold(input, TicketFields::default(), |all: &mut TicketFields, Object(mount): Object<VolumeMount>| {
        *all = all.and(TicketFields::MOUNTS).and(mount.fields());
    })
}

impl VolumeMount {
    fn fields(&self) -> TicketFields {
        // A file that is mounted alone would stay the same when the sidecar replaces it.
        let is_part = [&self.sub_path, &self.sub_path_expr].into_iter().flatten().any(|path| !path.is_empty());
        let is_read_only = self.read_only == Some(Flag(true));
        let is_there = self.mount_path.as_deref().is_some_and(is_folder);
        match self.name.as_deref() {
            Some(TOKEN_VOLUME) => TicketFields::TOKEN,
            Some(SIDECAR) if is_there && is_read_only && !is_part => TicketFields::TICKETS,
            name if is_there || name == Some(SIDECAR) => TicketFields::OTHER,
            _ => TicketFields::default(),
        }
    }
}

/// Whether a path leads to [`FOLDER`], however it is written: `/var/run` is a link to `/run` in most images.
fn is_folder(path: &str) -> bool {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    matches!(*parts, ["var", "run", "gmsa"] | ["run", "gmsa"])
}
