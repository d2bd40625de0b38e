//! A sidecar for tickets that was written by hand: whether its parts fit together, by what the agent reads and writes, not by their names.
//!
//! Invariant: where the annotation has the webhook inject the sidecar, the webhook itself says what does not fit.

use gmsa_core::{
    admission::pod::{
        Pod,
        tickets::{AUDIENCE, FOLDER, TOKEN_FILE},
    },
    diagnostic::{Diagnostic, Severity},
    quote::{NAME, quoted},
};
use k8s_openapi::api::core::v1::{self, Container, PodSpec, Volume, VolumeMount};
use serde::Deserialize as _;

use super::template::CheckedPod;
use crate::shared::rules;

/// What does not fit: the place in the pod, how bad it is, and why.
type Fault = (String, Severity, String);

fn error(at: &str, text: impl Into<String>) -> Fault {
    (at.to_owned(), Severity::Error, text.into())
}

fn warning(at: &str, text: impl Into<String>) -> Fault {
    (at.to_owned(), Severity::Warning, text.into())
}

/// A container, or an init container.
struct PodContainer<'p> {
    at: String,
    /// Its position among the init containers.
    init: Option<usize>,
    container: &'p Container,
    /// The words of its command line.
    words: Vec<&'p str>,
}

/// A mount, with its place.
type PlacedMount<'p> = (String, &'p VolumeMount);

pub(super) fn findings(checked: &CheckedPod<'_>, pod: &Pod) -> Vec<Diagnostic> {
    if pod.tickets().is_some() {
        return Vec::new();
    }
    // What the API server cannot read either has a finding of its own.
    let Some(spec) = v1::Pod::deserialize(&checked.pod.json).ok().and_then(|object| object.spec) else {
        return Vec::new();
    };
    let of_list = |list: &'static str| move |(index, container)| PodContainer::of(list, index, container);
    let init = spec.init_containers.iter().flatten().enumerate().map(of_list("initContainers"));
    let parts: Vec<PodContainer<'_>> =
        init.chain(spec.containers.iter().enumerate().map(of_list("containers"))).collect();
    let agents: Vec<&PodContainer<'_>> = parts.iter().filter(|part| part.is_agent()).collect();
    let (has_token, mut faults) = (pod.audiences().next().is_some(), Vec::new());
    if pod.is_for_windows() && (has_token || !agents.is_empty()) {
        faults.push(warning("/spec", "tickets are for Linux pods, and this pod is for Windows"));
    }
    if has_token && agents.is_empty() {
        let text = format!(
            "the pod has a token with the audience {AUDIENCE}NAME, and no container that runs `gmsa-tickets agent`"
        );
        faults.push(warning("/spec/volumes", text));
    }
    faults.extend(agents.iter().flat_map(|agent| agent.faults(&spec, &parts)));
    let finding =
        |(at, severity, text): Fault| checked.finding(&rules::TICKET_SIDECAR, &at, text).with_severity(severity);
    faults.into_iter().map(finding).collect()
}

impl<'p> PodContainer<'p> {
    fn of(list: &str, index: usize, container: &'p Container) -> Self {
        // A shell has all words in one.
        let separator = |word: &str| if word.contains("gmsa-tickets agent") { ' ' } else { '\0' };
        let words = container.command.iter().chain(&container.args).flatten();
        let words = words.flat_map(|word| word.split(separator(word))).collect();
        Self { at: format!("/spec/{list}/{index}"), init: (list != "containers").then_some(index), container, words }
    }

    /// Other programs have agents with a broker too.
    fn is_agent(&self) -> bool {
        let image = self.container.image.as_deref().unwrap_or_default();
        let is_ours = || image.contains("gmsa-tickets") || self.words.iter().any(|word| word.ends_with("gmsa-tickets"));
        let is_named = self.flag("credential-spec").is_some() || self.flag("broker").is_some() && is_ours();
        self.words.contains(&"agent") && is_named
    }

