//! Credential specs in objects of other kinds, for pods that operators create: the `GatewayParameters` of kgateway, the
//! `podSecurityContext` of K8up.

use gmsa_cluster::manifests::Document;
use gmsa_core::{
    credspec::{is_dns_subdomain, placeholder::is_token},
    diagnostic::{Diagnostic, Rule, Severity},
    quote::{NAME as QUOTED, quoted},
};
use serde_json::Value;

use super::{
    gmsa_fields::{NAME, NO_VALUE, meant},
    pointer::{Segment, dotted, pointer, walk},
    search::Search,
    strings,
    template::CheckedPod,
};
use crate::shared::rules::{self, instead_of};

/// Parts of policies that set fields: of Kyverno, of Gatekeeper, and of the API server.
const MUTATIONS: [&str; 3] = ["/mutate/", "/parameters/assign/", "/mutations/"];

/// The most fields, and the most texts, that are reported for one object.
const MAX_FOUND: usize = 100;

/// Findings on names outside the pods of an object.
pub(super) fn findings(
    document: &Document,
    object: &Value,
    pods: &[CheckedPod<'_>],
    namespace: &str,
) -> Vec<Diagnostic> {
    if Search::is_of_none(object) {
        return Vec::new();
    }
    let mut places = Vec::new();
    walk(object, &mut Vec::new(), &mut |path, key, value| {
        // A schema has an object in the place of the field.
        let is_misspelt = || matches!(path, [.., Segment::Field("windowsOptions"), _]) && meant(key) == Some(NAME);
        let is_named = !value.is_object() && (key == NAME || is_misspelt());
        if is_named {
            places.push((pointer(path), value));
        }
        // Metadata and status record the past.
        let is_record = path.len() == 1 && matches!(key, "metadata" | "status");
        !is_named && !is_record
    });
    let is_below = |at: &str, around: &str| at.strip_prefix(around).is_some_and(|rest| rest.starts_with('/'));
    let is_policy = Search::is_policy(object);
    // Elsewhere a policy has patterns, and variables of its own.
    let is_set =
        |at: &str, name: &str| !is_policy || MUTATIONS.iter().any(|part| at.contains(part)) && !name.contains("{{");
    let counts = |at: &str, name: &str| !pods.iter().any(|pod| is_below(at, &pod.around)) && is_set(at, name);
    let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default();
    let namespace = Some(text("/metadata/namespace")).filter(|name| !name.is_empty()).unwrap_or(namespace);
    let title = format!("{} {namespace}/{}", document.kind, text("/metadata/name"));
    let kind_of_kubernetes = Search::place_of_pod(object);
    let finding = |(at, value): (String, &Value)| {
        let right = kind_of_kubernetes.map(|pod| dotted(&format!("{pod}/spec/securityContext/windowsOptions/{NAME}")));
        let (rule, message, fix) = judge(&at, value, right);
        let found = Diagnostic { object: title.clone(), field: dotted(&at), ..Diagnostic::new(rule, message) };
        let severity = if value.is_null() { Severity::Warning } else { rule.severity };
        Diagnostic { fix, ..found.with_severity(severity) }.at(document.location_of(&at))
    };
    places.retain(|(at, value)| counts(at, value.as_str().unwrap_or_default()));
    let mut found: Vec<Diagnostic> = places.into_iter().take(MAX_FOUND).map(finding).collect();
    let texts = strings::names(object).into_iter().filter(|(at, name)| counts(at, name)).take(MAX_FOUND);
    found.extend(texts.map(|(at, name)| {
        let (rule, message, fix) = in_text(if is_policy { "policy" } else { "text" }, &name);
        let found = Diagnostic { object: title.clone(), field: dotted(&at), fix, ..Diagnostic::new(rule, message) };
        found.with_severity(rule.severity.min(Severity::Warning)).at(document.location_of(&at))
    }));
    found
}

/// The finding about a name in a text that another tool renders, or in a policy.
fn in_text(place: &str, name: &str) -> (&'static Rule, String, Option<String>) {
    if is_dns_subdomain(name) {
        return (
            &rules::OPERATOR_PODS,
            format!("credential spec {name}, in a {place} that another tool renders"),
            None,
        );
    }
    let message = format!(
        "this {place} names the credential spec {}, which is not a lower-case DNS subdomain",
        quoted(name, QUOTED)
    );
    (&rules::INVALID_SPEC_NAME, message, Some(instead_of(name).in_manifest().unwrap_or_default()))
}

/// The finding about a name at this place; `right` is the correct place in a kind of Kubernetes.
fn judge(at: &str, value: &Value, right: Option<String>) -> (&'static Rule, String, Option<String>) {
    let named = |name: &str| Some(format!("{NAME}: {name}"));
    let name = value.as_str().unwrap_or("NAME");
    if value.is_null() {
        return (&rules::IGNORED_FIELD, NO_VALUE.to_owned(), named("NAME"));
    }
    if let Some(right) = right {
        return (&rules::IGNORED_FIELD, format!("Kubernetes ignores this field: its place is {right}"), None);
    }
    if !at.ends_with(NAME) {
        return (&rules::IGNORED_FIELD, format!("this field is ignored: {NAME} is meant"), named(name));
    }
    match value {
        Value::String(name) if is_token(name) => {
            let fix = instead_of(name).in_manifest().unwrap_or_default();
            (&rules::PLACEHOLDER, format!("{name:?} is still a placeholder"), Some(fix))
        }
        Value::String(name) if is_dns_subdomain(name) => {
            let message = format!("credential spec {name}, for pods that an operator makes: they are not in this file");
            (&rules::OPERATOR_PODS, message, None)
        }
        Value::String(name) => {
            let message = format!("{} is not a lower-case DNS subdomain", quoted(name, QUOTED));
            (&rules::INVALID_SPEC_NAME, message, Some(instead_of(name).in_manifest().unwrap_or_default()))
        }
        _ => (&rules::INVALID_SPEC_NAME, "the API server would refuse the pod: expected a string".to_owned(), None),
    }
}
