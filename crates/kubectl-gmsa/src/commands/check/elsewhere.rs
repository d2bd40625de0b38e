//! Credential specs that objects of other kinds name for pods that their operators make: the `GatewayParameters` of kgateway, the
//! `podSecurityContext` of K8up.

use gmsa_cluster::manifests::Document;
use gmsa_core::{
    credspec::is_dns_subdomain,
    diagnostic::{Diagnostic, Location, Position},
    quote::{NAME, quoted},
};
use serde_json::Value;

use super::{
    pointer::{Step, dotted, pointer},
    search::{Found, Search},
};
use crate::shared::rules;

/// The most places of one object that are reported.
const MAX_FOUND: usize = 100;

/// What is named in an object beside the pods that were found in it.
pub(super) fn findings(document: &Document, pods: &[Found<'_>], namespace: &str) -> Vec<Diagnostic> {
    if Search::is_of_none(&document.value) {
        return Vec::new();
    }
    let mut places = Vec::new();
    walk(&document.value, &mut Vec::new(), &mut places);
    let roots: Vec<&str> =
        pods.iter().flat_map(|pod| [Some(&*pod.root), pod.workflow.as_ref().map(|(_, at)| &**at)]).flatten().collect();
    let is_of_pod = |at: &str| roots.iter().any(|root| at.strip_prefix(root).is_some_and(|rest| rest.starts_with('/')));
    let text = |at: &str| document.value.pointer(at).and_then(Value::as_str).unwrap_or_default();
    let namespace = Some(text("/metadata/namespace")).filter(|name| !name.is_empty()).unwrap_or(namespace);
    let object = format!("{} {namespace}/{}", document.kind, text("/metadata/name"));
    let finding = |(at, name): (String, &str)| {
        let (rule, message) = if is_dns_subdomain(name) {
            (
                &rules::OPERATOR_PODS,
                format!("credential spec {name}, for pods that an operator makes: they are not in this file"),
            )
        } else {
            (&rules::INVALID_SPEC_NAME, format!("{} is not a lower-case DNS subdomain", quoted(name, NAME)))
        };
        let Location { file, position } = document.location.clone();
        let position = position.map(|position| Position { line: document.line_of(&at), ..position });
        let found = Diagnostic { object: object.clone(), field: dotted(&at), ..Diagnostic::new(rule, message) };
        found.at(Location { file, position })
    };
    places.into_iter().filter(|(at, _)| !is_of_pod(at)).take(MAX_FOUND).map(finding).collect()
}

fn walk<'v>(value: &'v Value, path: &mut Vec<Step<'v>>, places: &mut Vec<(String, &'v str)>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                path.push(Step::Field(key));
                match value {
                    Value::String(name) if key == "gmsaCredentialSpecName" => places.push((pointer(path), name)),
                    // What was, and who wrote it.
                    _ if path.len() == 1 && (key == "metadata" || key == "status") => {}
                    _ => walk(value, path, places),
                }
                path.pop();
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(Step::Item(index));
                walk(item, path, places);
                path.pop();
            }
        }
        _ => {}
    }
}
