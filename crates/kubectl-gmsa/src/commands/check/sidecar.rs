//! A sidecar for tickets that was written by hand: whether its parts fit together, by what the agent reads and writes, not by their names.
//!
//! Invariant: where the annotation has the webhook inject the sidecar, the webhook itself says what does not fit.

use gmsa_core::{
    admission::pod::{
        Pod, Slot, SlotKind,
        tickets::{FOLDER, KEYTAB_TOKEN_FILE, Product, TOKEN_FILE},
    },
    credspec::Verb,
    diagnostic::{Diagnostic, Severity},
    quote::{NAME, quoted},
};

use super::template::CheckedPod;
use crate::shared::{admission::Part, rules};

const WINDOWS: &str = "tickets are for Linux pods, and this pod is for Windows";
const NO_AGENT: &str =
    "the pod has a token with the audience gmsa-tickets/NAME, and no container that runs `gmsa-tickets agent`";
const NOT_IN_MEMORY: &str = "the tickets are in a volume that is not an emptyDir in memory";
const UNREADABLE: &str = "with --mode=0440 and without fsGroup, other users than root cannot read the tickets";
const LATE: &str = "the other containers start before there are tickets: make it the first init container, with restartPolicy: Always and a startupProbe";
const ENDLESS: &str =
    "without restartPolicy: Always the pod waits for the end of this init container, which does not end";
const UNPROBED: &str = "without a startupProbe the other containers start before there are tickets";
const READ_EARLY: &str =
    "an init container before it reads the tickets, which are not there yet: make it the first one";
const UNUSED: &str = "no other container mounts the volume of the tickets";
const SHARED_TOKEN: &str = "the token is for the sidecar alone, and this container mounts it too";
const ALONE: &str = "a file that is mounted alone stays the same when the sidecar replaces it: mount the whole volume";

/// The agent's flags for the credential spec, and for the file with the token; without the second, the file is this.
const FLAGS: [(Verb, &str, &str, &str); 2] = [
    (Verb::Use, "credential-spec", "token-file", TOKEN_FILE),
    (Verb::Export, "keytab", "keytab-token-file", KEYTAB_TOKEN_FILE),
];

/// A field that does not fit: its place in the pod, how bad it is, and why.
type Fault = (String, Severity, String);

fn error(at: &Part<'_>, text: impl Into<String>) -> Fault {
    (at.at.clone(), Severity::Error, text.into())
}

fn warning(at: &Part<'_>, text: impl Into<String>) -> Fault {
    (at.at.clone(), Severity::Warning, text.into())
}

/// A container, and the words of its command line.
struct Command<'p> {
    slot: Slot<'p>,
    part: Part<'p>,
    words: Vec<&'p str>,
}

pub(super) fn findings(checked: &CheckedPod<'_>, pod: &Pod) -> Vec<Diagnostic> {
    if pod.asks().next().is_some() {
        return Vec::new();
    }
    let (has_token, root) = (pod.audiences().next().is_some(), checked.pod.root());
    let all: Vec<Command<'_>> = checked.pod.containers().map(Command::of).collect();
    let agents = || all.iter().filter(|program| program.is_agent());
    let are_none = agents().next().is_none();
    let mut faults = Vec::new();
    if pod.is_for_windows() && (has_token || !are_none) {
        faults.push(warning(&root.below("spec"), WINDOWS));
    }
    if has_token && are_none {
        faults.push(warning(&root.below("spec/volumes"), NO_AGENT));
    }
    faults.extend(agents().flat_map(|agent| agent.faults(&root, &all)));
    let finding =
        |(at, severity, text): Fault| checked.finding(&rules::TICKET_SIDECAR, &at, text).with_severity(severity);
    faults.into_iter().map(finding).collect()
}

impl<'p> Command<'p> {
    fn of((slot, part): (Slot<'p>, Part<'p>)) -> Self {
        let words =
            ["command", "args"].into_iter().flat_map(|list| part.list(list)).filter_map(|word| word.json.as_str());
        // A shell has all words in one.
        let separator = |word: &str| if word.contains("gmsa-tickets agent") { ' ' } else { '\0' };
        Self { slot, words: words.flat_map(|word| word.split(separator(word))).collect(), part }
    }

