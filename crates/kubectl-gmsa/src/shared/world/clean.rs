//! The part of an object that a bundle keeps: the fields that [`reads`] names, without what is confidential in them.
//!
//! Invariant: arguments and environment variables are kept only if they are needed and contain no secret; contents of credential specs
//! never.

use std::collections::HashMap;

use gmsa_core::{
    credspec::{
        Contents, PLURAL, Verb,
        compare::{Difference, compare},
        lint,
        services::{annotation_for, list_of},
    },
    diagnostic::Diagnostic,
    pointer::escape,
};
use k8s_openapi::ByteString;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use x509_parser::pem::Pem;

use super::reads::{self, ACTS, CONFIG_VOLUMES, OMITTED_CONTENTS, VARIABLES, WORDS, holds_names};
use crate::shared::rules;

/// The kept fields of an object. `contents` are the contents of the credential specs.
pub fn kept(resource: &str, object: &Value, contents: &HashMap<String, Contents>) -> Value {
    if resource == PLURAL {
        return credential_spec(object);
    }
    let paths = reads::fields(resource);
    let mut kept = keep(object, &paths.iter().map(String::as_str).collect::<Vec<_>>());
    clean(&mut kept, contents);
    kept
}

fn keep(value: &Value, paths: &[&str]) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| keep(item, paths)).collect(),
        Value::Object(fields) => {
            let mut kept = Map::new();
            for (key, below) in fields {
                let escaped = escape(key);
                let rest: Vec<&str> = paths.iter().filter_map(|path| path.strip_prefix(escaped.as_str())).collect();
                let under: Vec<&str> = rest.iter().filter_map(|rest| rest.strip_prefix('/')).collect();
                if rest.contains(&"") {
                    kept.insert(key.clone(), below.clone());
                } else if !under.is_empty() {
                    kept.insert(key.clone(), keep(below, &under));
                }
            }
            Value::Object(kept)
        }
        _ => Value::Null,
    }
}

/// Removes confidential parts of the kept fields.
fn clean(value: &mut Value, contents: &HashMap<String, Contents>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| clean(item, contents)),
        Value::Object(fields) => {
            if let Some(carried) = fields.get("gmsaCredentialSpec").and_then(Value::as_str) {
                let name = fields.get("gmsaCredentialSpecName").and_then(Value::as_str);
                let left = without_contents(carried, name, contents);
                fields.insert("gmsaCredentialSpec".to_owned(), left.into());
            }
            let mut words =
                fields.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            let is_ours = words.any(|word| WORDS.contains(&word));
            let mut only = |key: &str, is_taken: &dyn Fn(&Value) -> bool| {
                if let Some(Value::Array(items)) = fields.get_mut(key) {
                    items.retain(is_taken);
                }
            };
            only("args", &|argument| is_ours && argument.as_str().is_some_and(holds_names));
            only("env", &|variable| {
                variable.get("name").is_some_and(|name| VARIABLES.iter().any(|known| name == known))
            });
            // No check reads other volumes.
            only("volumes", &|volume| {
                ["emptyDir", "projected", "secret"].iter().any(|source| volume.get(source).is_some())
                    || volume.get("name").is_some_and(|name| CONFIG_VOLUMES.iter().any(|known| name == known))
            });
            only("rules", &|rule| rule.get("verbs").is_none() || is_of_gmsa(rule));
            let pem = |bundle| ByteString::deserialize(bundle).map(|bundle| bundle.0).unwrap_or_default();
            if fields.get("caBundle").is_some_and(|bundle| !are_certificates(&pem(bundle))) {
                fields.remove("caBundle");
            }
            if fields.get("ca.crt").is_some_and(|pem| !are_certificates(pem.as_str().unwrap_or_default().as_bytes())) {
                fields.remove("ca.crt");
            }
            if fields.get("fieldPath").and_then(Value::as_str).is_some_and(|path| !path.starts_with("spec.")) {
                fields.remove("fieldPath");
            }
            fields.values_mut().for_each(|field| clean(field, contents));
        }
        _ => {}
    }
}

