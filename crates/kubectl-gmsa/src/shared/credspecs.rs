//! Credential specs among manifests, and by name.

use std::{borrow::Borrow, collections::HashMap};

use gmsa_cluster::manifests::Document;
use gmsa_core::{
    credspec::{
        Contents, GROUP, KIND, PLURAL, SpecName, Verb, lint,
        services::{ANNOTATION, KEYTAB, Services, annotation_for, list_of, rule_for},
    },
    diagnostic::Diagnostic,
    pointer::escape,
    quote::{VALUE, bare, shell::posix},
};
use serde_json::Value;

use super::{annotations::meant, rules};

/// The contents of credential specs, by name.
pub fn contents_by_name(specs: impl IntoIterator<Item = impl Borrow<Value>>) -> HashMap<String, Contents> {
    let one = |spec: &Value| Some((spec.pointer("/metadata/name")?.as_str()?.to_owned(), Contents::of_spec(spec)?));
    specs.into_iter().filter_map(|spec| one(spec.borrow())).collect()
}

/// Why a credential spec gives no tickets, or no keytab, and the command that corrects the annotation.
pub fn without_tickets(name: &SpecName, verb: Verb, spec: &Value) -> Option<Diagnostic> {
    let annotation = list_of(spec, verb);
    let why = Services::of(verb, annotation).err()?;
    let services = annotation.and_then(lint::corrected_services).and_then(|services| posix(&services));
    let services = services.as_deref().unwrap_or("HTTP/app.contoso.com");
    let command = format!("kubectl annotate {PLURAL} {name} --overwrite {}={services}", annotation_for(verb));
    let found = Diagnostic::new(rule_for(verb), format!("cred spec {name} gives no {}: {why}", verb.product().name));
    Some(found.with_fix(format!("List them: `{command}`.")))
}

/// Whether a manifest is a credential spec, of any version, or is meant as one: the linter reports a wrong group or kind.
pub fn is_credential_spec(document: &Document) -> bool {
    document.group() == GROUP || document.kind.eq_ignore_ascii_case(KIND)
}

/// The linter's findings on a credential spec.
pub fn findings(document: &Document, spec: &Value) -> Vec<Diagnostic> {
    located(document, spec, lint::object(spec).into_iter().chain(misplaced(spec))).collect()
}

/// The annotation for tickets or a keytab under another name or among the labels, and the annotations of Pods on a credential spec.
fn misplaced(spec: &Value) -> impl Iterator<Item = Diagnostic> {
    let of = |place: &'static str| {
        let keys = spec.pointer(&format!("/metadata/{place}")).and_then(Value::as_object).into_iter().flatten();
        keys.filter_map(move |(key, _)| {
            let right = if meant(key)? == KEYTAB { KEYTAB } else { ANNOTATION };
            let message = format!("nothing reads this: {right} among the annotations is meant");
            let found = Diagnostic::new(&rules::IGNORED_FIELD, message);
            let fix = format!("kubectl annotate {PLURAL} NAME {right}=HTTP/app.contoso.com");
            let field = format!("metadata.{place}[{}]", bare(key, VALUE));
            (place != "annotations" || key != right).then(|| Diagnostic { field, ..found.with_fix(fix) })
        })
    };
    ["annotations", "labels"].into_iter().flat_map(of)
}

/// Findings on a credential spec, with their places.
pub fn located(
    document: &Document,
    spec: &Value,
    found: impl IntoIterator<Item = Diagnostic>,
) -> impl Iterator<Item = Diagnostic> {
    // The linter reports a missing name.
    let object = format!("{KIND} {}", spec.pointer("/metadata/name").and_then(Value::as_str).unwrap_or(""));
    found.into_iter().map(move |found| {
        let location = document.location_of(&pointer(&found.field));
        Diagnostic { object: object.clone(), ..found }.at(location)
    })
}

/// A field's path as a JSON Pointer (RFC 6901): `a.b[0].c` is `/a/b/0/c`.
fn pointer(field: &str) -> String {
    let steps = field.split(['.', '[', ']']).filter(|step| !step.is_empty());
    steps.flat_map(|step| ["/".to_owned(), escape(step)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_paths() {
        assert_eq!(pointer("credspec.DomainJoinConfig.Sid"), "/credspec/DomainJoinConfig/Sid");
        assert_eq!(pointer("a.b[10].c"), "/a/b/10/c");
        assert_eq!(pointer(""), "");
    }
}