    /// Other programs have agents with a broker too.
    fn is_agent(&self) -> bool {
        let is_ours = || {
            self.part.text("image").contains("gmsa-tickets")
                || self.words.iter().any(|word| word.ends_with("gmsa-tickets"))
        };
        let is_named =
            FLAGS.iter().any(|(_, flag, ..)| self.flag(flag).is_some()) || self.flag("broker").is_some() && is_ours();
        self.words.contains(&"agent") && is_named
    }

    /// The agent's request: the credential spec, and where it reads the token. Without any, tickets are meant.
    fn asks(&self) -> impl Iterator<Item = (Verb, Option<&'p str>, &'p str)> {
        let has_keytab = self.flag("keytab").is_some();
        FLAGS.into_iter().filter_map(move |(verb, flag, file, default)| {
            let spec = self.flag(flag);
            let is_asked = spec.is_some() || verb == Verb::Use && !has_keytab;
            is_asked.then(|| (verb, spec, self.flag(file).unwrap_or(default)))
        })
    }

    fn flag(&self, name: &str) -> Option<&'p str> {
        self.words.iter().enumerate().find_map(|(index, word)| {
            let rest = word.strip_prefix("--")?.strip_prefix(name)?;
            if rest.is_empty() { self.words.get(index + 1).copied() } else { rest.strip_prefix('=') }
        })
    }

    /// The mount at this path, or around it, and the rest of the path.
    fn mount_at(&self, path: &'p str) -> Option<(Part<'p>, &'p str)> {
        let rest = |mount: Part<'p>| Some((path.strip_prefix(mount.text("mountPath").trim_end_matches('/'))?, mount));
        let around = self.part.list("volumeMounts").filter_map(rest);
        let around = around.filter(|(rest, _)| rest.is_empty() || rest.starts_with('/'));
        around.min_by_key(|(rest, _)| rest.len()).map(|(rest, mount)| (mount, rest.trim_start_matches('/')))
    }

    /// Its mount of this volume.
    fn mount_of(&self, volume: Option<&str>) -> Option<Part<'p>> {
        self.part.list("volumeMounts").find(|mount| Some(mount.text("name")) == volume)
    }

    /// The faults of a sidecar, and of the other containers that use its files.
    fn faults(&self, pod: &Part<'_>, all: &[Self]) -> Vec<Fault> {
        let Self { part, slot, .. } = self;
        let volume_of =
            |mount: &Part<'_>| pod.list("spec/volumes").find(|volume| volume.text("name") == mount.text("name"));
        let missing = ["credential-spec", "broker", "broker-ca"].into_iter().filter(|flag| self.flag(flag).is_none());
        let missing = missing.filter(|flag| *flag != "credential-spec" || self.flag("keytab").is_none());
        let mut faults: Vec<Fault> =
            missing.map(|flag| error(part, format!("the agent ends at once without --{flag}"))).collect();
        let mut tokens: Vec<&str> = Vec::new();
        for (verb, spec, file) in self.asks() {
            faults.extend(match self.mount_at(file) {
                None => Some(error(part, format!("the agent mounts no volume at {file}, where it reads its token"))),
                Some((mount, name)) => {
                    tokens.push(mount.text("name"));
                    let right = spec.map(|spec| format!("{}{spec}", verb.product().audience));
                    wrong_token(&mount, name, volume_of(&mount).as_ref(), right)
                }
            });
        }
        let folder = self.flag("folder").unwrap_or(FOLDER);
        let tickets = self.mount_at(folder).map(|(mount, _)| mount);
        let in_memory = |mount| volume_of(mount).is_some_and(|volume| volume.text("emptyDir/medium") == "Memory");
        faults.extend(match &tickets {
            None => {
                Some(error(part, format!("the agent mounts no volume at {folder}, into which it writes the tickets")))
            }
            Some(mount) if mount.below("readOnly").json == true => {
                Some(error(mount, format!("the agent writes the tickets into {folder}, which it mounts read-only")))
            }
            Some(mount) => (!in_memory(mount)).then(|| warning(mount, NOT_IN_MEMORY)),
        });
        if self.flag("mode") == Some("0440") && !pod.has("spec/securityContext/fsGroup") {
            faults.push(warning(part, UNREADABLE));
        }
        let volume = tickets.as_ref().map(|mount| mount.text("name"));
        let mounts_tickets = |other: &Self| other.mount_of(volume).is_some();
        if slot.kind == SlotKind::Container {
            faults.push(warning(part, LATE));
        } else {
            let is_before = |other: &&Self| other.slot.kind == slot.kind && other.slot.index < slot.index;
            faults.extend((part.text("restartPolicy") != "Always").then(|| error(part, ENDLESS)));
            faults.extend((!part.has("startupProbe")).then(|| warning(part, UNPROBED)));
            faults.extend(all.iter().filter(is_before).any(mounts_tickets).then(|| warning(part, READ_EARLY)));
        }
        let others = || all.iter().filter(|other| other.part.at != part.at);
        faults.extend((volume.is_some() && !others().any(mounts_tickets)).then(|| error(part, UNUSED)));
        for other in others() {
            let mount = tokens.iter().find_map(|token| other.mount_of(Some(token)));
            faults.extend(mount.map(|_| warning(&other.part, SHARED_TOKEN)));
            let reads = other.mount_of(volume).into_iter();
            faults.extend(reads.flat_map(|mount| other.wrong_reads(&mount, self.asks().map(|(verb, ..)| verb))));
        }
        faults
    }

    /// The faults of how another container reads what the sidecar writes into this mount.
    fn wrong_reads(&self, mount: &Part<'_>, written: impl Iterator<Item = Verb>) -> Vec<Fault> {
        if !mount.text("subPath").is_empty() || !mount.text("subPathExpr").is_empty() {
            return vec![error(mount, ALONE)];
        } else if mount.below("readOnly").json != true {
            return vec![warning(mount, "the container can replace the tickets: mount the volume read-only")];
        }
        written.filter_map(|verb| self.wrong_variable(mount, verb)).collect()
    }

    /// The fault of the variable that names it.
    fn wrong_variable(&self, mount: &Part<'_>, verb: Verb) -> Option<Fault> {
        let Product { variable: name, file, .. } = verb.product();
        let variable = |name: &str| self.part.list("env").find(|variable| variable.text("name") == name);
        let right = format!("{}/{file}", mount.text("mountPath").trim_end_matches('/'));
        let Some(set) = variable(name) else {
            let is_set = variable("KRB5_CONFIG").is_some() || self.part.has("envFrom");
            return (!is_set).then(|| warning(mount, format!("the container does not set {name}: FILE:{right}")));
        };
        let value = set.json.get("value")?.as_str()?;
        let text = format!("{name} is {}, and the sidecar writes FILE:{right}", quoted(value, NAME));
        (value.strip_prefix("FILE:").unwrap_or(value) != right).then(|| error(mount, text))
    }
}

/// The fault of the token of this name, in a mounted volume, that the agent shows; `right` is the audience that it needs.
fn wrong_token(mount: &Part<'_>, name: &str, volume: Option<&Part<'_>>, right: Option<String>) -> Option<Fault> {
    let sources = volume.into_iter().flat_map(|volume| volume.list("projected/sources"));
    let mut tokens = sources.map(|source| source.below("serviceAccountToken"));
    let Some(token) = tokens.find(|token| token.has("path") && token.text("path") == name) else {
        let text = "the volume has no projected service account token with the path";
        return Some(error(mount, format!("{text} {name:?}, which the agent reads")));
    };
    let (audience, right) = (token.text("audience"), right?);
    let text = format!("the token has the audience {}, and the agent asks for {right}", quoted(audience, NAME));
    (audience != right).then(|| error(mount, text))
}
