//! Names of credential specs in embedded texts that another tool renders: chart values in an `Application` of Argo CD, a `HelmChart` of
//! k3s or a release of Crossplane, patches of Flux, files in a `ConfigMap`.

use gmsa_core::credspec::placeholder::is_token;
use serde_json::Value;

use super::{
    gmsa_fields::NAME,
    pointer::{Segment, pointer, walk},
};

/// The names in the embedded texts of an object, each with the place of the text.
pub(super) fn names(object: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    walk(object, &mut Vec::new(), &mut |path, key, value| {
        let at = || pointer(path);
        match value {
            // An anchor of Kyverno, `+(KEY)`, is around a key.
            Value::String(name) if key != NAME && key.trim_end_matches(')').ends_with(NAME) => {
                found.push((at(), name.clone()));
            }
            Value::String(text) => found.extend(in_text(text).map(|name| (at(), name.to_owned()))),
            Value::Object(_) => {
                let name = assigned(value).map(|name| (format!("{}/parameters/assign/value", at()), name.to_owned()));
                found.extend(name);
            }
            Value::Array(items) => {
                let texts = items.iter().enumerate().filter_map(|(index, item)| Some((index, item.as_str()?)));
                let named = texts.flat_map(|(index, text)| in_text(text).map(move |name| (index, name.to_owned())));
                found.extend(named.map(|(index, name)| (format!("{}/{index}", at()), name)));
                found.extend(items.iter().enumerate().filter_map(|(index, item)| {
                    let name = parameter(item)?;
                    Some((format!("{}/{index}/value", at()), name.to_owned()))
                }));
            }
            _ => {}
        }
        // Metadata and status record the past.
        !(matches!(path, [Segment::Field("metadata" | "status")]))
    });
    found.retain(|(_, name)| !name.is_empty() && !is_token(name));
    found
}

/// The value that an `Assign` of Gatekeeper gives the field.
fn assigned(spec: &Value) -> Option<&str> {
    spec.get("location")?.as_str().filter(|place| place.ends_with(NAME))?;
    spec.pointer("/parameters/assign/value")?.as_str()
}

/// The value for the field in a chart parameter or a JSON Patch operation.
fn parameter(item: &Value) -> Option<&str> {
    let text = |key: &str| item.get(key).and_then(Value::as_str);
    let is_of_field =
        ["name", "path", "key", "toFieldPath"].iter().any(|key| text(key).is_some_and(|place| place.ends_with(NAME)));
    text("value").filter(|_| is_of_field)
}

/// The values of the field in a text: YAML, JSON, TOML, HCL, `--set` or a JSON Patch.
fn in_text(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(NAME).filter_map(|(at, _)| value_after(text.get(at + NAME.len()..)?))
}

fn value_after(rest: &str) -> Option<&str> {
    const QUOTES: [char; 4] = ['"', '\'', '\\', ' '];
    let rest = rest.trim_start_matches(QUOTES);
    let rest = rest.strip_prefix([':', '=']).or_else(|| {
        let next = rest.trim_start_matches([',', '\n', '\r', ' ', '"', '\'']);
        next.strip_prefix("value")?.trim_start_matches(QUOTES).strip_prefix([':', '='])
    })?;
    let value = rest.trim_start_matches(QUOTES);
    if is_token(value.lines().next()?) {
        return None;
    }
    let end = value.find(['"', '\'', '\\', '\n', '\r', ',', ' ', '}', ']', '#', ';']).unwrap_or(value.len());
    value.get(..end).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_is_found_in_texts_of_every_form() {
        for text in [
            "windowsOptions:\n  gmsaCredentialSpecName: WebApp1\n",
            "windowsOptions: {gmsaCredentialSpecName: WebApp1}",
            "  gmsaCredentialSpecName: \"WebApp1\"  # of the shop",
            "{\"gmsaCredentialSpecName\":\"WebApp1\"}",
            "{\\\"gmsaCredentialSpecName\\\":\\\"WebApp1\\\"}",
            "gmsaCredentialSpecName = \"WebApp1\"",
            "--set podSecurityContext.windowsOptions.gmsaCredentialSpecName=WebApp1,replicas=2",
            "- op: add\n  path: /spec/securityContext/windowsOptions/gmsaCredentialSpecName\n  value: WebApp1\n",
            "[{\"op\":\"add\",\"path\":\"/spec/windowsOptions/gmsaCredentialSpecName\",\"value\":\"WebApp1\"}]",
            "gmsaCredentialSpecName: 'WebApp1'\\nreplicas: 2",
        ] {
            assert_eq!(in_text(text).collect::<Vec<_>>(), ["WebApp1"], "{text}");
        }
        for text in [
            "gmsaCredentialSpecName is the name",
            "gmsaCredentialSpecName:\n",
            "gmsaCredentialSpecName: ${GMSA}",
            "gmsaCredentialSpecName: {{ .Values.a }}",
            "",
        ] {
            assert_eq!(in_text(text).collect::<Vec<_>>(), [""; 0], "{text}");
        }
    }
}
