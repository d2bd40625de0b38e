//! Annotations that make containerd run the containers of a pod without the account, with another account, or by another runtime.
//!
//! They belong to hcsshim (`pkg/annotations`) and containerd. By default containerd passes on those with the prefix `io.microsoft.container.`.

use gmsa_core::diagnostic::Diagnostic;
use serde_json::Value;

use super::template::CheckedPod;
use crate::shared::rules;

/// Annotations, each with its effect if it is `true`.
const SWITCHES: [(&str, &str); 5] = [
    ("io.microsoft.container.wcow.gmsa.disable", "the container gets no gMSA"),
    ("io.microsoft.disable-unsafe-operations", "the container gets no gMSA"),
    ("microsoft.com/hostprocess-container", "the container is a hostProcess and acts as the host's account"),
    ("microsoft.com/hostprocess-inherit-user", "the container acts as the account of containerd"),
    ("io.kubernetes.cri.untrusted-workload", "another runtime runs the pod"),
];

/// Annotations that name another runtime.
const RUNTIMES: [&str; 2] = ["io.containerd.cri.runtime-handler", "io.kubernetes.cri.runtime-handler"];

pub(super) fn findings(checked: &CheckedPod<'_>) -> Vec<Diagnostic> {
    let annotations =
        checked.pod.json.pointer("/metadata/annotations").and_then(Value::as_object).into_iter().flatten();
    let finding = |(key, value): (&String, &Value)| {
        let value = value.as_str().filter(|value| !value.is_empty())?;
        // Parsed as by hcsshim, which uses `strconv.ParseBool`.
        let is_true = ["1", "t", "true"].contains(&value.to_ascii_lowercase().as_str());
        let switch = SWITCHES.iter().find(|(name, _)| key == name).filter(|_| is_true).map(|(_, effect)| *effect);
        let effect = switch.or_else(|| RUNTIMES.contains(&key.as_str()).then_some("another runtime runs the pod"))?;
        let at = format!("/metadata/annotations/{}", key.replace('~', "~0").replace('/', "~1"));
        let message = format!("where containerd takes the annotation {key}, {effect}");
        Some(checked.finding(&rules::RUNTIME_ANNOTATION, &at, message).with_fix("remove the annotation"))
    };
    annotations.filter_map(finding).collect()
}
