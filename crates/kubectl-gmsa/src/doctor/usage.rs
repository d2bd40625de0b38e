//! What uses the webhook: the credential specs, and the pods that name one.

use std::collections::HashMap;

use serde_json::Value;

use super::{Line, some, text};
use crate::connect::{Cluster, is_missing};
use gmsa_core::{
    admission::pod::Pod,
    credspec::{Contents, GROUP, PLURAL, VERSION, lint},
    diagnostic::Severity,
};

const SPECS: &str = "credential specs";
const PODS: &str = "pods";

/// Adds what is to be said. `opted_out` are the namespaces that the webhook does not look at.
pub(super) async fn look(cluster: &Cluster, opted_out: Option<&[String]>, lines: &mut Vec<Line>) {
    let specs = match cluster.list(&format!("/apis/{GROUP}/{VERSION}/{PLURAL}")).await {
        Ok(specs) => {
            linted(&specs, lines);
            specs
        }
        // Without the custom resource there are none, which was said already.
        Err(error) if is_missing(&error) => Vec::new(),
        Err(error) => return lines.push(Line::unknown(SPECS, &error)),
    };
    let contents: HashMap<&str, Contents> = specs
        .iter()
        .filter_map(|spec| {
            let object = spec.get("credspec")?.as_object()?;
            Some((text(spec, "/metadata/name"), Contents::of(object)))
        })
        .collect();
    match cluster.list("/api/v1/pods").await {
        Ok(pods) => used(&pods, &contents, opted_out.unwrap_or_default(), lines),
        Err(error) => lines.push(Line::unknown(PODS, &error)),
    }
}

fn linted(specs: &[Value], lines: &mut Vec<Line>) {
    let before = lines.len();
    for spec in specs {
        let name = text(spec, "/metadata/name");
        for finding in lint::object(spec) {
            let text = format!("{name}: {finding}");
            let level = if finding.severity == Severity::Error { Line::fail } else { Line::warn };
            lines.push(level(SPECS, text, finding.fix.unwrap_or_default()));
        }
    }
    if specs.is_empty() {
        lines.push(Line::pass(SPECS, "there are none yet: kubectl gmsa credspec new makes one"));
    } else if lines.len() == before {
        lines.push(Line::pass(SPECS, format!("no problems found in {}", specs.len())));
    }
}

/// The state of the slots of one pod.
pub(super) enum Slots {
    NoGmsa,
    Good,
    /// Names without contents.
    Bare,
    /// Contents that are not the credential spec's as it is now.
    Outdated,
}

pub(super) fn slots(pod: &Pod, contents: &HashMap<&str, Contents>) -> Slots {
    let mut found = Slots::NoGmsa;
    for slot in pod.slots() {
        match (slot.name, slot.contents) {
            (None, None) => {}
            (Some(_), None) => return Slots::Bare,
            (Some(name), Some(own)) => match contents.get(name) {
                Some(now) if own.compare(now).is_ok() => {
                    if matches!(found, Slots::NoGmsa) {
                        found = Slots::Good;
                    }
                }
                _ => found = Slots::Outdated,
            },
            (None, Some(_)) => found = Slots::Outdated,
        }
    }
    found
}

fn used(pods: &[Value], contents: &HashMap<&str, Contents>, opted_out: &[String], lines: &mut Vec<Line>) {
    let (mut good, mut bare, mut outdated, mut unread) = (0_usize, Vec::new(), Vec::new(), 0_usize);
    for value in pods {
        if matches!(text(value, "/status/phase"), "Succeeded" | "Failed") {
            continue;
        }
        let body = value.to_string();
        let Ok(pod) = Pod::from_json(&body) else {
            unread += 1;
            continue;
        };
        let namespace = text(value, "/metadata/namespace");
        let excluded =
            if opted_out.iter().any(|out| out == namespace) { " (not looked at by the webhook)" } else { "" };
        let name = format!("{namespace}/{}{excluded}", text(value, "/metadata/name"));
        match slots(&pod, contents) {
            Slots::NoGmsa => {}
            Slots::Good => good += 1,
            Slots::Bare => bare.push(name),
            Slots::Outdated => outdated.push(name),
        }
    }
    if !bare.is_empty() {
        let text = format!("{} name a credential spec and carry no contents: {}", bare.len(), some(&bare));
        lines.push(Line::fail(PODS, text, "they have no identity: delete them, their controllers make new ones"));
    }
    if !outdated.is_empty() {
        let text =
            format!("{} carry other contents than their credential spec has now: {}", outdated.len(), some(&outdated));
        lines.push(Line::warn(PODS, text, "delete them, their controllers make new ones"));
    }
    if unread > 0 {
        lines.push(Line::warn(PODS, format!("{unread} could not be understood"), "a newer kubectl gmsa may"));
    }
    if bare.is_empty() && outdated.is_empty() {
        let text = match good {
            0 => "none uses GMSA yet".to_owned(),
            1 => "1 uses GMSA, as its credential spec is now".to_owned(),
            good => format!("{good} use GMSA, all as their credential specs are now"),
        };
        lines.push(Line::pass(PODS, text));
    }
}
