//! Credential specs among manifests, and by name.

use std::collections::HashMap;

use gmsa_cluster::manifests::Document;
use gmsa_core::{
    credspec::{Contents, CredentialSpec, GROUP, KIND, lint},
    diagnostic::Diagnostic,
};
use serde_json::Value;

/// The contents of credential specs, by name.
pub fn contents_by_name(specs: impl IntoIterator<Item = CredentialSpec>) -> HashMap<String, Contents> {
    specs.into_iter().filter_map(|spec| Some((spec.metadata.name.clone(), spec.contents()?))).collect()
}

/// Whether a manifest is a credential spec, of any version, or is meant as one: the linter reports a wrong group or kind.
pub fn is_credential_spec(document: &Document) -> bool {
    document.group() == GROUP || document.kind.eq_ignore_ascii_case(KIND)
}

/// The linter's findings on a credential spec.
pub fn findings(document: &Document, spec: &Value) -> Vec<Diagnostic> {
    located(document, spec, lint::object(spec)).collect()
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
    steps.flat_map(|step| ["/".to_owned(), step.replace('~', "~0").replace('/', "~1")]).collect()
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
