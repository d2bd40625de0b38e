//! A `GMSACredentialSpec` object that a user sends, read for the linter.
//!
//! Invariants: what is read is small, even if the object is not.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, value::RawValue};

use super::MAX_CONTENTS_BYTES;
use crate::json::{Text, fold_entries};

/// The longest `credspec` that is read, in bytes. Printed as contents text it is longer than the API server accepts even if
/// every character in it is an escape of six.
pub const MAX_BYTES: usize = 6 * MAX_CONTENTS_BYTES + 128 * 1024;

/// The most values in a `credspec` that is read. A real one has fewer than a hundred.
pub const MAX_VALUES: usize = 8192;

/// The most unknown fields of the object that are kept.
const MAX_FIELDS: usize = 100;

/// What was read.
#[derive(Clone, Debug, PartialEq)]
pub enum Manifest {
    /// The object: of its metadata only the names, of its unknown fields only the keys.
    Object(Value),
    /// The `credspec` is longer than [`MAX_BYTES`] or holds more than [`MAX_VALUES`].
    TooLarge,
}

impl Manifest {
    /// The object's name. Not validated; empty where it has none, or was not read.
    pub fn name(&self) -> &str {
        let Self::Object(object) = self else { return "" };
        object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
    }
}

/// Reads an object; `None` where the text is not one.
pub(crate) fn read(json: &str) -> Option<Manifest> {
    let Fields { known, unknown } = serde_json::from_str(json).ok()?;
    let mut object: Map<String, Value> = unknown.into_iter().map(|key| (key.into(), Value::Null)).collect();
    for (key, value) in known {
        let value = match key {
            "metadata" => names(value),
            "credspec" if is_too_large(value.get()) => return Some(Manifest::TooLarge),
            "credspec" => serde_json::from_str(value.get()).ok()?,
            "apiVersion" => {
                serde_json::from_str::<Text>(value.get()).map_or(Value::Null, |text| Value::String(text.into()))
            }
            _ => Value::Null,
        };
        object.insert(key.to_owned(), value);
    }
    Some(Manifest::Object(Value::Object(object)))
}

/// Each value of a list or an object follows one of these bytes. Those in strings are counted too: it is a bound.
fn is_too_large(json: &str) -> bool {
    json.len() > MAX_BYTES || json.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count() >= MAX_VALUES
}

fn names(metadata: &RawValue) -> Value {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Names {
        name: Option<Text>,
        generate_name: Option<Text>,
    }
    let Names { name, generate_name } = serde_json::from_str(metadata.get()).unwrap_or_default();
    let fields = [("name", name), ("generateName", generate_name)];
    let given = fields.into_iter().filter_map(|(key, text)| Some((key.to_owned(), Value::String(text?.into()))));
    Value::Object(given.collect())
}

const KNOWN: [&str; 4] = ["apiVersion", "credspec", "kind", "metadata"];

/// The fields of the object: the known ones with their values, of the others the keys.
#[derive(Default)]
struct Fields<'a> {
    known: BTreeMap<&'static str, &'a RawValue>,
    unknown: Vec<Text>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        fold_entries(input, Self::default(), |fields, key, value| {
            if let Some(known) = KNOWN.into_iter().find(|known| *known == &*key) {
                // As in any map of JSON values, the last of equal keys counts.
                fields.known.insert(known, value);
            } else if fields.unknown.len() < MAX_FIELDS {
                fields.unknown.push(key);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_names_and_the_credspec_are_read_and_of_the_rest_the_keys() {
        let object = json!({
            "apiVersion": "v1", "kind": "K", "credspec": {"a": [1]}, "typo": {"b": 2},
            "metadata": {"name": "n", "generateName": "g", "managedFields": [{}]},
        });
        let read_back = json!({
            "apiVersion": "v1", "kind": null, "credspec": {"a": [1]}, "typo": null,
            "metadata": {"name": "n", "generateName": "g"},
        });
        assert_eq!(read(&object.to_string()), Some(Manifest::Object(read_back)));
        let twice = r#"{"credspec":{"a":1},"credspec":{"b":2}}"#;
        assert_eq!(read(twice), Some(Manifest::Object(json!({"credspec": {"b": 2}}))));
        for other in ["[]", "1", "\"text\"", "null", "{\"credspec\": }"] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn a_credspec_is_bounded_in_bytes_and_in_values() {
        let of_values = |count: usize| format!("{{\"credspec\":[{}]}}", vec!["0"; count].join(","));
        let of_bytes = |count: usize| format!("{{\"credspec\":\"{}\"}}", "x".repeat(count - 2));
        for (json, fits) in [
            (of_values(MAX_VALUES - 1), true),
            (of_values(MAX_VALUES), false),
            (of_bytes(MAX_BYTES), true),
            (of_bytes(MAX_BYTES + 1), false),
        ] {
            assert_eq!(matches!(read(&json), Some(Manifest::Object(_))), fits, "{}", json.len());
        }
        let many: Map<String, Value> = (0..1000).map(|n| (n.to_string(), Value::Null)).collect();
        let Some(Manifest::Object(kept)) = read(&Value::Object(many).to_string()) else { panic!("too large") };
        assert_eq!(kept.as_object().map(Map::len), Some(MAX_FIELDS));
    }
}