    fn flag(&self, name: &str) -> Option<&'p str> {
        self.words.iter().enumerate().find_map(|(index, word)| {
            let rest = word.strip_prefix("--")?.strip_prefix(name)?;
            if rest.is_empty() { self.words.get(index + 1).copied() } else { rest.strip_prefix('=') }
        })
    }

    fn mounts(&self) -> impl Iterator<Item = PlacedMount<'p>> {
        let mounts = self.container.volume_mounts.iter().flatten().enumerate();
        mounts.map(|(index, mount)| (format!("{}/volumeMounts/{index}", self.at), mount))
    }

    /// The mount at this path, or around it.
    fn mount_at(&self, path: &str) -> Option<PlacedMount<'p>> {
        let is_around = |mount: &VolumeMount| {
            let rest = path.strip_prefix(mount.mount_path.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.mounts().filter(|(_, mount)| is_around(mount)).max_by_key(|(_, mount)| mount.mount_path.len())
    }

    /// Its mount of this volume.
    fn mount_of(&self, volume: Option<&str>) -> Option<PlacedMount<'p>> {
        self.mounts().find(|(_, mount)| Some(&*mount.name) == volume)
    }

    /// The faults of a sidecar, and of the other containers that use its files.
    fn faults(&self, spec: &PodSpec, parts: &[Self]) -> Vec<Fault> {
        let lacks = |flag: &&str| self.flag(flag).is_none();
        let missing = ["credential-spec", "broker", "broker-ca"].into_iter().filter(lacks);
        let mut faults: Vec<Fault> =
            missing.map(|flag| error(&self.at, format!("the agent ends at once without --{flag}"))).collect();
        faults.extend(self.token(spec));
        let folder = self.flag("folder").unwrap_or(FOLDER);
        let tickets = self.mount_at(folder);
        let in_memory = |mount: &VolumeMount| volume_of(spec, mount)?.empty_dir.as_ref()?.medium.as_deref();
        faults.extend(match &tickets {
            None => Some(error(
                &self.at,
                format!("the agent mounts no volume at {folder}, into which it writes the tickets"),
            )),
            Some((at, mount)) if mount.read_only == Some(true) => {
                Some(error(at, format!("the agent writes the tickets into {folder}, which it mounts read-only")))
            }
            Some((at, mount)) if in_memory(mount) != Some("Memory") => {
                Some(warning(at, "the tickets are in a volume that is not an emptyDir in memory"))
            }
            Some(_) => None,
        });
        let has_group = spec.security_context.as_ref().is_some_and(|context| context.fs_group.is_some());
        if self.flag("mode") == Some("0440") && !has_group {
            let text = "with --mode=0440 and without fsGroup, other users than root cannot read the tickets";
            faults.push(warning(&self.at, text));
        }
        let volume = tickets.map(|(_, mount)| &*mount.name);
        faults.extend(self.order(parts, volume));
        let others = parts.iter().filter(|part| part.at != self.at);
        if volume.is_some() && others.clone().all(|part| part.mount_of(volume).is_none()) {
            faults.push(error(&self.at, "no other container mounts the volume of the tickets"));
        }
        let token = self.mount_at(self.flag("token-file").unwrap_or(TOKEN_FILE)).map(|(_, mount)| &*mount.name);
        for part in others {
            if part.mount_of(token).is_some() {
                let text = "the token is for the sidecar alone, and this container mounts it too";
                faults.push(warning(&part.at, text));
            }
            faults.extend(part.reads(volume));
        }
        faults
    }

    /// The fault of the token that the agent shows.
    fn token(&self, spec: &PodSpec) -> Option<Fault> {
        let file = self.flag("token-file").unwrap_or(TOKEN_FILE);
        let Some((at, mount)) = self.mount_at(file) else {
            let text = format!("the agent mounts no volume at {file}, where it reads its token");
            return Some(error(&self.at, text));
        };
        let name = file.strip_prefix(mount.mount_path.trim_end_matches('/')).unwrap_or_default();
        let name = name.trim_start_matches('/');
        let projected = volume_of(spec, mount).and_then(|volume| volume.projected.as_ref());
        let sources = projected.into_iter().flat_map(|projected| projected.sources.iter().flatten());
        let mut tokens = sources.filter_map(|source| source.service_account_token.as_ref());
        let Some(token) = tokens.find(|token| token.path == name) else {
            let text = "the volume has no projected service account token with the path";
            return Some(error(&at, format!("{text} {name:?}, which the agent reads")));
        };
        let audience = token.audience.as_deref().unwrap_or_default();
        let right = format!("{AUDIENCE}{}", self.flag("credential-spec")?);
        let wrong = quoted(audience, NAME);
        let text = format!("the token has the audience {wrong}, and the agent asks for {right}");
        (audience != right).then(|| error(&at, text))
    }

    /// The faults of its place among the containers, which decides when the others start.
    fn order(&self, parts: &[Self], volume: Option<&str>) -> Vec<Fault> {
        let Some(index) = self.init else {
            let text = "the other containers start before there are tickets: make it the first init container, with restartPolicy: Always and a startupProbe";
            return vec![warning(&self.at, text)];
        };
        let mut faults = Vec::new();
        if self.container.restart_policy.as_deref() != Some("Always") {
            let text =
                "without restartPolicy: Always the pod waits for the end of this init container, which does not end";
            faults.push(error(&self.at, text));
        }
        if self.container.startup_probe.is_none() {
            let text = "without a startupProbe the other containers start before there are tickets";
            faults.push(warning(&self.at, text));
        }
        let mut earlier = parts.iter().filter(|part| part.init.is_some_and(|of| of < index));
        if earlier.any(|part| part.mount_of(volume).is_some()) {
            let text = "an init container before it reads the tickets, which are not there yet: make it the first one";
            faults.push(warning(&self.at, text));
        }
        faults
    }

    /// The fault of how another container reads the tickets.
    fn reads(&self, volume: Option<&str>) -> Option<Fault> {
        let (at, mount) = self.mount_of(volume)?;
        if [&mount.sub_path, &mount.sub_path_expr].into_iter().flatten().any(|path| !path.is_empty()) {
            let text =
                "a file that is mounted alone stays the same when the sidecar replaces it: mount the whole volume";
            return Some(error(&at, text));
        }
        if mount.read_only != Some(true) {
            return Some(warning(&at, "the container can replace the tickets: mount the volume read-only"));
        }
        let mut env = self.container.env.iter().flatten();
        let right = format!("{}/krb5cc", mount.mount_path.trim_end_matches('/'));
        let Some(cache) = env.clone().find(|variable| variable.name == "KRB5CCNAME") else {
            let is_set = env.any(|variable| variable.name == "KRB5_CONFIG") || self.container.env_from.is_some();
            let text = format!("the container does not set KRB5CCNAME: FILE:{right}");
            return (!is_set).then(|| warning(&at, text));
        };
        let value = cache.value.as_deref()?;
        let text = format!("KRB5CCNAME is {}, and the tickets are in FILE:{right}", quoted(value, NAME));
        (value.strip_prefix("FILE:").unwrap_or(value) != right).then(|| error(&at, text))
    }
}

/// The volume of a mount.
fn volume_of<'p>(spec: &'p PodSpec, mount: &VolumeMount) -> Option<&'p Volume> {
    spec.volumes.iter().flatten().find(|volume| volume.name == mount.name)
}
