//! A `GMSACredentialSpec` object that a user sends, read for the linter.
//!
//! Invariants: memory is bounded by the size of the input, and the linter's input is bounded.

use serde::de::IgnoredAny;
use serde_json::{Map, Value, value::RawValue};

use super::MAX_CONTENTS_BYTES;
use crate::json::{Text, Texts, at, fold_entries};

/// The longest `credspec` that is read, in bytes. Printed as contents text it is longer than the API server accepts even if
/// every character in it is an escape of six.
pub const MAX_BYTES: usize = 6 * MAX_CONTENTS_BYTES + 128 * 1024;

/// The most values in a `credspec` that is read. A real one has fewer than a hundred.
pub const MAX_VALUES: usize = 8192;

/// The most fields of the object whose keys are kept.
const MAX_FIELDS: usize = 100;

/// The parts of the object that are kept: the names in its metadata, and its keys. Its `credspec` is kept as a text:
/// the tree of values that the linter takes is many times as large.
#[derive(Debug, Default)]
pub struct Manifest {
    keys: Texts,
    api_version: Option<Text>,
    name: Option<Text>,
    generate_name: Option<Text>,
    credspec: Option<Box<str>>,
    /// Whether the `credspec`, which is not kept then, is longer than [`MAX_BYTES`] or holds more than [`MAX_VALUES`].
    pub is_too_large: bool,
}

impl Manifest {
    /// Reads an object; `None` where the text is not one.
    pub(crate) fn read(json: &str) -> Option<Self> {
        let key = |keys: &mut Texts, key: Text, IgnoredAny| {
            if keys.len() < MAX_FIELDS {
                keys.push(&key);
            }
        };
        let mut keys = fold_entries(&mut serde_json::Deserializer::from_str(json), Texts::default(), key).ok()?;
        keys.shrink();
        let text = |place| at(json, place).ok()?.and_then(|value| serde_json::from_str(value.get()).ok());
        let credspec = at(json, "/credspec").ok()?.map(RawValue::get);
        let is_too_large = credspec.is_some_and(is_too_large);
        let credspec = credspec.filter(|_| !is_too_large).map(Box::from);
        let [api_version, name, generate_name] = ["/apiVersion", "/metadata/name", "/metadata/generateName"].map(text);
        Some(Self { keys, api_version, name, generate_name, credspec, is_too_large })
    }

    /// The object's name. Not validated; empty if unset.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// The object, as the linter takes it: fields that are not kept are null. `None` where its `credspec` has too many levels, or a number that is too large.
    pub(crate) fn tree(&self) -> Option<Value> {
        let text = |text: &Text| Value::from(&**text);
        let mut object = Map::new();
        for key in self.keys.iter() {
            let value = match (key, &self.credspec) {
                ("metadata", _) => {
                    let names = [("name", &self.name), ("generateName", &self.generate_name)];
                    names.into_iter().filter_map(|(key, name)| Some((key, text(name.as_ref()?)))).collect()
                }
                ("credspec", Some(json)) => serde_json::from_str(json).ok()?,
                ("apiVersion", _) => self.api_version.as_ref().map_or(Value::Null, text),
                _ => Value::Null,
            };
            object.insert(key.to_owned(), value);
        }
        Some(Value::Object(object))
    }
}

/// Each value of a list or an object follows one of these bytes. Those in strings are counted too: it is a bound.
fn is_too_large(json: &str) -> bool {
    json.len() > MAX_BYTES || json.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count() >= MAX_VALUES
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(json: &str) -> Option<Value> {
        Manifest::read(json)?.tree()
    }

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
        assert_eq!(read(&object.to_string()), Some(read_back));
        let twice = r#"{"credspec":{"a":1},"credspec":{"b":2}}"#;
        assert_eq!(read(twice), Some(json!({"credspec": {"b": 2}})));
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
            assert_eq!(!Manifest::read(&json).unwrap().is_too_large, fits, "{}", json.len());
        }
        let many: Map<String, Value> = (0..1000).map(|n| (n.to_string(), Value::Null)).collect();
        let kept = read(&Value::Object(many).to_string()).unwrap();
        assert_eq!(kept.as_object().map(Map::len), Some(MAX_FIELDS));
    }
}