/// A placeholder for a pod's contents that keeps only whether they match their credential spec.
fn without_contents(carried: &str, name: Option<&str>, contents: &HashMap<String, Contents>) -> String {
    let other = format!("\"{OMITTED_CONTENTS}\":\"other contents\"");
    match name.and_then(|name| Some((name, compare(carried, contents.get(name)?)))) {
        Some((name, Ok(()))) => json!({OMITTED_CONTENTS: name}).to_string(),
        Some((_, Err(Difference::TooLong | Difference::NotJson))) => OMITTED_CONTENTS.to_owned(),
        Some((_, Err(Difference::DuplicateKey))) => format!("{{{other},{other}}}"),
        Some((_, Err(Difference::Value { as_injected: false }))) => format!("{{ {other} }}"),
        Some((_, Err(Difference::Value { as_injected: true }))) | None => format!("{{{other}}}"),
    }
}

/// Whether it contains only certificates, which are public.
fn are_certificates(pem: &[u8]) -> bool {
    Pem::iter_from_buffer(pem).all(|pem| pem.is_ok_and(|pem| pem.label == "CERTIFICATE"))
}

/// Whether a rule of a role is about credential specs, or has its subject act as pods.
fn is_of_gmsa(rule: &Value) -> bool {
    let has = |key: &str, is: &dyn Fn(&str) -> bool| {
        let words = rule.get(key).and_then(Value::as_array);
        words.into_iter().flatten().filter_map(Value::as_str).any(is)
    };
    let is_act = |resource: &str| {
        let is_of_any =
            |known: &str| resource.strip_prefix('*').is_some_and(|rest| !rest.is_empty() && known.ends_with(rest));
        ACTS.iter().any(|(_, _, known)| *known == resource || is_of_any(known))
    };
    has("apiGroups", &|group| group == "*" || group == gmsa_core::credspec::GROUP)
        || (has("apiGroups", &str::is_empty) && has("resources", &|resource| resource == "*" || is_act(resource)))
}

/// The name, the lists of services and names, and the linter's findings, without quoted values.
fn credential_spec(spec: &Value) -> Value {
    let name = spec.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let finding = |found: Diagnostic| {
        // The name of an unknown field may contain anything.
        let field = if *found.rule == rules::UNKNOWN_KEY { String::new() } else { found.field };
        json!({"rule": found.rule.id, "level": found.severity.as_str(), "field": field})
    };
    let findings: Vec<Value> = lint::object(spec).into_iter().map(finding).collect();
    let credspec =
        spec.get("credspec").filter(|credspec| credspec.is_object()).map(|_| json!({OMITTED_CONTENTS: name}));
    let listed = |verb| Some((annotation_for(verb).to_owned(), Value::from(list_of(spec, verb)?)));
    let mut metadata = json!({"name": name});
    let annotations: Map<String, Value> = Verb::ALL.into_iter().filter_map(listed).collect();
    if !annotations.is_empty() {
        metadata = json!({"name": name, "annotations": annotations});
    }
    json!({"metadata": metadata, "credspec": credspec, "findings": findings})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_that_are_left_out_compare_as_they_did() {
        let of = |value: Value| Contents::of(value.as_object().unwrap());
        let contents = HashMap::from([("webapp1".to_owned(), of(json!({"a": 1, "b": 2})))]);
        let left_out = of(json!({OMITTED_CONTENTS: "webapp1"}));
        for carried in
            [r#"{"a":1,"b":2}"#, r#"{"b": 2, "a": 1}"#, r#"{"a":1}"#, r#"{"a": 1}"#, r#"{"a":1,"a":1}"#, "{", ""]
        {
            let left = without_contents(carried, Some("webapp1"), &contents);
            assert_eq!(compare(&left, &left_out), compare(carried, &contents["webapp1"]), "{carried}: {left}");
        }
    }
}
