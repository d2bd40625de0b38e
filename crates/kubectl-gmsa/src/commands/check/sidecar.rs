//! A sidecar for tickets that was written by hand: whether its parts fit together, by what the agent reads and writes, not by their names.
//!
//! Invariant: where the annotation has the webhook inject the sidecar, the webhook itself says what does not fit.

use gmsa_core::{
    admission::pod::{
        Pod, Slot, SlotKind,
        tickets::{AUDIENCE, FOLDER, TOKEN_FILE},
    },
    diagnostic::{Diagnostic, Severity},
    quote::{NAME, quoted},
};
use serde_json::Value;

use super::template::CheckedPod;
use crate::shared::rules;

/// What does not fit: the place in the pod, how bad it is, and why.
type Fault = (String, Severity, String);

/// A container of the pod, as JSON.
struct PodContainer<'p> {
    slot: Slot<'p>,
    at: String,
    json: &'p Value,
    /// The words of its command line.
    words: Vec<&'p str>,
}

/// A folder of a container that is in a volume.
struct Mounted<'p> {
    at: String,
    /// The mount.
    json: &'p Value,
    volume: Option<&'p Value>,
    /// The place of the volume in the container.
    path: &'p str,
}

pub(super) fn findings(checked: &CheckedPod<'_>, pod: &Pod) -> Vec<Diagnostic> {
    let json = &checked.pod.json;
    let parts: Vec<PodContainer<'_>> = pod.slots().filter_map(|slot| PodContainer::of(json, slot)).collect();
    let mut faults = Vec::new();
    let is_wanted = pod.audiences().next().is_some() || parts.iter().any(PodContainer::is_agent);
    if is_wanted && pod.tickets().is_none() {
        if pod.is_for_windows() {
            faults.push((
                "/spec".to_owned(),
                Severity::Warning,
                "tickets are for Linux pods, and this pod is for Windows".to_owned(),
            ));
        }
        let agents = || parts.iter().filter(|part| part.is_agent());
        if agents().next().is_none() {
            let text = format!(
                "the pod has a token with the audience {AUDIENCE}NAME, and no container that runs `gmsa-tickets agent`"
            );
            faults.push(("/spec/volumes".to_owned(), Severity::Warning, text));
        }
        agents().for_each(|agent| faults.extend(agent.faults(json, &parts)));
    }
    let finding =
        |(at, severity, text): Fault| checked.finding(&rules::TICKET_SIDECAR, &at, text).with_severity(severity);
    faults.into_iter().map(finding).collect()
}

impl<'p> PodContainer<'p> {
    fn of(pod: &'p Value, slot: Slot<'p>) -> Option<Self> {
        let at = format!("/spec/{}/{}", slot.kind.field()?, slot.index);
        let json = pod.pointer(&at)?;
        let list = |key: &str| json.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        // A shell has all words in one.
        let words = list("command").chain(list("args"));
        let words =
            words.flat_map(|word| if word.contains("gmsa-tickets agent") { word.split(' ') } else { word.split('\0') });
        Some(Self { slot, at, json, words: words.collect() })
    }

    fn is_agent(&self) -> bool {
        self.words.contains(&"agent") && (self.flag("credential-spec").is_some() || self.flag("broker").is_some())
    }

