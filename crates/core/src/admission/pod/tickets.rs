//! A Pod's fields about tickets and keytabs for Linux pods: the audiences of its projected tokens, the volumes of the sidecar, and what each
//! container mounts and sets.
//!
//! Invariants: of the audiences, at most one more than a pod may name is kept; a container that says nothing costs nothing.

use serde::{Deserialize, Deserializer, de::IgnoredAny};

use crate::{
    admission::MAX_SPECS_PER_POD,
    credspec::{SpecName, Verb},
    json::{Flag, Object, Text, Texts, fold, null_is_default},
};

/// The annotation of a pod that asks `/mutate` for the sidecar: the name of a credential spec.
pub const ANNOTATION: &str = "gmsa-webhook/tickets";

/// The name of the sidecar, and of the volume into which it writes the tickets.
pub const SIDECAR: &str = "gmsa-tickets";

/// Where the sidecar reads its token, unless its arguments say otherwise.
pub const TOKEN_FILE: &str = "/var/run/secrets/gmsa-tickets/token";

/// The same for a keytab.
pub const KEYTAB_TOKEN_FILE: &str = "/var/run/secrets/gmsa-keytab/token";

/// The path of the token in [`Product::token_volume`].
pub const TOKEN_PATH: &str = "token";

/// Where the sidecar writes the tickets, and the other containers find them.
pub const FOLDER: &str = "/var/run/gmsa";

/// The annotation of a pod that asks `/mutate` for a keytab: the name of a credential spec. The credential spec has it as well.
pub use crate::credspec::services::KEYTAB;

/// The product that a Linux pod gets by a verb. It asks by an annotation, and has a token for it alone.
#[derive(Debug)]
pub struct Product {
    /// In messages.
    pub name: &'static str,
    /// The same for one pod.
    pub of_a_pod: &'static str,
    /// The same for a pod that has it.
    pub of_this_pod: &'static str,
    /// The annotation of a pod that asks for it.
    pub annotation: &'static str,
    /// The audience of a token that the broker takes for it is this, followed by the name of a credential spec.
    pub audience: &'static str,
    /// The name of the volume with the sidecar's token for it.
    pub token_volume: &'static str,
    /// What a container says that mounts this volume.
    pub(in crate::admission) token_mount: SidecarFields,
    /// The variable that names to a container what the sidecar writes, and the file in [`FOLDER`].
    pub variable: &'static str,
    pub file: &'static str,
    /// What a container says that sets the variable.
    pub set: SidecarFields,
    /// What it says that sets it to something else; without [`Self::set`]: it may set it by `envFrom`.
    pub other: SidecarFields,
}

impl Product {
    /// The annotation, as a place in a pod ([`Denial::InvalidSpecName`](crate::admission::Denial::InvalidSpecName)).
    pub fn annotation_place(&self) -> String {
        format!("annotation {}", self.annotation)
    }

    /// A token's audience, likewise.
    pub fn audience_place(&self) -> String {
        format!("audience {}NAME", self.audience)
    }
}

static TICKETS: Product = Product {
    name: "tickets",
    of_a_pod: "tickets",
    of_this_pod: "the tickets",
    annotation: ANNOTATION,
    audience: "gmsa-tickets/",
    token_volume: "gmsa-tickets-token",
    token_mount: SidecarFields::TOKEN,
    variable: "KRB5CCNAME",
    file: "krb5cc",
    set: SidecarFields(1 << 2),
    other: SidecarFields(1 << 7),
};

static KEYTABS: Product = Product {
    name: "keytabs",
    of_a_pod: "a keytab",
    of_this_pod: "the keytab",
    annotation: KEYTAB,
    audience: "gmsa-keytab/",
    token_volume: "gmsa-keytab-token",
    token_mount: SidecarFields::KEYTAB_TOKEN,
    variable: "KRB5_KTNAME",
    file: "keytab",
    set: SidecarFields(1 << 8),
    other: SidecarFields(1 << 10),
};

impl Verb {
    /// What a Linux pod gets by it.
    #[must_use]
    pub fn product(self) -> &'static Product {
        match self {
            Self::Use => &TICKETS,
            Self::Export => &KEYTABS,
        }
    }
}

/// The volumes of a pod, as far as tickets and keytabs go.
#[derive(Debug, Default)]
pub struct Volumes {
    /// Whether the pod has any.
    pub are_some: bool,
    /// Whether the volume [`SIDECAR`] is in memory; `None` where there is no such volume.
    pub in_memory: Option<bool>,
    /// By verb, the name of the credential spec in the audience of [`Product::token_volume`]; `None` where there is no such volume, empty where it has
    /// anything but one source, a token with the path [`TOKEN_PATH`] and an audience that begins with [`Product::audience`].
    token: [Option<Box<str>>; 2],
    /// The audiences of all volumes that begin with [`Product::audience`] of some verb, without repetitions.
    audiences: Texts,
}

