//! The golden cases: reads tests/golden, makes four cases of one with a `$slot`, and compares whole answers.
//!
//! tests/golden/README.md describes how a case is written.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gmsa_core::admission::{Enforcement, Sidecar, SidecarOptions};
use serde_json::{Map, Value, json};

use crate::oracle;

/// A review, the cluster that it happens in, and what each webhook must answer.
pub struct Case {
    /// The folder, and the kind of slot where the case was made for one.
    pub name: String,
    pub review: Vec<u8>,
    pub cluster: PathBuf,
    /// The file of the answers, and what `$slot` and `$path` are here.
    file: PathBuf,
    words: [(&'static str, String); 2],
    /// The webhooks' names, which are their paths without the `/`, with `, Warn` where denials are not enforced and
    /// `, no tickets` where tickets are off, and their answers, with the patch decoded.
    pub answers: Vec<(String, Value)>,
}

/// The name of the container whose slot a case is about.
const SLOT: &str = "slot";

pub fn folder() -> PathBuf {
    crate::repository().join("tests/golden")
}

/// The authority of the broker, which answers write as `$ca`.
pub const BROKER_CA: &str = include_str!("../../../tests/golden/broker-ca.crt");

/// The sidecar of the cases, and the flags by which the program has it.
pub fn sidecar() -> Sidecar {
    Sidecar {
        image: "registry.example.com/gmsa-tickets:1".to_owned(),
        broker: "gmsa-tickets.gmsa-tickets.svc".to_owned(),
        broker_address: "10.96.0.20:443".to_owned(),
        broker_ca: BROKER_CA.to_owned(),
        options: SidecarOptions::default(),
    }
}

pub fn sidecar_flags() -> [String; 4] {
    let Sidecar { image, broker, broker_address, .. } = sidecar();
    let ca = folder().join("broker-ca.crt").display().to_string();
    [("image", image), ("broker", broker), ("broker-address", broker_address), ("broker-ca", ca)]
        .map(|(flag, value)| format!("--tickets-{flag}={value}"))
}

/// All cases, in the order of their folders' names.
pub fn cases() -> Vec<Case> {
    let mut folders: Vec<_> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    folders.iter().flat_map(|folder| read(folder)).collect()
}

/// How a webhook of a case is set up: whether denials are enforced, and whether Linux pods get tickets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Setup {
    pub enforcement: Enforcement,
    pub has_tickets: bool,
}

/// Asks for the answer to every case and fails with all that differ. `ask` is given the case, the webhook's name and
/// how it is set up.
pub fn check(mut ask: impl FnMut(&Case, &str, Setup) -> Vec<u8>) {
    let cases = cases();
    assert!(cases.len() > 150, "only {} cases", cases.len());
    let mut faults = Vec::new();
    for case in &cases {
        for (asked, expected) in &case.answers {
            let (webhook, enforcement, has_tickets) = match asked.split_once(", ") {
                None => (asked.as_str(), Enforcement::Enforce, true),
                Some((webhook, "Warn")) => (webhook, Enforcement::Warn, true),
                Some((webhook, "no tickets")) => (webhook, Enforcement::Enforce, false),
                Some((_, other)) => panic!("no webhook is set up as {other}"),
            };
            let answered = readable(&ask(case, webhook, Setup { enforcement, has_tickets }), expected);
            if answered != *expected && env::var_os("UPDATE_SNAPSHOTS").is_some() {
                case.update(asked, answered);
            } else if answered != *expected {
                faults.push(format!("{}, {asked}:\nexpected {expected:#}\nanswered {answered:#}", case.name));
            }
        }
    }
    assert!(faults.is_empty(), "{} answers differ\n\n{}", faults.len(), faults.join("\n\n"));
}

impl Case {
    /// Writes an answer as it is now into the file, for a reviewer to read. Among the cases that are made of one, the container is the one
    /// whose place no other text holds; whether the others answer alike is what the next run says.
    fn update(&self, asked: &str, mut answered: Value) {
        if !self.words[0].1.is_empty() && !self.words[0].1.starts_with("container ") {
            return;
        }
        let words = self.words.each_ref().map(|(word, text)| (text.as_str(), *word));
        replace(&mut answered, &words.map(|(text, word)| if text.is_empty() { (word, word) } else { (text, word) }));
        let mut text = fs::read_to_string(&self.file).unwrap();
        let mut all: Value = serde_json::from_str(&text).unwrap();
        // Texts are replaced where they are, so that the order of the keys stays.
        replace_texts(&mut text, &all[asked], &answered);
        all[asked] = answered;
        if serde_json::from_str::<Value>(&text).ok().as_ref() != Some(&all) {
            text = serde_json::to_string_pretty(&all).unwrap() + "\n";
        }
        fs::write(&self.file, text).unwrap();
    }
}

fn replace_texts(file: &mut String, old: &Value, new: &Value) {
    match (old, new) {
        (Value::String(_), Value::String(_)) if old != new => *file = file.replace(&old.to_string(), &new.to_string()),
        (Value::Object(old), Value::Object(new)) => {
            old.iter()
                .filter_map(|(key, old)| Some((old, new.get(key)?)))
                .for_each(|(old, new)| replace_texts(file, old, new));
        }
        (Value::Array(old), Value::Array(new)) => {
            old.iter().zip(new).for_each(|(old, new)| replace_texts(file, old, new));
        }
        _ => {}
    }
}

fn read(folder: &Path) -> Vec<Case> {
    let name = folder.file_name().unwrap().to_str().unwrap();
    let text = fs::read(folder.join("review.json")).unwrap();
    let review: Value = serde_json::from_slice(&text).unwrap();
    let answers: Value = serde_json::from_slice(&fs::read(folder.join("answer.json")).unwrap()).unwrap();
    let own = folder.join("cluster.yaml");
    let cluster = if own.exists() { own } else { folder.with_file_name("cluster.yaml") };
    let case = |name: String, review: Vec<u8>, answers: &Value, (slot, path): (String, String)| {
        let answers = answers.as_object().unwrap().clone().into_iter().collect();
        let (file, words) = (folder.join("answer.json"), [("$slot", slot), ("$path", path)]);
        Case { name, review, cluster: cluster.clone(), file, words, answers }
    };
    if !review.to_string().contains("\"$slot\":") {
        // As it was captured, byte for byte.
        return vec![case(name.to_owned(), text, &answers, (String::new(), String::new()))];
    }
    let lists = oracle::LISTS.map(|(list, kind)| (Some(list), kind));
    let levels = [(None, "pod")].into_iter().chain(lists).map(|(list, kind)| {
        let (mut review, mut answers) = (review.clone(), answers.clone());
        let mut place = (String::new(), String::new());
        for object in ["oldObject", "object"].map(|field| format!("/request/{field}")) {
            if let Some(pod) = review.pointer_mut(&object).filter(|pod| pod.is_object()) {
                place = put_slot(pod, list, kind);
            }
        }
        replace(&mut answers, &[("$slot", &place.0), ("$path", &place.1)]);
        case(format!("{name}, {kind}"), review.to_string().into_bytes(), &answers, place)
    });
    levels.collect()
}

/// Puts the pod's `$slot` where the kind has it; gives back how messages name it, and its place in a JSON Patch.
fn put_slot(pod: &mut Value, list: Option<&str>, kind: &str) -> (String, String) {
    let pod_name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let spec = pod["spec"].as_object_mut().unwrap();
    let security_context = spec.remove("$slot");
    let Some(list) = list else {
        spec.extend(security_context.map(|value| ("securityContext".to_owned(), value)));
        return (format!("{kind} {pod_name:?}"), "/spec".to_owned());
    };
    let containers = spec.entry(list).or_insert_with(|| json!([])).as_array_mut().unwrap();
    containers
        .extend(security_context.map(|value| json!({"name": SLOT, "image": "servercore", "securityContext": value})));
    (format!("{kind} {SLOT:?}"), format!("/spec/{list}/{}", containers.len().saturating_sub(1)))
}

/// Replaces in every text of a value.
fn replace(value: &mut Value, words: &[(&str, &str)]) {
    match value {
        Value::String(text) => *text = words.iter().fold(text.clone(), |text, (from, to)| text.replace(from, to)),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, words)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace(field, words)),
        _ => {}
    }
}

