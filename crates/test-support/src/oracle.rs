//! What both webhooks must answer, written a second time and without the code under test: on `serde_json::Value`, slot by slot.

use serde_json::{Map, Value};

use crate::slow_json;

/// What is known about the credential specs of an imagined cluster, and about the one service account in it.
#[derive(Debug)]
pub struct World {
    /// The contents of each credential spec; no entry where there is none.
    pub specs: Map<String, Value>,
    /// The credential specs that the service account may use.
    pub allowed: Vec<String>,
    /// The credential specs whose access review fails.
    pub unknown: Vec<String>,
}

/// One place in a pod, read from JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    pub kind: &'static str,
    pub owner: String,
    /// The JSON Pointer of its security context.
    pub pointer: String,
    pub name: Option<String>,
    pub contents: Option<String>,
}

/// The lists of containers, in the order in which they are decided.
pub const LISTS: [(&str, &str); 3] =
    [("containers", "container"), ("initContainers", "init container"), ("ephemeralContainers", "ephemeral container")];

pub fn slots(pod: &Value) -> Vec<Slot> {
    let at = |kind, owner: &Value, pointer: String| {
        let options = pod.pointer(&format!("{pointer}/windowsOptions"));
        let text =
            |field: &str| options.and_then(|options| options.get(field)).and_then(Value::as_str).map(str::to_owned);
        let owner = owner.as_str().unwrap_or_default().to_owned();
        Slot { kind, owner, name: text("gmsaCredentialSpecName"), contents: text("gmsaCredentialSpec"), pointer }
    };
    let mut all = vec![at("pod", &pod["metadata"]["name"], "/spec/securityContext".to_owned())];
    for (list, kind) in LISTS {
        for (index, container) in pod["spec"][list].as_array().into_iter().flatten().enumerate() {
            all.push(at(kind, &container["name"], format!("/spec/{list}/{index}/securityContext")));
        }
    }
    all
}

/// The code and the reason of a denial, or nothing where the pod is allowed.
pub type Outcome = Result<(), (u16, &'static str)>;

/// The creation of a slot.
pub fn created(slot: &Slot, world: &World) -> Outcome {
    let Some(name) = &slot.name else {
        return if slot.contents.is_none() { Ok(()) } else { Err((422, "contents-without-name")) };
    };
    if !is_valid_name(name) {
        return Err((422, "invalid-spec-name"));
    }
    if world.unknown.contains(name) {
        return Err((500, "authorization-failed"));
    }
    if !world.allowed.contains(name) {
        return Err((403, "not-authorized"));
    }
    let Some(contents) = &slot.contents else { return Err((422, "name-without-contents")) };
    let Some(spec) = world.specs.get(name) else { return Err((404, "spec-missing")) };
    // The parser takes the last of two equal keys.
    let has_duplicate_key = slow_json::read(contents).is_some_and(|tree| slow_json::has_duplicate_key(&tree));
    let value = serde_json::from_str::<Value>(contents).ok().filter(|_| !has_duplicate_key);
    if value.as_ref() == Some(spec) { Ok(()) } else { Err((422, "contents-differ")) }
}

/// An update: what may not change, and what is new.
pub fn updated(old: &Value, new: &Value, world: &World) -> Outcome {
    let (before, after) = (slots(old), slots(new));
    let same_place = |a: &Slot, b: &Slot| a.kind == b.kind && (a.kind == "pod" || a.owner == b.owner);
    let find = |all: &[Slot], one: &Slot| all.iter().find(|other| same_place(other, one)).cloned();
    // First what is still there, in the order of the new pod, then what is gone.
    let kept = after.iter().filter_map(|now| Some((find(&before, now)?, Some(now.clone()))));
    let gone = before.iter().filter(|was| find(&after, was).is_none()).map(|was| (was.clone(), None));
    for (was, now) in kept.chain(gone) {
        let (name, contents) = now.map_or((None, None), |now| (now.name, now.contents));
        if (name, contents) != (was.name, was.contents) {
            return Err((403, "modified"));
        }
    }
    after.iter().filter(|now| !before.iter().any(|was| same_place(now, was))).try_for_each(|slot| created(slot, world))
}

/// RFC 1123, without the parser of the code under test.
pub fn is_valid_name(name: &str) -> bool {
    let plain = |c: char| matches!(c, 'a'..='z' | '0'..='9');
    (1..=253).contains(&name.len())
        && name.chars().all(|c| plain(c) || c == '-' || c == '.')
        && name.split('.').all(|part| part.starts_with(plain) && part.ends_with(plain))
}