impl Volumes {
    /// Whether one of them projects a token for this credential spec and verb.
    #[must_use]
    pub fn project(&self, verb: Verb, spec: &SpecName) -> bool {
        self.tokens().any(|token| token == (verb, spec.as_str()))
    }

    /// The verbs and names in their audiences.
    pub(super) fn tokens(&self) -> impl Iterator<Item = (Verb, &str)> {
        self.audiences.iter().filter_map(verb_and_name)
    }

    /// The name of the credential spec in the audience of [`Product::token_volume`], empty where that volume has anything else.
    pub(in crate::admission) fn token(&self, verb: Verb) -> Option<&str> {
        Verb::ALL.into_iter().zip(&self.token).find_map(|(of, name)| name.as_deref().filter(|_| of == verb))
    }
}

/// The verb of an audience, and the name after [`Product::audience`].
fn verb_and_name(audience: &str) -> Option<(Verb, &str)> {
    Verb::ALL.into_iter().find_map(|verb| Some((verb, audience.strip_prefix(verb.product().audience)?)))
}

/// Reads the volumes of a pod.
///
/// # Errors
/// If they are no list of volumes.
pub fn volumes<'de, D: Deserializer<'de>>(input: D) -> Result<Volumes, D::Error> {
    let mut all = fold(input, Volumes::default(), |all: &mut Volumes, Object(volume): Object<Volume>| {
        let TokenSources { audiences, count, has_token_path } = &volume.projected.sources;
        all.are_some = true;
        if volume.name.as_deref() == Some(SIDECAR) {
            all.in_memory = Some(volume.empty_dir.medium.as_deref() == Some("Memory"));
        }
        audiences.iter().for_each(|audience| push(&mut all.audiences, audience));
        for (verb, token) in Verb::ALL.into_iter().zip(&mut all.token) {
            if volume.name.as_deref() == Some(verb.product().token_volume) {
                let only = audiences.iter().next().filter(|_| *count == 1 && *has_token_path);
                let name = only.and_then(|audience| audience.strip_prefix(verb.product().audience));
                *token = Some(Box::from(name.unwrap_or_default()));
            }
        }
    })?;
    all.audiences.shrink();
    Ok(all)
}