    fn flag(&self, name: &str) -> Option<&'p str> {
        self.words.iter().enumerate().find_map(|(index, word)| {
            let rest = word.strip_prefix("--")?.strip_prefix(name)?;
            if rest.is_empty() { self.words.get(index + 1).copied() } else { rest.strip_prefix('=') }
        })
    }

    /// The volume that is mounted at this path, or around it.
    fn mounted(&self, pod: &'p Value, path: &str) -> Option<Mounted<'p>> {
        let mounts = self.json.get("volumeMounts")?.as_array()?.iter().enumerate();
        let inside = mounts.filter_map(|(index, json)| {
            let folder = json.get("mountPath")?.as_str()?.trim_end_matches('/');
            let is_around = path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            is_around.then_some((folder, index, json))
        });
        let (path, index, json) = inside.max_by_key(|(folder, ..)| folder.len())?;
        let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array);
        let volume = volumes.into_iter().flatten().find(|volume| volume.get("name") == json.get("name"));
        Some(Mounted { at: format!("{}/volumeMounts/{index}", self.at), json, volume, path })
    }

    /// Whether it has a volume of this name.
    fn mounts(&self, name: Option<&Value>) -> bool {
        let mounts = self.json.get("volumeMounts").and_then(Value::as_array);
        mounts.into_iter().flatten().any(|mount| mount.get("name") == name)
    }

    /// The faults of a sidecar, and of the other containers about it.
    fn faults(&self, pod: &'p Value, parts: &[Self]) -> Vec<Fault> {
        let here = |severity, text: &str| Some((self.at.clone(), severity, text.to_owned()));
        let mut faults: Vec<Fault> = ["credential-spec", "broker", "broker-ca"]
            .into_iter()
            .filter(|flag| self.flag(flag).is_none())
            .filter_map(|flag| here(Severity::Error, &format!("the agent ends at once without --{flag}")))
            .collect();
        faults.extend(self.token(pod));
        let folder = self.flag("folder").unwrap_or(FOLDER);
        let tickets = self.mounted(pod, folder);
        faults.extend(match &tickets {
            None => here(
                Severity::Error,
                &format!("the agent mounts no volume at {folder}, into which it writes the tickets"),
            ),
            Some(Mounted { at, json, .. }) if json.get("readOnly") == Some(&Value::Bool(true)) => Some((
                at.clone(),
                Severity::Error,
                format!("the agent writes the tickets into {folder}, which it mounts read-only"),
            )),
            Some(Mounted { at, volume, .. })
                if volume.and_then(|of| of.pointer("/emptyDir/medium")) != Some(&Value::from("Memory")) =>
            {
                Some((
                    at.clone(),
                    Severity::Warning,
                    "the tickets are in a volume that is not an emptyDir in memory".to_owned(),
                ))
            }
            Some(_) => None,
        });
        let has_group = pod.pointer("/spec/securityContext/fsGroup").is_some();
        faults.extend(
            (self.flag("mode") == Some("0440") && !has_group)
                .then(|| {
                    here(
                        Severity::Warning,
                        "with --mode=0440 and without fsGroup, other users than root cannot read the tickets",
                    )
                })
                .flatten(),
        );
        let volume = tickets.as_ref().and_then(|tickets| tickets.json.get("name"));
        faults.extend(self.order(parts, volume));
        let others =
            || parts.iter().filter(|part| part.at != self.at && part.slot.kind != SlotKind::EphemeralContainer);
        if tickets.is_some() && !others().any(|part| part.mounts(volume)) {
            faults.extend(here(Severity::Error, "no other container mounts the volume of the tickets"));
        }
        let token =
            self.mounted(pod, self.flag("token-file").unwrap_or(TOKEN_FILE)).and_then(|token| token.json.get("name"));
        for part in others() {
            if token.is_some() && part.mounts(token) {
                faults.push((
                    part.at.clone(),
                    Severity::Warning,
                    "the token is for the sidecar alone, and this container mounts it too".to_owned(),
                ));
            }
            faults.extend(part.reads(volume));
        }
        faults
    }

    /// The fault of the token that the agent shows.
    fn token(&self, pod: &'p Value) -> Option<Fault> {
        let file = self.flag("token-file").unwrap_or(TOKEN_FILE);
        let error = |at: &str, text: String| Some((at.to_owned(), Severity::Error, text));
        let Some(Mounted { at, volume, path, .. }) = self.mounted(pod, file) else {
            return error(&self.at, format!("the agent mounts no volume at {file}, where it reads its token"));
        };
        let sources = volume.and_then(|of| of.pointer("/projected/sources")).and_then(Value::as_array);
        let tokens = sources.into_iter().flatten().filter_map(|source| source.get("serviceAccountToken"));
        let name = file.strip_prefix(path).unwrap_or_default().trim_start_matches('/');
        let text = |token: &'p Value, key: &str| token.get(key).and_then(Value::as_str).unwrap_or_default();
        let Some(token) = tokens.clone().find(|token| text(token, "path") == name) else {
            return error(
                &at,
                format!(
                    "the volume has no projected service account token with the path {name:?}, which the agent reads"
                ),
            );
        };
        let (audience, right) = (text(token, "audience"), format!("{AUDIENCE}{}", self.flag("credential-spec")?));
        if audience == right {
            None
        } else {
            error(&at, format!("the token has the audience {}, and the agent asks for {right}", quoted(audience, NAME)))
        }
    }

    /// The fault of its place among the containers, which decides when the others start.
    fn order(&self, parts: &[Self], volume: Option<&Value>) -> Vec<Fault> {
        let here = |severity, text: &str| (self.at.clone(), severity, text.to_owned());
        if self.slot.kind != SlotKind::InitContainer {
            return vec![here(
                Severity::Warning,
                "the other containers start before there are tickets: make it the first init container, with restartPolicy: Always and a startupProbe",
            )];
        }
        let mut faults = Vec::new();
        if self.json.get("restartPolicy") != Some(&Value::from("Always")) {
            faults.push(here(
                Severity::Error,
                "without restartPolicy: Always the pod waits for the end of this init container, which does not end",
            ));
        }
        if self.json.get("startupProbe").is_none() {
            faults.push(here(
                Severity::Warning,
                "without a startupProbe the other containers start before there are tickets",
            ));
        }
        let is_earlier = |part: &&Self| part.slot.kind == SlotKind::InitContainer && part.slot.index < self.slot.index;
        if parts.iter().filter(is_earlier).any(|part| part.mounts(volume)) {
            faults.push(here(
                Severity::Warning,
                "an init container before it reads the tickets, which are not there yet: make it the first one",
            ));
        }
        faults
    }

    /// The fault of how another container reads the tickets.
    fn reads(&self, volume: Option<&Value>) -> Option<Fault> {
        let mounts = self.json.get("volumeMounts")?.as_array()?;
        let (index, mount) =
            mounts.iter().enumerate().find(|(_, mount)| volume.is_some() && mount.get("name") == volume)?;
        let at = |severity, text: String| Some((format!("{}/volumeMounts/{index}", self.at), severity, text));
        if ["subPath", "subPathExpr"].iter().any(|key| mount.get(key).is_some_and(|path| path != "")) {
            return at(
                Severity::Error,
                "a file that is mounted alone stays the same when the sidecar replaces it: mount the whole volume"
                    .to_owned(),
            );
        }
        if mount.get("readOnly") != Some(&Value::Bool(true)) {
            return at(
                Severity::Warning,
                "the container can replace the tickets: mount the volume read-only".to_owned(),
            );
        }
        let folder = mount.get("mountPath")?.as_str()?.trim_end_matches('/');
        let env = || self.json.get("env").and_then(Value::as_array).into_iter().flatten();
        let variable = |name: &str| env().find(|variable| variable.get("name").is_some_and(|own| own == name));
        let right = format!("FILE:{folder}/krb5cc");
        let Some(cache) = variable("KRB5CCNAME") else {
            let is_set = variable("KRB5_CONFIG").is_some() || self.json.get("envFrom").is_some();
            return if is_set {
                None
            } else {
                at(Severity::Warning, format!("the container does not set KRB5CCNAME: {right}"))
            };
        };
        let value = cache.get("value")?.as_str()?;
        let is_right = value.strip_prefix("FILE:").unwrap_or(value) == right.trim_start_matches("FILE:");
        if is_right {
            None
        } else {
            at(Severity::Error, format!("KRB5CCNAME is {}, and the tickets are in {right}", quoted(value, NAME)))
        }
    }
}
