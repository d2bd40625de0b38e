//! Invalid scheduling fields that the API server refuses: `ValidatePodSpec` and `ValidateTolerations` of kube-apiserver.

use gmsa_core::diagnostic::Diagnostic;
use serde_json::Value;

use super::template::CheckedPod;
use crate::shared::rules;

const REQUIRED: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
const PREFERRED: &str = "/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution";
const TOLERATIONS: &str = "/spec/tolerations";

const NODE_OPERATORS: [&str; 6] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
/// `Lt` and `Gt` compare numbers; only newer clusters have them.
const TOLERATION_OPERATORS: [&str; 5] = ["Equal", "Exists", "Lt", "Gt", ""];
const EFFECTS: [&str; 4] = ["NoSchedule", "PreferNoSchedule", "NoExecute", ""];

pub(super) fn findings(checked: &CheckedPod<'_>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    found.extend(operating_system(checked));
    let terms = items(checked, REQUIRED).map(|(at, _)| at);
    for at in terms.chain(items(checked, PREFERRED).map(|(at, _)| format!("{at}/preference"))) {
        found.extend(
            items(checked, &format!("{at}/matchExpressions")).filter_map(|(at, value)| expression(checked, &at, value)),
        );
    }
    found.extend(items(checked, TOLERATIONS).filter_map(|(at, value)| toleration(checked, &at, value)));
    found
}

/// The items of a list, each with its place.
fn items<'c>(checked: &'c CheckedPod<'_>, list: &str) -> impl Iterator<Item = (String, &'c Value)> {
    let found = checked.pod.json.pointer(list).and_then(Value::as_array).into_iter().flatten().enumerate();
    let list = list.to_owned();
    found.map(move |(index, value)| (format!("{list}/{index}"), value))
}

fn finding(checked: &CheckedPod<'_>, at: &str, problem: &str) -> Diagnostic {
    checked.finding(&rules::NOT_A_POD, at, format!("the API server would refuse the pod: {problem}"))
}

/// The finding on an operating system that does not exist, or on Linux for a pod that has `windowsOptions`.
fn operating_system(checked: &CheckedPod<'_>) -> Option<Diagnostic> {
    let at = "/spec/os/name";
    let problem = match checked.text(at)? {
        "windows" => return None,
        "linux" if !has_windows_options(checked) => return None,
        "linux" => "a pod of Linux may have no windowsOptions",
        _ => "expected windows or linux",
    };
    Some(finding(checked, at, problem).with_fix("name: windows"))
}

fn has_windows_options(checked: &CheckedPod<'_>) -> bool {
    let lists = ["/spec/containers", "/spec/initContainers", "/spec/ephemeralContainers"];
    let containers = lists.into_iter().flat_map(|list| items(checked, list)).map(|(_, container)| container);
    let mut owners = checked.pod.json.pointer("/spec").into_iter().chain(containers);
    owners.any(|owner| owner.pointer("/securityContext/windowsOptions").is_some_and(|options| !options.is_null()))
}

fn expression(checked: &CheckedPod<'_>, at: &str, value: &Value) -> Option<Diagnostic> {
    let operator = value.get("operator").and_then(Value::as_str)?;
    let values = value.get("values").and_then(Value::as_array).map_or(0, Vec::len);
    if let Some(found) = unknown(checked, &format!("{at}/operator"), operator, &NODE_OPERATORS) {
        return Some(found);
    }
    let problem = match (operator, values) {
        ("In" | "NotIn", 0) => "expected at least one value with this operator",
        ("Exists" | "DoesNotExist", 1..) => "expected no values with this operator",
        ("Gt" | "Lt", 0 | 2..) => "expected one value with this operator",
        _ => return None,
    };
    Some(finding(checked, &format!("{at}/values"), problem))
}

fn toleration(checked: &CheckedPod<'_>, at: &str, value: &Value) -> Option<Diagnostic> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let (operator, effect) = (text("operator"), text("effect"));
    unknown(checked, &format!("{at}/operator"), operator, &TOLERATION_OPERATORS)
        .or_else(|| unknown(checked, &format!("{at}/effect"), effect, &EFFECTS))
        .or_else(|| {
            let problem = match (operator, text("key"), text("value")) {
                ("Exists", _, "") => return None,
                ("Exists", ..) => "expected no value with operator Exists",
                (_, "", _) => "expected operator Exists where there is no key",
                _ => return None,
            };
            Some(finding(checked, at, problem))
        })
}

/// The finding on an invalid value, with the intended value if only the case differs or the last `s` is missing.
fn unknown(checked: &CheckedPod<'_>, at: &str, found: &str, allowed: &[&str]) -> Option<Diagnostic> {
    if allowed.contains(&found) {
        return None;
    }
    let is_meant = |known: &&&str| {
        let (known, found) = (known.to_lowercase(), found.to_lowercase());
        !known.is_empty() && (known == found || format!("{found}s") == known)
    };
    let known: Vec<&str> = allowed.iter().copied().filter(|known| !known.is_empty()).collect();
    let finding = finding(checked, at, &format!("{found:?} is not one of {}", known.join(", ")));
    let key = at.rsplit('/').next().unwrap_or_default();
    Some(match allowed.iter().find(is_meant) {
        Some(meant) => finding.with_fix(format!("{key}: {meant}")),
        None => finding,
    })
}