/// Adds a name that is not there yet, unless there are too many.
fn push(names: &mut Texts, name: &str) {
    if names.len() <= MAX_SPECS_PER_POD && names.iter().all(|known| known != name) {
        names.push(name);
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Volume {
    name: Option<Text>,
    #[serde(default, deserialize_with = "null_is_default")]
    empty_dir: Object<EmptyDir>,
    #[serde(default, deserialize_with = "null_is_default")]
    projected: Object<Projected>,
}

#[derive(Default, Deserialize)]
struct EmptyDir {
    medium: Option<Text>,
}

#[derive(Default, Deserialize)]
struct Projected {
    #[serde(default, deserialize_with = "sources")]
    sources: TokenSources,
}

/// The sources of a projected volume.
#[derive(Default)]
struct TokenSources {
    /// The audiences of its tokens that begin with [`Product::audience`] of some verb.
    audiences: Texts,
    count: usize,
    /// Whether a token is at [`TOKEN_PATH`].
    has_token_path: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProjectedSource {
    #[serde(default, deserialize_with = "null_is_default")]
    service_account_token: Object<Token>,
}

#[derive(Default, Deserialize)]
struct Token {
    audience: Option<Text>,
    path: Option<Text>,
}

fn sources<'de, D: Deserializer<'de>>(input: D) -> Result<TokenSources, D::Error> {
    fold(input, TokenSources::default(), |all: &mut TokenSources, Object(source): Object<ProjectedSource>| {
        let Token { audience, path } = &*source.service_account_token;
        if let Some(audience) = audience.as_deref().filter(|audience| verb_and_name(audience).is_some()) {
            push(&mut all.audiences, audience);
        }
        all.count += 1;
        all.has_token_path |= path.as_deref() == Some(TOKEN_PATH);
    })
}

/// A container's fields about tickets and keytabs: a set of the constants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SidecarFields(u16);

impl SidecarFields {
    /// It has environment variables.
    pub const ENV: Self = Self(1);
    /// It has mounts.
    pub const MOUNTS: Self = Self(1 << 1);
    /// It sets `KRB5_CONFIG`. The free bits are those of each [`Product`].
    pub const CONFIGURATION: Self = Self(1 << 3);
    /// It mounts the tickets in [`FOLDER`], read-only; of a container with a token, it ends: see [`Self::is_for_sidecar`].
    pub const TICKETS: Self = Self(1 << 4);
    /// It mounts the volume with the token for tickets.
    pub const TOKEN: Self = Self(1 << 5);
    /// It mounts the tickets in another way, or something else in their folder.
    pub const OTHER: Self = Self(1 << 6);
    /// It mounts the volume with the token for a keytab.
    pub const KEYTAB_TOKEN: Self = Self(1 << 9);

    pub fn has(self, field: Self) -> bool {
        self.0 & field.0 != 0
    }

    /// Whether a container with these mounts a token, and is one that never ends. No sidecar mounts the tickets read-only, so the bit for that says
    /// whether it ends.
    pub fn is_for_sidecar(self) -> bool {
        self.has(Self::TOKEN.and(Self::KEYTAB_TOKEN)) && !self.has(Self::TICKETS)
    }

    /// The parts of a container with these variables and mounts.
    pub(super) fn of_container(env: Self, has_env_from: bool, mounts: Self, is_restarted: bool) -> Self {
        let may_be_set = Verb::ALL.map(Verb::product).into_iter().filter(|own| has_env_from && !env.has(own.set));
        let env = may_be_set.fold(env, |all, own| all.and(own.other));
        let has_token = mounts.has(Self::TOKEN.and(Self::KEYTAB_TOKEN));
        let ends = if has_token && !is_restarted { Self::TICKETS } else { Self::default() };
        env.and(mounts).and(ends)
    }

    pub(super) const fn and(self, fields: Self) -> Self {
        Self(self.0 | fields.0)
    }
}

#[derive(Deserialize)]
struct EnvVar {
    name: Option<Text>,
    value: Option<Text>,
}

/// Whether a container takes environment variables from other objects.
pub(super) fn env_from<'de, D: Deserializer<'de>>(input: D) -> Result<bool, D::Error> {
    fold(input, false, |has_some: &mut bool, IgnoredAny| *has_some = true)
}

/// Reads the environment variables of a container.
pub(super) fn env<'de, D: Deserializer<'de>>(input: D) -> Result<SidecarFields, D::Error> {
    // A cache or a keytab without a type is a file.
    let own = |name: &str, value: Option<&str>| {
        let Product { file, set, other, .. } =
            *Verb::ALL.map(Verb::product).into_iter().find(|own| own.variable == name)?;
        let is_right = |value: &str| value.strip_prefix("FILE:").unwrap_or(value) == format!("{FOLDER}/{file}");
        Some(if value.is_some_and(is_right) { set } else { set.and(other) })
    };
    fold(input, SidecarFields::default(), |all: &mut SidecarFields, Object(variable): Object<EnvVar>| {
        *all = all.and(SidecarFields::ENV).and(match variable.name.as_deref() {
            Some("KRB5_CONFIG") => SidecarFields::CONFIGURATION,
            name => name.and_then(|name| own(name, variable.value.as_deref())).unwrap_or_default(),
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

/// Reads the mounts of a container.
pub(super) fn volume_mounts<'de, D: Deserializer<'de>>(input: D) -> Result<SidecarFields, D::Error> {
    fold(input, SidecarFields::default(), |all: &mut SidecarFields, Object(mount): Object<VolumeMount>| {
        // A file that is mounted alone would stay the same when the sidecar replaces it.
        let is_whole = [&mount.sub_path, &mount.sub_path_expr].into_iter().flatten().all(|path| path.is_empty());
        let depth = mount.mount_path.as_deref().and_then(depth_in_folder);
        let is_right = depth == Some(0) && is_whole && mount.read_only == Some(Flag(true));
        let name = mount.name.as_deref();
        let token = Verb::ALL.map(Verb::product).into_iter().find(|own| name == Some(own.token_volume));
        let fields = match token {
            Some(own) => own.token_mount,
            None if name == Some(SIDECAR) && is_right => SidecarFields::TICKETS,
            None if name == Some(SIDECAR) || depth.is_some() => SidecarFields::OTHER,
            None => SidecarFields::default(),
        };
        *all = all.and(SidecarFields::MOUNTS).and(fields);
    })
}

/// How deep in [`FOLDER`] a path is, however it is written; 0 is the folder itself. `/var/run` is a link to `/run` in most images.
fn depth_in_folder(path: &str) -> Option<usize> {
    let mut parts = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    let parts = parts.strip_prefix(&["var"]).filter(|rest| rest.first() == Some(&"run")).unwrap_or(&parts);
    Some(parts.strip_prefix(&["run", "gmsa"])?.len())
}
