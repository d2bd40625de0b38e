//! A document as a type of Kubernetes, with messages that name the path and the line of a field.

use std::fmt;

use gmsa_core::{
    diagnostic::{Diagnostic, rules},
    pointer::{dotted, escape},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use serde_path_to_error::{Deserializer, Path, Segment, Track};

use super::{Document, node::describe};

impl Document {
    /// A problem with the field at a JSON Pointer, for which the API server would refuse the object.
    pub(crate) fn problem(&self, pointer: &str, message: &str) -> Diagnostic {
        let found = Diagnostic { field: dotted(pointer), ..Diagnostic::new(&rules::REFUSED_OBJECT, message) };
        found.at(self.location_of(pointer))
    }

    /// The object, read as `T`.
    ///
    /// # Errors
    /// Where a field has another type, or `T` does not know it: it is a typing error, and one in a role can grant more than was meant.
    pub(crate) fn read<T: DeserializeOwned + Serialize>(&self) -> Result<T, Diagnostic> {
        let written = self.value();
        let mut track = Track::new();
        let typed = T::deserialize(Deserializer::new(&written, &mut track)).map_err(|error| {
            let (pointer, expected) = wrong_type(&error, &track.path());
            let found = written.pointer(&pointer).map_or_else(String::new, Value::to_string);
            self.problem(&pointer, &format!("{expected}, found {}", describe(&found)))
        })?;
        let known = serde_json::to_value(&typed).unwrap_or_default();
        let Some(pointer) = unknown(&written, &known) else { return Ok(typed) };
        let around = pointer.rsplit_once('/').map_or("", |(around, _)| around);
        let fields = around.split('/').filter(|step| !step.bytes().all(|byte| byte.is_ascii_digit()));
        let path: Vec<String> = [self.kind.to_lowercase()].into_iter().chain(fields.map(str::to_owned)).collect();
        Err(self
            .problem(&pointer, &format!("unknown field, `kubectl explain {}` lists those that exist", path.join("."))))
    }
}

/// The first field of `written`, as a JSON Pointer, that is missing in `known`. Fields of `metadata` are ignored; null counts as a missing field.
fn unknown(written: &Value, known: &Value) -> Option<String> {
    let below = |step: String, written: &Value, known: Option<&Value>| match known {
        _ if written.is_null() || step == "metadata" => None,
        None => Some(format!("/{step}")),
        Some(known) => unknown(written, known).map(|pointer| format!("/{step}{pointer}")),
    };
    match written {
        Value::Object(fields) => fields.iter().find_map(|(key, value)| below(escape(key), value, known.get(key))),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(index, item)| below(index.to_string(), item, known.get(index)))
        }
        _ => None,
    }
}

/// Where a value has another type, as a JSON Pointer, and what was expected: `expected a string`. serde's message quotes the value, which may be a
/// password.
pub fn wrong_type(error: &impl fmt::Display, path: &Path) -> (String, String) {
    let text = error.to_string();
    let expected = text.rfind("expected ").and_then(|at| text.get(at..)).unwrap_or("expected another type");
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Map { key } => pointer.extend(["/", &escape(key)]),
            Segment::Seq { index } => pointer.extend(["/", &index.to_string()]),
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    (pointer, expected.replace("a sequence", "a list").replace("a map", "a mapping"))
}