/// Writes `$hostname` for a host name that was drawn at random.
fn hide_hostname(operation: &mut Value) {
    let is_random = |name: &str| {
        name.len() == 15
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    if operation["path"] == "/spec/hostname" && operation["value"].as_str().is_some_and(is_random) {
        operation["value"] = json!("$hostname");
    }
}

/// An answer as the cases write it: its patch decoded, as text where the expected one is text.
fn readable(answer: &[u8], expected: &Value) -> Value {
    let mut answer: Value = serde_json::from_slice(answer)
        .unwrap_or_else(|error| Value::String(format!("{error} in {}", String::from_utf8_lossy(answer))));
    let patch = answer
        .get_mut("response")
        .and_then(Value::as_object_mut)
        .and_then(|response: &mut Map<_, _>| response.get_mut("patch"));
    if let Some(patch) = patch {
        let text = String::from_utf8(BASE64_STANDARD.decode(patch.as_str().unwrap()).unwrap()).unwrap();
        let as_text = expected["response"]["patch"].is_string();
        *patch = if as_text { Value::String(text) } else { serde_json::from_str(&text).unwrap() };
        patch.as_array_mut().into_iter().flatten().for_each(hide_hostname);
        replace(patch, &[(BROKER_CA, "$ca")]);
    }
    answer
}
