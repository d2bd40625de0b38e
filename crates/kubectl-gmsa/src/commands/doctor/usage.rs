//! Credential specs, and the pods that use them.

use serde::Deserialize as _;
use serde_json::Value;

use super::{
    found,
    hostnames::HostNames,
    namespaces::excluded,
    parts::{Judged, Parts},
};
use crate::shared::{
    credspecs::contents_by_name,
    output::{first_five, plural},
    pods::{ClusterPod, ContentsState, FIX_UNMATCHED},
    rules::{self, Names},
};
use gmsa_core::{
    credspec::{CredentialSpec, lint},
    diagnostic::{Check, Diagnostic, Severity},
};

pub(super) const SPECS: &str = "credential specs";
pub(super) const PODS: &str = "pods";

pub(super) fn check_specs(parts: &Parts) -> Judged<'_> {
    let (objects, mut checks) = (parts.specs.as_ref()?, Vec::new());
    // Without the custom resource, which another check reports, there are no credential specs.
    if matches!(parts.crd, Ok(None)) {
        return Ok(checks);
    }
    for object in objects {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("");
        let findings = findings(object).into_iter();
        checks.extend(findings.map(|finding| Check::found(SPECS, Diagnostic { object: name.to_owned(), ..finding })));
    }
    if objects.is_empty() {
        checks.push(Check::pass(SPECS, "there are none yet: kubectl gmsa credspec new makes one"));
    } else if checks.is_empty() {
        checks.push(Check::pass(SPECS, format!("no problems found in {}", plural(objects.len(), "credential spec"))));
    }
    Ok(checks)
}

/// What the linter finds; or found, where a bundle has left out the contents.
fn findings(object: &Value) -> Vec<Diagnostic> {
    let Some(found) = object.get("findings").and_then(Value::as_array) else {
        return lint::object(object).into_iter().collect();
    };
    let finding = |found: &Value| {
        let text = |key: &str| found.get(key).and_then(Value::as_str).unwrap_or_default();
        let rule = rules::all().find(|rule| rule.id == text("rule"))?;
        let levels = [Severity::Note, Severity::Warning, Severity::Error];
        let severity = levels.into_iter().find(|level| level.as_str() == text("level"))?;
        let found = Diagnostic { field: text("field").to_owned(), ..Diagnostic::new(rule, rule.title) };
        Some(found.with_severity(severity))
    };
    found.iter().filter_map(finding).collect()
}

pub(super) fn check_pods(parts: &Parts) -> Judged<'_> {
    let specs = parts.specs.as_ref()?;
    let contents = contents_by_name(specs.iter().filter_map(|spec| CredentialSpec::deserialize(spec).ok()));
    let excluded = excluded(parts.namespaces.as_deref().unwrap_or_default(), &parts.of_pods()).unwrap_or_default();
    let mut checks = Vec::new();
    let (mut up_to_date, mut unparsed) = (0_usize, 0_usize);
    let (mut outdated, mut unmatched, mut without_contents) = (Vec::new(), Vec::new(), Vec::new());
    let mut hostnames = HostNames::default();
    for json in parts.pods.as_ref()? {
        let Ok(pod) = ClusterPod::read(json) else {
            unparsed += 1;
            continue;
        };
        if pod.has_ended() {
            continue;
        }
        hostnames.add(&pod);
        let (namespace, name) = pod.place();
        let is_excluded = excluded.contains(&namespace);
        let note = if is_excluded { " (not reviewed by the webhook)" } else { "" };
        let name = format!("{namespace}/{name}{note}");
        match ContentsState::of(&pod.admission, &contents) {
            ContentsState::NoGmsa => {}
            ContentsState::UpToDate => up_to_date += 1,
            ContentsState::Outdated => outdated.push(name),
            ContentsState::Unmatched => unmatched.push(name),
            ContentsState::WithoutContents => without_contents.push(name),
        }
    }
    if !without_contents.is_empty() {
        let (count, names) = (without_contents.len(), first_five(&without_contents));
        let text = format!("{count} name a credential spec and carry no contents: {names}");
        let names = Names { exists: true, ..Names::default() };
        checks.push(Check::found(PODS, rules::found(&rules::NAME_WITHOUT_CONTENTS, text, &names)));
    }
    if !outdated.is_empty() {
        let (count, names) = (outdated.len(), first_five(&outdated));
        let text = format!("{count} carry other contents than their credential spec has now: {names}");
        checks.push(found(PODS, &rules::CONTENTS_OUTDATED, text));
    }
    if !unmatched.is_empty() {
        let (count, names) = (unmatched.len(), first_five(&unmatched));
        let text = format!("{count} carry contents, and there is no credential spec to compare them with: {names}");
        checks.push(Check::found(PODS, Diagnostic::new(&rules::CONTENTS_OUTDATED, text).with_fix(FIX_UNMATCHED)));
    }
    if unparsed > 0 {
        let text = format!("{unparsed} could not be parsed");
        let fix = "use a newer version of kubectl gmsa";
        checks.push(Check::found(PODS, Diagnostic::new(&rules::NOT_CHECKED, text).with_fix(fix)));
    }
    if checks.is_empty() {
        let text = match up_to_date {
            0 => "none uses GMSA yet".to_owned(),
            1 => "1 uses GMSA, with up-to-date contents".to_owned(),
            count => format!("{count} use GMSA, all with up-to-date contents"),
        };
        checks.push(Check::pass(PODS, text));
    }
    checks.extend(hostnames.check());
    Ok(checks)
}
